"""The websocket of a conversation (docs/websocket.md)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import aclosing
from time import monotonic
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import translation

from apps.common import logs
from apps.common.errors import KnowSphereError, NotAllowed, NotFound, ServiceUnavailable, Unexpected
from apps.conversations import errors, frames, services, signin
from apps.conversations.engine import ENGINE
from apps.conversations.models import Conversation, Turn
from apps.conversations.rows import Standing
from apps.workspaces.models import User
from apps.workspaces.principals import Principal, Who

logger = logging.getLogger(__name__)

CLOSE_CODES = {401: 4401, 403: 4403, 404: 4404, 429: 4429, 503: 1013}
LOOK_AGAIN_S = 5.0  # how old a look at the reader's rights may be while frames are sent, though nobody told of a change
SOCKETS_A_PERSON = 512  # open at once, in one process
FRAMES_AT_ONCE, FRAMES_A_SECOND = 40, 10.0  # beyond, a socket is read as slowly as this


_open: Counter[str] = Counter()  # sockets in each place


class RefusingConsumer(AsyncWebsocketConsumer):
    """Accepts a socket and says why it is closed: a bare refusal is something no page can explain."""

    channel_layer_alias = ""  # sockets watch the engine; nothing comes through a layer

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle a message without Channels' detour through a thread: nothing here uses the ORM."""
        logs.client_ip.set(logs.address((self.scope.get("client") or (None,))[0]))
        await getattr(self, message["type"].replace(".", "_"))(message)

    async def connect(self) -> None:
        await self.accept()
        await self.refuse(NotFound())

    async def refuse(self, error: KnowSphereError) -> None:
        """Say why and close."""
        await self.send_error(error)
        await self.close(code=CLOSE_CODES.get(error.status, 1011))

    async def send_error(self, error: KnowSphereError) -> None:
        """Send an error frame."""
        await self.send(text_data=orjson.dumps({"type": "error", **error.as_dict()}, default=str).decode())


class Admission(NamedTuple):
    """Who is at a socket now, what they look at, and the language to speak with them."""

    who: Who
    conversation: Conversation
    language: str


