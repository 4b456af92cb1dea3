"""What can go wrong with a model. All carry the vendor's first line, and never a key."""

import re
import time
from email.utils import parsedate_to_datetime
from typing import Any

import orjson
from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError
from apps.common.fields import MASK
from apps.common.outbound.errors import OutboundError, OutboundRefused, OutboundTimeout, OutboundTooLarge
from apps.common.text import legible
from apps.models.chat import ResolvedModel

KEYS = re.compile(r"(?i)\b(?:sk|pk|rk|ak|api|key)[-_][\w\-*.]{6,}|bearer\s+\S+")


class ModelError(KnowSphereError):
    """A call of a model did not succeed. ``details``: model, reason (the vendor's first line)."""

    code = "model_error"
    status = 502

    def __init__(self, *, model: str = "", reason: str = "", retry_after_s: float | None = None, **details: Any):
        super().__init__(model=model, reason=reason, **details)
        self.retry_after_s = retry_after_s


class ModelUnavailable(ModelError):
    """There is no such model, or its endpoint does not answer or fails inside."""

    code = "model_unavailable"
    status = 503
    retryable = True
    user_message = _("The model %(model)s is not available: %(reason)s. Nothing is lost; try again or choose another.")


class ModelRefused(ModelError):
    """The endpoint understood the call and will not do it: key, rights, name, size or content."""

    code = "model_refused"
    user_message = _("The model %(model)s refused the request: %(reason)s. Check its key, name and limits.")


class ModelOverloaded(ModelError):
    """The endpoint's rate or quota is used up."""

    code = "model_overloaded"
    status = 429
    retryable = True
    user_message = _("The model %(model)s has too much to do: %(reason)s. Wait a little and try again.")


class ModelTimeout(ModelError):
    """The endpoint stayed silent for longer than allowed."""

    code = "model_timeout"
    status = 504
    retryable = True
    user_message = _("The model %(model)s did not answer in time: %(reason)s. Try again.")


class ModelAddressRefused(ModelError):
    """A workspace's model has an address that the outbound guard does not open. Nothing was sent."""

    code = "outbound_refused"
    status = 403
    user_message = _(
        "KnowSphere does not connect to the address of the model %(model)s: %(reason)s. Nothing was sent. "
        "Use a public address, or ask the operator to open this one."
    )


class StreamBroken(ModelError):
    """The answer began and did not end properly. What came before is in the caller's hands, and true."""

    code = "stream_broken"
    retryable = True
    user_message = _("The answer of %(model)s broke off: %(reason)s. What arrived is kept; ask again for the rest.")


class BadVectors(ModelError):
    """The endpoint's vectors cannot be used: wrong number, wrong length, not finite, or zero."""

    code = "bad_vectors"
    user_message = _("The embedding model %(model)s gave vectors that cannot be used: %(reason)s.")


class ModelInUse(KnowSphereError):
    """A model cannot be deleted. ``details``: users (kind and name of what may be seen), hidden (how many not)."""

    code = "model_in_use"
    status = 409
    user_message = _(
        "The model is in use by %(count)d things, so it was not deleted: %(names)s. "
        "Let them use another one first, or switch the model off."
    )


class BadRanking(ModelError):
    """The endpoint's scores cannot be used: missing, doubled, or of texts that it was not given."""

    code = "bad_ranking"
    user_message = _("The rerank model %(model)s gave scores that cannot be used: %(reason)s.")


class BudgetExhausted(ModelError):
    """A call would cost more than is left. ``details``: budget, scope, unit, limit, spent, until. Nothing was sent."""

    code = "budget_exhausted"
    status = 429
    user_message = _(
        "The budget %(whose)s has no room left for this: %(spent)s of %(limit)s %(unit)s are spent. "
        "Nothing was sent to %(model)s, and nothing is lost. %(then)s"
    )


class BudgetNeedsPrice(ModelError):
    """A budget in money covers this call, and what the model costs is not known in its currency. Nothing was sent."""

    code = "budget_needs_price"
    status = 409
    user_message = _(
        "A budget in %(unit)s covers this, but the price of %(model)s in %(unit)s is not known, so nothing was sent. "
        "An owner or admin can enter its price, or set the budget in tokens."
    )


def first_line(text: object, model: ResolvedModel | None = None, *, limit: int = 300) -> str:
    """Return a vendor's words as they may be shown and logged: one line, no keys, no controls."""
    line = next((line.strip() for line in legible(str(text)).splitlines() if line.strip()), "")
    if model is not None and model.key is not None and (key := model.key.reveal()):
        line = line.replace(key, MASK)
    line = KEYS.sub(MASK, line).rstrip(".。 ")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def vendor_words(body: object) -> str:
    """Find the message in a vendor's error body, whatever its shape."""
    match body:
        case {"error": {"message": message}} if message:
            return str(message)
        case {"error": str() as message} if message:
            return message
        case {"message": message} if message:
            return str(message)
        case {"detail": message} if message:
            return str(message)
        case {"error": dict() as error}:
            return str(error.get("code") or error.get("type") or "no reason given")
        case str() | bytes():
            return body if isinstance(body, str) else body.decode(errors="replace")
    return "no reason given"


def refusal(raw: bytes, status: int) -> str:
    """Find the message in the body of a refused call: JSON of any shape, or text; a page says nothing."""
    try:
        return vendor_words(orjson.loads(raw))
    except orjson.JSONDecodeError:
        text = raw.decode(errors="replace")
    return f"HTTP {status}" if "<html" in text.lower() or not text.strip() else text


def error_for(status: int, words: object, model: ResolvedModel, *, retry_after_s: float | None = None) -> ModelError:
    """Return the error that stands for an HTTP status (or a code inside a stream)."""
    reason = first_line(words, model) or f"HTTP {status}"
    if status == 429:
        return ModelOverloaded(model=model.name, reason=reason, retry_after_s=retry_after_s)
    if status in (408, 504):
        return ModelTimeout(model=model.name, reason=reason, retry_after_s=retry_after_s)
    if status >= 500:
        return ModelUnavailable(model=model.name, reason=reason, retry_after_s=retry_after_s)
    return ModelRefused(model=model.name, reason=reason, http_status=status)


def outbound_error(error: OutboundError, model: ResolvedModel) -> ModelError:
    """Return the error that stands for what the outbound guard found."""
    kinds: dict[type[OutboundError], type[ModelError]] = {
        OutboundRefused: ModelAddressRefused,
        OutboundTooLarge: ModelRefused,
        OutboundTimeout: ModelTimeout,
    }
    return kinds.get(type(error), ModelUnavailable)(model=model.name, reason=error.details["reason"])


def retry_after(headers: Any) -> float | None:
    """Read Retry-After (seconds or a date) and its millisecond cousin; None where there is none."""
    try:
        if value := headers.get("retry-after-ms"):
            return max(0.0, float(value) / 1000)
        value = headers.get("retry-after")
        if not value:
            return None
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
