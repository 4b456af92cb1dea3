"""The memory app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MemoryConfig(AppConfig):
    """The memory app."""

    name = "apps.memory"
    verbose_name = _("Memory")
