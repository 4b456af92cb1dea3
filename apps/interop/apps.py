"""What other tools speak."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class InteropConfig(AppConfig):
    """The OpenAI-compatible endpoint and the MCP server, on the same turns, searches and rights. No tables."""

    name = "apps.interop"
    verbose_name = _("Interoperation")
