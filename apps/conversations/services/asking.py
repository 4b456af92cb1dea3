"""Questions: asked, answered again, stopped."""

from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from django.db import models
from django.utils import translation

from apps.agents.turn import AskOptions, Attachment, TurnRequest
from apps.common.database import in_db, pool
from apps.common.errors import KnowSphereError, NotFound, ServiceUnavailable
from apps.conversations import errors, history, rows, rows_branches, rows_liveness
from apps.conversations.attachments import as_given
from apps.conversations.engine import ENGINE
from apps.conversations.frames import Ask, check_ask
from apps.conversations.models import Attachment as AttachmentRow
from apps.conversations.models import Conversation, Turn
from apps.conversations.services.keeping import title_of
from apps.knowledge.models import KnowledgeBase
from apps.models.models import Kind, ModelConfig
from apps.workspaces.errors import QuotaExceeded
from apps.workspaces.principals import Principal, Who
from apps.workspaces.services import quotas

ASKABLE = rows.Door(
    lambda who, row: Conversation.objects.editable_by(who).filter(pk=row).values("id", "workspace_id", "agent_id")
)
PATH = 10_000  # turns: how far back attachments are looked for


class _Question(NamedTuple):
    """What is asked, and after which turn. ``parent`` None: after the newest; ``first``: after none."""

    text: str
    parent: UUID | None
    first: bool
    options: AskOptions
    attachments: tuple[UUID, ...]


class Changed(Exception):
    """The asker's sign-in is not what it was, or something else wants a closer look; nothing was begun."""


async def start_turn(
    conversation: Conversation, ask: Ask, *, actor: Who, standing: rows.Standing | None = None
) -> Turn:
    """Ask a question. Returns at once with the turn; the engine owns the rest.

    While another turn of the conversation runs, the new one is queued and begins when it is over. The
    same ``client_id`` again returns the turn that it began, whatever the rest of the frame says.

    ``standing``: the caller has not looked at the actor's sign-in for this question. The statement that begins
    the turn does, by whether it is still what it was; what is not begun at once is Changed.

    Raises:
        Changed: only with ``standing``: look at the sign-in, then ask without.
        TooManyWaiting: too many questions of this conversation wait already.
        TooManyTurns: too many of the actor's questions are being answered.
        NotFound: the conversation, or a base, model, attachment or turn that is named, is not the actor's to use.
        ShuttingDown, ServiceUnavailable: nothing was begun; ask again later.
    """
    check_ask(ask)
    if standing and ask.attachments:
        raise Changed  # files are taken before the turn begins
    try:
        async with rows.connected() as connection:
            question = await _question(connection, conversation, ask)
            await _check_named(connection, conversation, question, actor)
            for _attempt in range(3):
                full: KnowSphereError | None = None
                try:
                    return await _begin(connection, conversation, ask.client_id, question, actor, standing)
                except psycopg.errors.UniqueViolation:
                    pass
                except (
                    QuotaExceeded,
                    errors.TooManyTurns,
                    errors.TooManyWaiting,
                ) as error:  # a repetition needs no room
                    full = error
                if standing:
                    raise Changed
                known = await rows.find_turn_of(connection, conversation.pk, ask.client_id)
                if full and not known:
                    raise full
                if known:
                    return Turn(
                        id=known["id"], conversation_id=conversation.pk, number=known["number"],
                        client_id=ask.client_id, status=known["status"], question=known["question"],
                    )  # fmt: skip
            raise errors.TooManyWaiting(limit=rows.WAITING)
    except psycopg.OperationalError as error:
        raise ServiceUnavailable(service="PostgreSQL") from error


