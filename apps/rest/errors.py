"""What can be wrong with a request before any app has looked at it."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput, KnowSphereError


class NotSignedIn(KnowSphereError):
    """Neither a key nor a session came with the request, or it is not valid any more."""

    code = "not_signed_in"
    status = 401
    user_message = _("No valid API key came with this request. Send “Authorization: Bearer ks_…”.")


class RequestForged(KnowSphereError):
    """A session's write came without its CSRF token."""

    code = "csrf_failed"
    status = 403
    user_message = _("This change did not come from a page of ours. Reload the page and try again.")


class ScopeMissing(KnowSphereError):
    """The key is not allowed this; ``scope`` says what it lacks."""

    code = "scope_missing"
    status = 403
    user_message = _("This API key lacks the scope “%(scope)s”. Nothing was done; use a key that has it.")


class Malformed(KnowSphereError):
    """The body is not what its content type says."""

    code = "malformed_request"
    status = 400
    user_message = _("The request's body cannot be read: %(reason)s")


class FieldsInvalid(InvalidInput):
    """Fields do not have the right shape; ``fields`` says which, and why."""

    user_message = _("Some fields cannot be used: %(summary)s. Nothing was changed.")


class MethodNotAllowed(KnowSphereError):
    """The address exists, the method does not."""

    code = "method_not_allowed"
    status = 405
    user_message = _("%(method)s is not possible at this address.")


class UnsupportedMediaType(KnowSphereError):
    """The body's type is none that the address takes."""

    code = "unsupported_media_type"
    status = 415
    user_message = _("A body of this type is not taken here. Send application/json, or a form where files go.")


class RateLimited(KnowSphereError):
    """The key, the person or the workspace has asked too often; ``retry_after`` is in seconds."""

    code = "rate_limited"
    status = 429
    retryable = True
    user_message = _("Too many requests. Wait %(retry_after)s seconds and try again; nothing was changed.")


class CursorInvalid(KnowSphereError):
    """The cursor is not one that this list gave out."""

    code = "invalid_cursor"
    status = 422
    user_message = _("This page marker cannot be used. Begin again without “cursor”.")


class IdempotencyKeyReused(KnowSphereError):
    """The key has been here with another request."""

    code = "idempotency_key_reused"
    status = 422
    user_message = _("This Idempotency-Key belongs to another request. Nothing was changed; make a new key.")


class IdempotencyKeyInvalid(KnowSphereError):
    """The key is empty, too long, or not printable ASCII."""

    code = "idempotency_key_invalid"
    status = 422
    user_message = _("An Idempotency-Key has 1 to 255 printable ASCII characters. Nothing was changed.")


class RequestInProgress(KnowSphereError):
    """The same request, with the same key, is being carried out at this moment."""

    code = "request_in_progress"
    status = 409
    retryable = True
    user_message = _("The same request is still being carried out. Wait a moment, then send it again.")
