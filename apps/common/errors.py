"""Failures we foresaw: a stable code for programs, a sentence for people.

Five edges translate them: REST, pages (ErrorMiddleware), sockets, tools, tasks.
"""

from typing import Any, ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class KnowSphereError(Exception):
    """A failure we foresaw, with a stable code for programs and a sentence for people."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400
    retryable: ClassVar[bool] = False
    user_message: ClassVar[str | Promise] = _("Something went wrong. Try again.")

    def __init__(self, **details: Any) -> None:
        """Keep ``details`` for the message, the log and the API body; never put secrets there."""
        super().__init__(self.code, details)
        self.details = details

    @property
    def message(self) -> str:
        """The sentence, in the active language."""
        return str(self.user_message) % self.details

    def as_dict(self) -> dict[str, Any]:
        """Return the one JSON shape that REST, sockets and tool results share."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "details": self.details,
        }


class NotFound(KnowSphereError):
    """There is no such row, or the caller may not see it; the two look the same."""

    code = "not_found"
    status = 404
    user_message = _("There is nothing here, or it is not shared with you.")


class NotAllowed(KnowSphereError):
    """An act without a row that the caller's role does not include."""

    code = "not_allowed"
    status = 403
    user_message = _("Your role in this workspace does not allow this. Ask an owner or admin.")


class InvalidInput(KnowSphereError):
    """The input does not have the right shape; ``field`` says where."""

    code = "invalid_input"
    status = 422
    user_message = _("The value for “%(field)s” cannot be used: %(reason)s")


class Conflict(KnowSphereError):
    """The row is in a state that does not allow this act now."""

    code = "conflict"
    status = 409
    user_message = _("Somebody else changed this, or it is being worked on. Reload and try again.")


class RequestTooLarge(KnowSphereError):
    """A request carries more bytes than any to its address may."""

    code = "request_too_large"
    status = 413
    user_message = _("One request may carry at most %(limit_mb)s MB here. Nothing was stored; send less at a time.")


class TooManyFields(KnowSphereError):
    """A form carries more fields or files than any may."""

    code = "too_many_fields"
    status = 413
    user_message = _(
        "One form may carry at most %(fields)s fields and %(files)s files. Nothing was stored; send fewer at a time."
    )


class NoSpace(KnowSphereError):
    """The disk is full."""

    code = "no_space"
    status = 507
    retryable = True
    user_message = _("There is no disk space left. Nothing was changed; ask your operator, then try again.")


class ServiceUnavailable(KnowSphereError):
    """Something we depend on does not answer; ``service`` names it."""

    code = "service_unavailable"
    status = 503
    retryable = True
    user_message = _("%(service)s does not answer at the moment. Nothing is lost; try again soon.")


class Unexpected(KnowSphereError):
    """A failure that nobody foresaw; the log has it under the request's id."""

    code = "internal_error"
    status = 500
    retryable = True
    user_message = _("Something went wrong on our side. Try again; if it stays, send your operator the request id.")