async def _question(connection: rows.Connection, conversation: Conversation, ask: Ask) -> _Question:
    """Return what the frame asks; another answer to an old question takes that one's words and place."""
    options = AskOptions(tuple(ask.knowledge_bases), ask.web, ask.graph, ask.language, ask.model)
    if ask.regenerate is None:
        first = ask.parent == conversation.pk
        parent = None if first else ask.parent
        return _Question(ask.text, parent, first, options, tuple(dict.fromkeys(ask.attachments)))
    again = await _fetch(
        connection, Turn.objects.filter(conversation=conversation.pk, pk=ask.regenerate).values(
            "parent_id", "question", "options"
        )
    )  # fmt: skip
    if again is None:
        raise NotFound(field="regenerate")
    attached = tuple(UUID(one) for one in again["options"].get("attachments") or ())
    return _Question(again["question"], again["parent_id"], again["parent_id"] is None, options, attached)


async def _begin(
    connection: rows.Connection,
    conversation: Conversation,
    client_id: str,
    question: _Question,
    actor: Who,
    standing: rows.Standing | None,
) -> Turn:
    """Insert the turn and start its task."""
    if not ENGINE.started:
        raise errors.ShuttingDown
    ENGINE.check_room(Principal.of(actor))
    request = TurnRequest(
        turn_id=uuid4(), conversation_id=conversation.pk, workspace_id=conversation.workspace_id,
        asker=Principal.of(actor), agent_id=conversation.agent_id, question=question.text, options=question.options,
        history=history.up_to(question.parent),
    )  # fmt: skip
    ahead = ENGINE.read_ahead(request)  # beside the insert: rights are read in the same moment as the door's
    return await _insert(connection, replace(request, ahead=ahead), client_id, question, actor, standing)


async def _insert(
    connection: rows.Connection,
    request: TurnRequest,
    client_id: str,
    question: _Question,
    actor: Who,
    standing: rows.Standing | None,
) -> Turn:
    stored, turn_id = _stored(question), request.turn_id
    door = ASKABLE.bound(actor, request.conversation_id)
    row = await rows.begin(
        connection, standing.behind(door) if standing else door, asker=request.asker, turn_id=turn_id,
        client_id=client_id,
        question=question.text, title=title_of(question.text), options=stored, process=ENGINE.process,
        parent=question.parent, first=question.first,
    )  # fmt: skip
    if row is None:
        raise Changed if standing else NotFound
    if row["number"] is None:
        await in_db(_give_back, request.workspace_id, actor, row["counted"] or [])
        if row["waiting"] >= rows.WAITING:
            raise errors.TooManyWaiting(limit=rows.WAITING)
        raise NotFound(field="parent")
    attachments = await _attached(connection, row, turn_id) if row["attached"] or question.attachments else ()
    waiting = row["status"] == Turn.Status.QUEUED
    stale = waiting or row["agent_id"] != request.agent_id  # it is read when its turn comes, or for that agent
    request = replace(
        request, ahead=None if stale else request.ahead, agent_id=row["agent_id"], number=row["number"],
        history=history.up_to(row["parent_id"]), follows=row["follows"] or 0, attachments=attachments,
    )  # fmt: skip
    place = {
        "parent": str(row["parent_id"]) if row["parent_id"] else None,
        "client_id": client_id,
        "attachments": [one.as_event() for one in attachments if one.number == row["number"]],
    }
    ENGINE.begin(request, language=translation.get_language() or "en", place=place, waiting=waiting)
    return Turn(
        id=turn_id, conversation_id=row["id"], number=row["number"], client_id=client_id, parent_id=row["parent_id"],
        status=row["status"], question=question.text, options=stored, owner_process=ENGINE.process,
    )  # fmt: skip


def _stored(question: _Question) -> dict[str, Any]:
    options = question.options
    return {
        "knowledge_bases": [str(base) for base in options.knowledge_bases],
        "web": options.web,
        "graph": options.graph,
        "language": options.language,
        "model": str(options.model) if options.model else None,
        "attachments": [str(one) for one in question.attachments],
    }


