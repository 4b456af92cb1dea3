"""One turn: bind, run the graph, say how it ended. Everything the asker sees goes through the sink.

LangGraph and its checkpointer are imported at the first turn or by ``start``: they are three
quarters of a process's start.
"""

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import psycopg
from django.db import DatabaseError
from django.utils import timezone, translation

from apps.agents import services
from apps.agents.bindings import Bound, bind
from apps.agents.citations import MARKER
from apps.agents.context import TurnContext, TurnRecord
from apps.agents.errors import TurnFailed
from apps.agents.languages import language_of
from apps.agents.messages import INTERRUPTED_ANSWER
from apps.agents.notices import say
from apps.agents.powers import context_for, zone_of
from apps.agents.turn import EventSink, TurnOutcome, TurnRequest
from apps.common.database import in_db
from apps.common.errors import KnowSphereError, ServiceUnavailable
from apps.models.accounting import Caller, charged_to
from apps.models.chat import Wire
from apps.models.decision import look_ahead

if TYPE_CHECKING:
    from apps.agents.checkpoints import TurnSaver
    from apps.agents.graph import Graph
    from apps.agents.state import TurnState

logger = logging.getLogger(__name__)

_warming: asyncio.Task[None] | None = None
_behind: dict[UUID, asyncio.Task[None]] = {}  # what is done behind answers, by conversation
SAVING_S = 6.0  # for the state of a turn that did not end by itself
LOOK_S = 0.02  # how soon a note that came to wait meanwhile is made, too, where all is to be settled
CLOSING_S = 5.0  # for what is done behind answers, when the process ends


def warm() -> None:
    """Import and build the graph (0.7 s, 40 MB), so that the first turn need not wait."""
    import aiohttp  # noqa: F401 (of the first stream)

    from apps.agents import checkpoints, graph  # noqa: F401

    graph.build()


async def start() -> None:
    """Warm up in a thread of its own, behind the process's start; a turn that comes first waits for it."""
    global _warming
    _warming = asyncio.create_task(asyncio.to_thread(warm))


async def stop() -> None:
    """Let what is done behind answers finish or be dropped; close the checkpoints' pool."""
    global _warming
    warming, _warming = _warming, None  # it belongs to this event loop; a later start has another
    if warming is not None:
        await asyncio.wait({warming})
    try:
        async with asyncio.timeout(CLOSING_S):
            await settled()
    except TimeoutError:
        for task in _mine():
            task.cancel()
    from apps.agents import checkpoints

    await checkpoints.close_pool()


async def forget_state(conversation_id: UUID) -> None:
    """Erase the graph's state alone: the next turn rebuilds it from rows."""
    from apps.agents import checkpoints

    await checkpoints.forget(str(conversation_id))


async def forget(conversation_id: UUID) -> None:
    """Erase all that is kept of a conversation here; called when the conversation is erased."""
    if (task := _behind.get(conversation_id)) in _mine():
        task.cancel()
    await forget_state(conversation_id)
    await in_db(services.erase_conversation, conversation_id)


async def run_turn(request: TurnRequest, *, events: EventSink, stop: asyncio.Event) -> TurnOutcome:
    """Answer one question.

    Setting ``stop`` ends it soon with what was said so far. A cancelled task leaves a state that the
    next turn can use, and raises CancelledError; nothing else is raised: failures are outcomes.
    """
    language = request.options.language or language_of(request.question)
    await _ready()
    reading = request.ahead or read_ahead(request)
    try:
        (saver, values), bound = await asyncio.shield(reading)
    except KnowSphereError as error:
        return _failed(error, language)
    except (DatabaseError, psycopg.Error):
        logger.exception("turn %s could not be bound", request.turn_id)
        return _failed(ServiceUnavailable(service="database"), language)
    caller = Caller(
        bound.workspace.pk, request.asker.user_id, bound.agent_id, request.conversation_id, request.turn_id,
        request.asker.widget_id,
    )  # fmt: skip
    with charged_to(caller), timezone.override(zone_of(bound.user)):  # days are the asker's own, in tools too
        return await _Turn(request, bound, events, stop, language, caller).run(saver, values)


