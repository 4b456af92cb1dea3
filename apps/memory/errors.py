"""Failures of memory."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError


class MemoryOff(KnowSphereError):
    """The person has switched their memory off."""

    code = "memory_off"
    status = 409
    user_message = _("Your memory is switched off here, so nothing was saved. Switch it on and say it again.")