async def _check_named(
    connection: rows.Connection, conversation: Conversation, question: _Question, actor: Who
) -> None:
    """Refuse a question that names a base, a model or a file which its asker cannot use here."""
    options, workspace = question.options, conversation.workspace_id
    if wanted := set(options.knowledge_bases):
        bases = KnowledgeBase.objects.visible_to(actor).filter(workspace_id=workspace, pk__in=wanted)
        await _all_there(connection, bases.values("id"), len(wanted), "knowledge_bases")
    if options.model:
        usable = ModelConfig.objects.visible_to(actor).usable_in(workspace).filter(kind=Kind.CHAT, enabled=True)
        await _all_there(connection, usable.filter(pk=options.model).values("id"), 1, "model")
    if files := set(question.attachments):
        given = AttachmentRow.objects.visible_to(actor).filter(workspace_id=workspace, pk__in=files)
        here = models.Q(conversation=conversation.pk) | models.Q(conversation__isnull=True)
        await _all_there(connection, given.filter(here).values("id"), len(files), "attachments")
        await rows.take_attachments(connection, conversation.pk, list(files))


async def _all_there(connection: rows.Connection, queryset: models.QuerySet[Any, Any], count: int, field: str) -> None:
    found = await (await connection.execute(*rows.compiled(queryset))).fetchall()
    if len(found) < count:
        raise NotFound(field=field)


async def _fetch(connection: rows.Connection, queryset: models.QuerySet[Any, Any]) -> rows.DictRow | None:
    return await (await connection.execute(*rows.compiled(queryset))).fetchone()


async def _attached(connection: rows.Connection, row: rows.DictRow, turn_id: UUID) -> tuple[Attachment, ...]:
    """Return what was attached on the way to this turn, this turn's own too."""
    numbers = await rows_branches.read_attachments(connection, row["id"], turn_id, limit=PATH)
    if not numbers:
        return ()
    wanted = AttachmentRow.objects.filter(pk__in=[one for _number, one in numbers]).order_by()
    cursor = await connection.execute(*rows.compiled(wanted.with_facts()))
    facts: dict[UUID, rows.DictRow] = {fact["id"]: fact for fact in await cursor.fetchall()}
    first: dict[UUID, int] = {}
    for number, one in numbers:
        first.setdefault(one, number)
    return tuple(as_given(facts[one], number=number) for one, number in first.items() if one in facts)


async def find_turn(conversation: Conversation, turn_id: UUID) -> Turn:
    """Return a turn of this conversation, whose door the caller has passed. Raises NotFound."""
    try:
        async with (await pool()).connection() as connection:
            row = await _fetch(connection, Turn.objects.filter(conversation=conversation.pk, pk=turn_id).values())
    except psycopg.OperationalError as error:
        raise ServiceUnavailable(service="PostgreSQL") from error
    if row is None:
        raise NotFound
    return Turn(**row)


async def stop_turn(conversation: Conversation, turn_id: UUID | None = None) -> None:
    """Stop a turn of this conversation (by default the running one), in whichever process it runs.

    What was written stays. A question that waits is withdrawn. A turn that is over already is left as
    it is. Raises NotFound for a turn of another conversation.
    """
    turns = Turn.objects.filter(conversation=conversation.pk)
    turns = turns.filter(pk=turn_id) if turn_id else turns.filter(status=Turn.Status.RUNNING)
    try:
        async with (await pool()).connection() as connection:
            row = await _fetch(connection, turns.values("id", "status"))
            if row is None and turn_id:
                raise NotFound
            if row and row["status"] in Turn.ACTIVE and not ENGINE.stop_here(row["id"]):
                await rows_liveness.ask_to_stop(connection, row["id"])
    except psycopg.OperationalError as error:
        if turn_id is None or not ENGINE.stop_here(turn_id):
            raise ServiceUnavailable(service="PostgreSQL") from error


def _give_back(workspace_id: UUID, actor: Who, counted: list[UUID | None]) -> None:
    """Give back what a question took that was not begun; raise QuotaExceeded if that was for want of room."""
    quotas.give_back_to(counted, workspace_id=workspace_id, turns=1)
    quotas.check(["turns"], {("turns", person) for person in counted}, workspace_id=workspace_id, user_id=actor.pk)
