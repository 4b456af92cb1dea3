"""Why a request to an outside address was not made or not finished.

``details``: the host as it was asked for, and a reason in our own words. Never what an address resolved
to and never a byte of what answered there: it may be a service that only this machine can reach.
"""

from typing import ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError
from apps.common.text import legible


class OutboundError(KnowSphereError):
    """A request to an outside address came to nothing."""

    code = "outbound_error"
    status = 502
    why: ClassVar[str | Promise] = _("it does not answer as it should")
    user_message = _("%(host)s could not be read: %(reason)s. Nothing was changed; check the address or try again.")

    def __init__(self, *, host: str = "", reason: str | Promise = ""):
        super().__init__(host=legible(host)[:253] or gettext("this address"), reason=str(reason or self.why))


class OutboundRefused(OutboundError):
    """The address is not a public web address, and the operator has not opened it."""

    code = "outbound_refused"
    status = 403
    why = _("it is a private or reserved address")
    user_message = _(
        "KnowSphere does not connect to %(host)s: %(reason)s. Nothing was sent. "
        "Use a public address, or ask the operator to open this one."
    )


class OutboundTooLarge(OutboundError):
    """The answer is longer than allowed, as sent or unpacked."""

    code = "outbound_too_large"
    status = 413
    why = _("it is larger than allowed")
    user_message = _("The answer of %(host)s was not read to its end: %(reason)s. Nothing was kept of it.")


class OutboundTimeout(OutboundError):
    """The answer took longer than allowed."""

    code = "outbound_timeout"
    status = 504
    retryable = True
    why = _("it took too long")
    user_message = _("%(host)s did not answer in time: %(reason)s. Nothing was changed; try again later.")


class OutboundFailed(OutboundError):
    """No such name, no connection, no valid certificate, or no HTTP."""

    code = "outbound_failed"
    retryable = True


class OutboundUnusable(OutboundFailed):
    """What answers will not answer otherwise the next time: its certificate, its redirects or its packing are wrong."""

    code = "outbound_unusable"
    retryable = False