class TurnSocket(RefusingConsumer):
    """One window on one conversation, whoever looks through it: a subclass says by ``admit`` who may.

    A turn belongs to the server, not to the socket: this class starts it, watches its numbered
    events, and may go away at any moment. Watching is a task of its own, because Channels handles
    one frame at a time and a "stop" must not wait for the answer's end.
    """

    who: Who
    conversation: Conversation

    def __init__(self) -> None:
        super().__init__()
        self._watching: dict[UUID, asyncio.Task[None]] = {}
        self._joined: set[UUID] = set()  # turns that another tab began and this one shows unasked
        self._leave: Callable[[], None] = lambda: None
        self._guard: asyncio.Task[None] | None = None
        self._looked_at = 0.0  # when the rights were last seen to be there
        self._withdrawals = 0  # what the engine's number was then
        self._refused = False
        self._taken: tuple[str, ...] = ()  # whose places this socket has
        self._allowance = float(FRAMES_AT_ONCE)
        self._paid_at = monotonic()

    async def admit(self) -> Admission:
        """Say who is here, by the door of this moment; asked when the socket opens and again and again.

        Raises:
            KnowSphereError: they are not, or not any more: the socket closes. After ServiceUnavailable
                it is asked again.
        """
        raise NotImplementedError

    def subprotocol(self) -> str | None:
        """Return the subprotocol to agree to."""
        return None

    async def connect(self) -> None:
        self.begin()
        await self.accept(self.subprotocol())
        self._withdrawals = ENGINE.withdrawals
        try:
            self.who, self.conversation, language = await self.admit()
            self._take_places()
        except KnowSphereError as error:
            await self._shut(error)
            return
        except Exception:
            logger.exception("a socket could not be admitted")
            await self._shut(Unexpected())
            return
        self._looked_at = monotonic()
        translation.activate(language)
        self._leave = ENGINE.join(self.conversation.pk, self._turn_began)

    def begin(self) -> None:
        """Read what the request brought along, before it is accepted."""

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self._pace()
        if self._refused:
            return  # what was under way when the socket was closed
        try:
            frame = frames.parse(text_data)
            if isinstance(frame, frames.Ping):
                await self.send(text_data='{"type":"pong"}')
            elif not await self.asked_as_known(frame) and await self._admitted():
                await self._handle(frame)
        except KnowSphereError as error:
            await self.send_error(error)
        except Exception:
            logger.exception("a frame could not be handled")
            await self.send_error(Unexpected())

    async def _handle(self, frame: frames.Ask | frames.Stop | frames.Resume) -> None:
        if not isinstance(frame, frames.Resume) and not Principal.of(self.who).may("conversations:write"):
            raise NotAllowed  # a key that only reads
        match frame:
            case frames.Ask() as ask:
                self._show(await self.start(ask))
            case frames.Stop(turn=turn_id):
                await services.stop_turn(self.conversation, turn_id)
            case frames.Resume(turn=turn_id, after=after):
                turn = await services.find_turn(self.conversation, turn_id)
                self._resume(turn.pk, after)

    def _show(self, turn: Turn) -> None:
        if turn.pk in self._joined:  # watched since its first moment, as by every open tab
            self._joined.discard(turn.pk)
        elif turn.pk not in self._watching:
            self._watch(turn.pk, after=0)

    async def asked_as_known(self, frame: frames.Frame) -> bool:
        """Ask in one go with the look at who asks, where a subclass can. False: nothing was done, look first."""
        return False

    async def start(self, ask: frames.Ask) -> Turn:
        """Ask a question. A subclass may take less of it, and count it first."""
        return await services.start_turn(self.conversation, ask, actor=self.who)

    def places(self) -> Mapping[str, int]:
        """Return whose places this socket takes, and how many of each there are in this process."""
        asker = Principal.of(self.who).asker_id
        return {f"asker:{asker}": SOCKETS_A_PERSON} if asker else {}

    def shown(self, text: str) -> str:
        """Return a turn's frame as this reader may have it."""
        return text

    def _take_places(self) -> None:
        """Take one of each of the places. Raises TooManySockets."""
        wanted = self.places()
        for place, most in wanted.items():
            if _open[place] >= most:
                raise errors.TooManySockets(limit=most)
        _open.update(wanted.keys())
        self._taken = tuple(wanted)

    async def disconnect(self, code: int) -> None:
        self._leave()
        for place in self._taken:
            _open[place] -= 1
            if not _open[place]:
                del _open[place]
        self._taken = ()
        for task in (*self._watching.values(), *([self._guard] if self._guard else [])):
            task.cancel()  # the window closes; the turn goes on

    async def _pace(self) -> None:
        """Read a socket that sends without end no faster than it may: the rest waits in its own buffers."""
        now = monotonic()
        self._allowance = min(self._allowance + (now - self._paid_at) * FRAMES_A_SECOND, FRAMES_AT_ONCE) - 1
        self._paid_at = now
        if self._allowance < 0:
            await asyncio.sleep(-self._allowance / FRAMES_A_SECOND)

    async def _admitted(self) -> bool:
        """Look again: they may have signed out, lost their right, or deleted the conversation."""
        withdrawals = ENGINE.withdrawals  # as it is before the look
        try:
            self.who, self.conversation, _language = await self.admit()
        except ServiceUnavailable:
            raise
        except KnowSphereError as error:
            await self._shut(error)
            return False
        self._looked_at, self._withdrawals = monotonic(), withdrawals
        return not self._refused

    async def _shut(self, error: KnowSphereError) -> None:
        """Say why, close, and neither take nor send anything more."""
        if not self._refused:
            self._refused = True
            self._leave()
            for task in self._watching.values():
                if task is not asyncio.current_task():
                    task.cancel()
            await self.refuse(error)

    async def _guard_watching(self) -> None:
        """Look again while turns are shown, whoever began them; the reader need not send a frame to lose them."""
        while self._watching:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                if not await self._admitted():
                    return
            except ServiceUnavailable:
                continue  # a turn in flight goes on without the database, and so does its window

    def _turn_began(self, turn_id: UUID) -> None:
        if turn_id not in self._watching:
            self._joined.add(turn_id)
            self._watch(turn_id, after=0)

    def _resume(self, turn_id: UUID, after: int) -> None:
        """Watch from ``after`` on. A turn that this socket shows unasked goes on: all of it is on its way."""
        if turn_id in self._joined:
            self._joined.discard(turn_id)
            return
        if turn_id in self._watching:
            self._watching[turn_id].cancel()
        self._watch(turn_id, after=after)

    def _watch(self, turn_id: UUID, *, after: int) -> None:
        task = asyncio.create_task(self._send_frames(turn_id, after))
        self._watching[turn_id] = task
        if self._guard is None or self._guard.done():
            self._guard = asyncio.create_task(self._guard_watching())
        task.add_done_callback(lambda done: self._watched(turn_id, done))

    def _watched(self, turn_id: UUID, task: asyncio.Task[None]) -> None:
        if self._watching.get(turn_id) is task:
            del self._watching[turn_id]
            self._joined.discard(turn_id)
        if not task.cancelled() and task.exception():
            logger.warning("watching ended", exc_info=task.exception())

    async def _send_frames(self, turn_id: UUID, after: int) -> None:
        if monotonic() - self._looked_at > LOOK_AGAIN_S and not await self._admitted():
            return  # a turn that another tab began, in a window that lost its right meanwhile
        send, shown = self.base_send, self.shown
        async with aclosing(ENGINE.follow(turn_id, after=after, reader=Principal.of(self.who))) as batches:
            async for batch in batches:
                if self._withdrawals != ENGINE.withdrawals and not await self._still_admitted():
                    return
                for text in batch:
                    await send({"type": "websocket.send", "text": shown(text)})

    async def _still_admitted(self) -> bool:
        withdrawals = ENGINE.withdrawals
        try:
            return await self._admitted()
        except ServiceUnavailable:  # as above; who listens again tells of it anew
            self._withdrawals = withdrawals
            return not self._refused