def read_ahead(request: TurnRequest) -> "asyncio.Future[Any]":
    """Begin to read what a turn stands on: its bindings and its state, neither of which needs the other.

    The turn's row need not be there yet. Who has no use for it any more lets it end: it costs less than a
    connection that was left in the middle of an answer.
    """
    look_ahead(request.question)
    reading = asyncio.gather(_load(request), bind(request))
    reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear it
    return reading


async def _ready() -> None:
    if "apps.agents.graph" not in sys.modules or (_warming is not None and not _warming.done()):
        await asyncio.to_thread(warm)  # Python's import lock makes this wait for a warm-up that has begun


async def _load(request: TurnRequest) -> "tuple[TurnSaver | None, dict[str, Any] | None]":
    await _ready()
    from apps.agents import checkpoints

    saver = await checkpoints.saver()
    try:
        return saver, await saver.load(_config(request)) if saver else None
    except Exception:
        # A state that cannot be read, say of an older library: the turn goes on from rows, and leaves a new one.
        logger.exception("the state of conversation %s cannot be read", request.conversation_id)
    try:
        await forget_state(request.conversation_id)
    except psycopg.Error:
        return None, None
    return saver, None


def _config(request: TurnRequest) -> Any:
    # What stands in configurable or metadata is written to the checkpoint: the thread's name, no more.
    return {"configurable": {"thread_id": str(request.conversation_id)}}


class _Turn:
    """A turn that is bound: its state, its run, its end."""

    def __init__(
        self,
        request: TurnRequest,
        bound: Bound,
        events: EventSink,
        stop: asyncio.Event,
        language: str,
        caller: Caller,
    ) -> None:
        self.request = request
        self.bound = bound
        self.events = events
        self.stop = stop
        self.language = language
        self.tally = caller.tally
        self.record = TurnRecord()

    async def run(self, saver: "TurnSaver | None", values: dict[str, Any] | None) -> TurnOutcome:
        from apps.agents import graph
        from apps.agents.state import TurnState

        known = {"agent": str(self.bound.agent_id), "model": self.bound.model.reference}
        self.events.emit("turn.started", known)
        config = _config(self.request)
        rebuilt = await self._lost_messages(values)
        context = context_for(
            self.request, self.bound, events=self.events, stop=self.stop, rebuilt=rebuilt, record=self.record
        )
        config["recursion_limit"] = graph.recursion_limit(context.budget.rounds)
        running = graph.with_saver(saver) if saver else graph.build()
        error: KnowSphereError | None = None
        state: Any = None
        try:
            durability: Literal["exit"] | None = "exit" if saver else None
            steps = running.astream(
                TurnState(route=""), config, context=context, durability=durability, stream_mode="values"
            )
            async for values_now in steps:  # what ``ainvoke`` does, without a second stream of updates
                state = values_now
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._keep_partial(running, config, saver)))
            raise
        except KnowSphereError as failure:
            error = failure
        except Exception:
            logger.exception("turn %s failed", self.request.turn_id)
            error = TurnFailed()
        if error is not None:
            await self._keep_partial(running, config, saver)
        if error is None:
            _go_on(context, state)
        return self._outcome(context, error, warned=saver is None or saver.lost)

    async def _lost_messages(self, values: dict[str, Any] | None) -> list[Wire] | None:
        """Return the earlier messages from rows if the checkpoint does not hold them all, else None."""
        request = self.request
        before = request.number - 1 if request.follows is None else request.follows
        if before == 0:
            return []
        if values is not None and (request.number == 0 or values.get("turn") == before):
            return None
        try:
            return await self.request.history()
        except Exception:
            logger.exception("turn %s goes on without the earlier ones", self.request.turn_id)
            self._warn("checkpoint", say(self.language, "no_history"))
            return []

    async def _keep_partial(self, running: "Graph", config: Any, saver: "TurnSaver | None") -> None:
        """Close the turn in the state, so that the next one finds an answer behind the question."""
        if saver is None:
            return
        said = "".join(self.record.text) or INTERRUPTED_ANSWER
        # What was counted last is of a smaller prompt: the estimate stands for it, so that a full one is handed off.
        update = {"messages": [{"role": "assistant", "content": said}], "prompt_tokens": 0}
        try:
            async with asyncio.timeout(SAVING_S):
                await running.aupdate_state(config, update, as_node="generate")
        except Exception:
            # The next turn notices by the turn's number and rebuilds from rows.
            logger.exception("the state of turn %s was not kept", self.request.turn_id)

    def _outcome(self, context: TurnContext, error: KnowSphereError | None, *, warned: bool) -> TurnOutcome:
        record = self.record
        if warned:
            self._warn("checkpoint", context.say("no_checkpoint"))
        if record.cut:
            self._warn("agent", context.say("cut"))
        cost = self.tally.known_cost
        usage = {
            "prompt": record.usage.prompt,
            "completion": record.usage.completion,
            "cached": record.usage.cached,
            "estimated": record.usage.estimated,
            "prefix_reused": round(record.reused_bytes / record.request_bytes, 4) if record.request_bytes else 0.0,
            "requests": record.requests,
            "unknown_citations": record.unknown_citations,
            "answered": _answered(record, error),
            "cost": None if cost is None else float(cost),
            "currency": self.tally.currency,
        }
        self.events.emit("usage", usage)
        status = "failed" if error else "stopped" if record.stopped else "succeeded"
        return TurnOutcome(
            status=status,
            text="".join(record.text),
            sources=record.sources.all(),
            usage=usage,
            error=_as_dict(error, self.language) if error else None,
            model=self.bound.model.reference,
        )

    def _warn(self, name: str, detail: str) -> None:
        self.events.emit("step", {"name": name, "status": "failed", "elapsed_ms": 0, "detail": detail})


