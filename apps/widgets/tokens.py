"""What visitors carry: signed, short-lived, bound to one widget and one origin.

A ticket is proof that a page of an allowed origin asked (the browser's own ``Origin`` header said so); the frame
exchanges it for a session. Both travel in bodies and headers, never in an address that is logged.
"""

import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core import signing

from apps.widgets.errors import IdentityRefused, VisitorExpired
from apps.widgets.models import Visitor, Widget

TICKET_S = 120
SESSION_S = 3600
KEPT_S = 30 * 24 * 3600  # how long an ended session still tells who comes back
PREFIX = "kv_"
LONGEST = 2000  # characters of a signed identity


@dataclass(frozen=True, slots=True)
class Session:
    """What a visitor's token says."""

    widget_id: UUID
    visitor_id: UUID
    origin: str
    preview: bool = False


def _signer(purpose: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"knowsphere.widget.{purpose}", sep=".")


def make_ticket(widget: Widget, origin: str, *, identity: dict[str, Any] | None = None, preview: bool = False) -> str:
    """Return what a page of ``origin`` can open the widget's frame with, within two minutes."""
    return _signer("ticket").sign_object({"w": str(widget.pk), "o": origin, "i": identity, "p": preview})


def read_ticket(widget: Widget, ticket: str) -> dict[str, Any]:
    """Return what a ticket says. Raises VisitorExpired: it is none, is too old, or belongs to another widget."""
    return _read("ticket", ticket, widget.pk, TICKET_S)


def make_session(visitor: Visitor) -> str:
    """Return a visitor's token."""
    content = {"w": str(visitor.widget_id), "v": str(visitor.pk), "o": visitor.origin, "p": visitor.preview}
    return PREFIX + _signer("session").sign_object(content)


def read_session(widget_id: UUID, token: str, *, ended: bool = False) -> Session:
    """Return whose session a token is. ``ended``: also one that is over, to know who comes back.

    Raises:
        VisitorExpired: it is none, is over, or belongs to another widget.
    """
    if not token.startswith(PREFIX):
        raise VisitorExpired
    found = _read("session", token.removeprefix(PREFIX), widget_id, KEPT_S if ended else SESSION_S)
    return Session(widget_id, UUID(found["v"]), found["o"], bool(found["p"]))


def read_identity(widget: Widget, word: str) -> dict[str, Any]:
    """Return what a site's server signed about its visitor: ``base64url(JSON).hex(HMAC-SHA256)``.

    The JSON has ``id`` and ``exp`` (Unix seconds), and ``name`` if the site likes. The secret stays on servers.

    Raises:
        IdentityRefused: the signature is not this widget's, or it is over.
    """
    payload, _dot, signature = word.partition(".")
    if widget.identity_secret is None or len(word) > LONGEST:
        raise IdentityRefused
    wanted = hmac.new(widget.identity_secret.reveal().encode(), payload.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted.encode(), signature.encode()):
        raise IdentityRefused
    try:
        said = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        if float(said["exp"]) < time.time():
            raise IdentityRefused
        return {"id": str(said["id"])[:200], "name": str(said.get("name", ""))[:200]}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise IdentityRefused from None


def _read(purpose: str, text: str, widget_id: UUID, max_age_s: int) -> dict[str, Any]:
    try:
        found: dict[str, Any] = _signer(purpose).unsign_object(text, max_age=max_age_s)
    except signing.BadSignature:
        raise VisitorExpired from None
    if found.get("w") != str(widget_id):
        raise VisitorExpired
    return found
