"""The websocket of a widget's visitor (docs/websocket.md): the same turns and frames, cut to what visitors may see."""

import logging
from collections import Counter
from contextlib import aclosing
from time import monotonic
from typing import Any
from uuid import UUID

import orjson
from django.db import DatabaseError
from django.utils import translation

from apps.common.database import in_db
from apps.common.errors import KnowSphereError, ServiceUnavailable, Unexpected
from apps.conversations import errors as conversation_errors
from apps.conversations import frames, services
from apps.conversations.consumers import LOOK_AGAIN_S, ConversationConsumer
from apps.conversations.engine import ENGINE
from apps.conversations.models import Conversation
from apps.conversations.signin import Caller, is_ours
from apps.models import budgets
from apps.models.accounting import Caller as Payer
from apps.widgets import errors, showing, tokens
from apps.widgets import services as widgets
from apps.widgets.models import Visitor, Widget
from apps.workspaces.api.authentication import bearer
from apps.workspaces.principals import Principal

logger = logging.getLogger(__name__)

SOCKETS_A_VISITOR = 8  # tabs of one visitor
SOCKETS_AN_ADDRESS = 64

_open: Counter[str] = Counter()


class WidgetConsumer(ConversationConsumer):
    """One tab's window on a visitor's conversation.

    The token comes in the Authorization header or among the subprotocols, never in the address. The page that
    opens the socket is the widget's own frame, or one of the site that the session is bound to.
    """

    async def connect(self) -> None:
        self.caller = Caller.of(self.scope["headers"])
        self.public_id: str = self.scope["url_route"]["kwargs"]["public_id"]
        self.address = (self.scope.get("client") or ("",))[0]
        self.token = _token(self.scope["headers"])
        self._places: tuple[str, ...] = ()
        translation.activate(self.caller.language())
        await self.accept(self.caller.subprotocol)
        try:
            await self._look()
            self._take_places()
        except KnowSphereError as error:
            await self._shut(error)
            return
        except Exception:
            logger.exception("a visitor's socket could not be admitted")
            await self._shut(Unexpected())
            return
        self._leave = ENGINE.join(self.conversation_id, self._turn_began)

    async def disconnect(self, code: int) -> None:
        for place in getattr(self, "_places", ()):
            _open[place] -= 1
            if not _open[place]:
                del _open[place]
        self._places = ()
        await super().disconnect(code)

    async def _look(self) -> None:
        """Read widget, visitor and conversation as they are at this moment.

        Raises:
            WidgetNotFound, VisitorExpired, OriginNotAllowed: the visitor may not be here (any more).
        """
        known = getattr(self, "conversation", None)
        try:
            found = await in_db(_admit, self.public_id, self.token, known)
        except DatabaseError as error:
            raise ServiceUnavailable(service="PostgreSQL") from error
        self.widget, self.visitor, self.principal, self.conversation = found
        origin = self.caller.origin
        if not origin or not (is_ours(origin, self.caller.host) or origin == self.visitor.origin):
            raise errors.OriginNotAllowed
        self.conversation_id = self.conversation.pk
        self._looked_at = monotonic()

    async def send_error(self, error: KnowSphereError) -> None:
        """Send an error frame with what a visitor may know."""
        shown = {"type": "error", **showing.error(error.as_dict()), "details": {}}
        await self.send(text_data=orjson.dumps(shown).decode())

    async def _admitted(self) -> bool:
        try:
            await self._look()
        except ServiceUnavailable:
            raise
        except KnowSphereError as error:
            await self._shut(error)
            return False
        return not self._refused

    async def _handle(self, frame: frames.Ask | frames.Stop | frames.Resume) -> None:
        match frame:
            case frames.Ask():
                turn = await self._ask(frame)
                if turn in self._joined:
                    self._joined.discard(turn)
                elif turn not in self._watching:
                    self._watch(turn, after=0)
            case frames.Stop(turn=turn_id):
                await services.stop_turn(self.conversation, turn_id)
            case frames.Resume(turn=turn_id, after=after):
                self._resume((await services.find_turn(self.conversation, turn_id)).pk, after)

    async def _ask(self, ask: frames.Ask) -> UUID:
        """Take the question off the limits, then ask it; a visitor chooses nothing but its words and language."""
        plain = frames.Ask(text=ask.text, client_id=ask.client_id, language=ask.language)
        widget = self.widget
        await in_db(_count, widget, self.visitor, self.address, self.conversation, ask.client_id)
        await budgets.check(Payer(
            widget.workspace_id, None, widget.agent_id, self.conversation_id, None, widget.pk
        ))  # fmt: skip
        return (await services.start_turn(self.conversation, plain, actor=self.principal)).pk

    def _take_places(self) -> None:
        line = widgets.place_of(self.address)
        wanted = ((f"v{self.visitor.pk}", SOCKETS_A_VISITOR), (f"a{line}", SOCKETS_AN_ADDRESS))
        for place, most in wanted:
            if _open[place] >= most:
                raise conversation_errors.TooManySockets(limit=most)
        for place, _most in wanted:
            _open[place] += 1
        self._places = tuple(place for place, _most in wanted)

    async def _send_frames(self, turn_id: UUID, after: int) -> None:
        if monotonic() - self._looked_at > LOOK_AGAIN_S and not await self._admitted():
            return
        async with aclosing(ENGINE.follow(turn_id, after=after, reader=self.principal)) as batches:
            async for batch in batches:
                for text in batch:
                    await self.send(text_data=showing.frame(self.widget, text))


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