def _go_on(context: TurnContext, state: "TurnState") -> None:
    """Do what is due behind an answer, in a task of its own: nobody waits for it."""
    from apps.agents import afterwards

    if not afterwards.is_due(context, state):
        return
    conversation = context.conversation_id
    afterwards.overtake(conversation)
    task = asyncio.create_task(_one_by_one(_behind.get(conversation), context, state))
    _behind[conversation] = task
    task.add_done_callback(lambda done: _behind.pop(conversation) if _behind.get(conversation) is done else None)


async def _one_by_one(before: asyncio.Task[None] | None, context: TurnContext, state: "TurnState") -> None:
    if before is not None:
        await asyncio.wait({before})
    await afterwards_of(context, state)


async def afterwards_of(context: TurnContext, state: "TurnState") -> None:
    """Do what is due behind one answer; whatever fails is logged, and done behind a later one."""
    from apps.agents import afterwards

    try:
        await afterwards.afterwards(context, state)
    except Exception:
        logger.exception("what follows turn %s failed", context.turn_id)


async def settled() -> None:
    """Have what is due behind the answers so far done, and wait for it."""
    while mine := _mine():
        from apps.agents import afterwards

        afterwards.hurry()
        await asyncio.wait(mine, timeout=LOOK_S)


def _mine() -> set[asyncio.Task[None]]:
    return {task for task in _behind.values() if task.get_loop() is asyncio.get_running_loop()}


def _answered(record: TurnRecord, error: KnowSphereError | None) -> bool | None:
    """Return whether a question for facts got an answer that cites something; None where none was asked for."""
    if error is not None:
        return False
    if not record.looked:
        return None
    return bool(MARKER.search("".join(record.text)))


def _failed(error: KnowSphereError, language: str) -> TurnOutcome:
    return TurnOutcome(status="failed", text="", error=_as_dict(error, language))


def _as_dict(error: KnowSphereError, language: str) -> dict[str, Any]:
    with translation.override(language):
        return error.as_dict()
