"""The websocket of a widget's visitor (docs/websocket.md): the same turns and frames, cut to what visitors may see."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.db import DatabaseError
from django.utils import translation

from apps.common.database import in_db
from apps.common.errors import KnowSphereError, ServiceUnavailable
from apps.conversations import frames
from apps.conversations.consumers import Admission, TurnSocket
from apps.conversations.models import Conversation, Turn
from apps.conversations.signin import Caller, is_ours
from apps.models import budgets
from apps.models.accounting import Caller as Payer
from apps.widgets import errors, showing, tokens
from apps.widgets import services as widgets
from apps.widgets.models import Visitor, Widget
from apps.workspaces.api.authentication import bearer
from apps.workspaces.principals import Principal

SOCKETS_A_VISITOR = 8  # tabs of one visitor
SOCKETS_AN_ADDRESS = 64


class WidgetConsumer(TurnSocket):
    """One tab's window on a visitor's conversation.

    The token comes in the Authorization header or among the subprotocols, never in the address. The page that
    opens the socket is the widget's own frame, or one of the site that the session is bound to.
    """

    widget: Widget
    visitor: Visitor

    def begin(self) -> None:
        """Read the token and where the request comes from."""
        self.caller = Caller.of(self.scope["headers"])
        self.public_id: str = self.scope["url_route"]["kwargs"]["public_id"]
        self.address = (self.scope.get("client") or ("",))[0]
        self.token = _token(self.scope["headers"])
        self.known: Conversation | None = None
        translation.activate(self.caller.language())

    def subprotocol(self) -> str | None:
        """Agree to the one that carries a token."""
        return self.caller.subprotocol

    async def admit(self) -> Admission:
        """Read widget, visitor and conversation as they are at this moment.

        Raises:
            WidgetNotFound, VisitorExpired, OriginNotAllowed: the visitor may not be here (any more).
        """
        try:
            found = await in_db(_admit, self.public_id, self.token, self.known)
        except DatabaseError as error:
            raise ServiceUnavailable(service="PostgreSQL") from error
        self.widget, self.visitor, principal, self.known = found
        origin = self.caller.origin
        if not origin or not (is_ours(origin, self.caller.host) or origin == self.visitor.origin):
            raise errors.OriginNotAllowed
        return Admission(principal, self.known, self.caller.language())

    async def send_error(self, error: KnowSphereError) -> None:
        """Send an error frame with what a visitor may know."""
        shown = {"type": "error", **showing.error(error.as_dict()), "details": {}}
        await self.send(text_data=orjson.dumps(shown).decode())

    async def start(self, ask: frames.Ask) -> Turn:
        """Take the question off the limits, then ask it; a visitor chooses nothing but its words and language."""
        plain = frames.Ask(text=ask.text, client_id=ask.client_id, language=ask.language)
        widget = self.widget
        await in_db(_count, widget, self.visitor, self.address, self.conversation, ask.client_id)
        await budgets.check(Payer(
            widget.workspace_id, None, widget.agent_id, self.conversation.pk, None, widget.pk
        ))  # fmt: skip
        return await super().start(plain)

    def places(self) -> Mapping[str, int]:
        """Return the visitor's and the address's."""
        line = widgets.place_of(self.address)
        return {f"visitor:{self.visitor.pk}": SOCKETS_A_VISITOR, f"address:{line}": SOCKETS_AN_ADDRESS}

    def shown(self, text: str) -> str:
        """Return a frame without what visitors may not know."""
        return showing.frame(self.widget, text)


def _admit(public_id: str, token: str, known: Conversation | None) -> tuple[Widget, Visitor, Principal, Conversation]:
    widget, visitor, principal = widgets.admit_visitor(public_id, token)
    if known is None:
        return widget, visitor, principal, widgets.conversation_of(widget, visitor)
    found = Conversation.objects.visible_to(principal).filter(pk=known.pk).first()
    if found is None or found.agent_id != widget.agent_id:
        raise errors.VisitorExpired
    return widget, visitor, principal, found


def _count(widget: Widget, visitor: Visitor, address: str, conversation: Conversation, client_id: str) -> None:
    """Count a question once, however often its frame comes."""
    if not conversation.turns.filter(client_id=client_id).exists():
        widgets.count_question(widget=widget, visitor=visitor, address=address)


def _token(headers: Any) -> str:
    found: dict[bytes, str] = {}
    for name, value in headers:
        found.setdefault(name.lower(), value.decode("latin-1"))
    offered = (word.strip() for word in found.get(b"sec-websocket-protocol", "").split(","))
    return bearer(found.get(b"authorization", "")) or next(
        (word for word in offered if word.startswith(tokens.PREFIX)), ""
    )