class ConversationConsumer(TurnSocket):
    """A person's tab, or a program with a person's key, on one conversation."""

    user: User | None = None
    standing: Standing | None = None

    def begin(self) -> None:
        """Read session or key, and speak the browser's language until the person is known."""
        self.caller = signin.Caller.of(self.scope["headers"])
        self.conversation_id: UUID = self.scope["url_route"]["kwargs"]["pk"]
        translation.activate(self.caller.language())

    def subprotocol(self) -> str | None:
        """Agree to the one that carries a key."""
        return self.caller.subprotocol

    async def admit(self) -> Admission:
        """Look at origin, session or key, membership and conversation: at once, where the sign-in is as it was."""
        if self.user is None:
            self.caller.check_origin()
        elif self.standing and (found := await signin.admit_again(self.standing, self.conversation_id)):
            return Admission(self.user, found, self.caller.language(self.user.language))
        self.standing = None
        self.user, conversation, self.standing = await signin.admit(self.caller, self.conversation_id, known=self.user)
        return Admission(self.user, conversation, self.caller.language(self.user.language))

    async def asked_as_known(self, frame: frames.Frame) -> bool:
        """Ask while the sign-in is what it was at the last look: the turn's own insert looks, in one statement.

        Whatever is not begun so, for whichever reason, goes the long way, which says why.
        """
        if self.standing is None or not isinstance(frame, frames.Ask):
            return False
        withdrawals = ENGINE.withdrawals
        try:
            turn = await services.start_turn(self.conversation, frame, actor=self.who, standing=self.standing)
        except ServiceUnavailable:
            raise
        except (KnowSphereError, services.Changed):
            return False
        self._looked_at, self._withdrawals = monotonic(), withdrawals
        if not self._refused:  # by the guard, meanwhile
            self._show(turn)
        return True
