"""Writes to conversations: begin one, ask, stop, delete and restore it."""

from typing import Any
from uuid import UUID, uuid4

import psycopg
from django.db import transaction
from django.utils import timezone, translation

from apps.agents.models import Agent
from apps.agents.turn import AskOptions, TurnRequest
from apps.common.database import pool
from apps.common.errors import NotFound, ServiceUnavailable
from apps.common.text import legible
from apps.conversations import errors, history, rows, rows_liveness
from apps.conversations.engine import ENGINE
from apps.conversations.erasing import UNDO
from apps.conversations.frames import Ask, check_ask
from apps.conversations.models import Conversation, Turn
from apps.knowledge.models import KnowledgeBase
from apps.workspaces import permissions
from apps.workspaces.models import User, Workspace

TITLE_LENGTH = 60  # characters of the first question; pages cut it shorter where they are narrow
ASKABLE = rows.Door(
    lambda user, row: Conversation.objects.visible_to(user).filter(pk=row).values("id", "workspace_id", "agent_id")
)


@transaction.atomic
def start_conversation(*, workspace: Workspace, actor: User, agent: Agent | None = None) -> Conversation:
    """Create an empty conversation; its title comes with the first question.

    Raises:
        NotFound: the actor is not in the workspace, or the agent is not of it.
    """
    permissions.require("ask", actor=actor, workspace=workspace)
    if agent is not None and agent.workspace_id != workspace.pk:
        raise NotFound
    return Conversation.objects.create(workspace=workspace, owner=actor, agent=agent)


async def start_turn(conversation: Conversation, ask: Ask, *, actor: User) -> Turn:
    """Ask a question. Returns at once with the running turn; the engine owns the rest.

    The same ``client_id`` again returns the turn that it began, whatever the rest of the frame
    says.

    Raises:
        TurnRunning: another turn of this conversation is not over.
        NotFound: the conversation, or a named knowledge base, is not the actor's to use.
        ShuttingDown, ServiceUnavailable: nothing was begun; ask again later.
    """
    check_ask(ask)
    try:
        async with rows.connected() as connection:
            await _check_bases(connection, conversation, ask, actor)
            for _attempt in range(3):
                try:
                    return await _begin(connection, conversation, ask, actor)
                except psycopg.errors.UniqueViolation:
                    rival = await rows.find_rival(connection, conversation.pk, ask.client_id)
                if rival and rival["same"]:
                    return Turn(
                        id=rival["id"], conversation_id=conversation.pk, number=rival["number"],
                        client_id=ask.client_id, status=rival["status"], question=rival["question"],
                    )  # fmt: skip
                if rival:
                    raise errors.TurnRunning(turn=str(rival["id"]))
            raise errors.TurnRunning
    except psycopg.OperationalError as error:
        raise ServiceUnavailable(service="PostgreSQL") from error


async def _begin(connection: rows.Connection, conversation: Conversation, ask: Ask, actor: User) -> Turn:
    """Insert the turn and start its task."""
    if not ENGINE.started:
        raise errors.ShuttingDown
    options = AskOptions(tuple(ask.knowledge_bases), ask.web, ask.graph, ask.language)
    turn_id = uuid4()
    row = await rows.begin(
        connection, ASKABLE.bound(actor.pk, conversation.pk), turn_id=turn_id, client_id=ask.client_id,
        question=ask.text, title=title_of(ask.text), options=_stored(options), process=ENGINE.process,
    )  # fmt: skip
    if row is None:
        raise NotFound
    request = TurnRequest(
        turn_id=turn_id, conversation_id=row["id"], workspace_id=row["workspace_id"], user_id=actor.pk,
        agent_id=row["agent_id"], question=ask.text, options=options, number=row["number"],
        history=history.of_conversation(row["id"], before=row["number"]),
    )  # fmt: skip
    ENGINE.begin(request, language=translation.get_language() or "en")
    return Turn(
        id=turn_id, conversation_id=row["id"], number=row["number"], client_id=ask.client_id,
        status=Turn.Status.RUNNING, question=ask.text, options=_stored(options), owner_process=ENGINE.process,
    )  # fmt: skip


def title_of(text: str) -> str:
    """Return the beginning of a first question, as one line of whole words."""
    line = " ".join(legible(text).split())
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1]
    words = cut.rpartition(" ")[0] if line[TITLE_LENGTH - 1] != " " else cut
    return f"{words if len(words) > TITLE_LENGTH // 2 else cut}…"


def _stored(options: AskOptions) -> dict[str, Any]:
    return {
        "knowledge_bases": [str(base) for base in options.knowledge_bases],
        "web": options.web,
        "graph": options.graph,
        "language": options.language,
    }


async def _check_bases(connection: rows.Connection, conversation: Conversation, ask: Ask, actor: User) -> None:
    """Refuse a question that names a base which its asker cannot see."""
    wanted = set(ask.knowledge_bases)
    if not wanted:
        return
    door = KnowledgeBase.objects.visible_to(actor).filter(workspace_id=conversation.workspace_id, pk__in=wanted)
    sql, parameters = rows.compiled(door.values("id"))
    found = await (await connection.execute(sql, parameters)).fetchall()
    if len(found) < len(wanted):
        raise NotFound(field="knowledge_bases")


async def find_turn(conversation: Conversation, turn_id: UUID) -> Turn:
    """Return a turn of this conversation, whose door the caller has passed. Raises NotFound."""
    try:
        async with (await pool()).connection() as connection:
            sql, parameters = rows.compiled(Turn.objects.filter(conversation=conversation.pk, pk=turn_id).values())
            row = await (await connection.execute(sql, parameters)).fetchone()
    except psycopg.OperationalError as error:
        raise ServiceUnavailable(service="PostgreSQL") from error
    if row is None:
        raise NotFound
    return Turn(**row)


async def stop_turn(conversation: Conversation, turn_id: UUID | None = None) -> None:
    """Stop a turn of this conversation (by default the running one), in whichever process it runs.

    What was written stays. A turn that is over already is left as it is. Raises NotFound for a turn
    of another conversation.
    """
    turns = Turn.objects.filter(conversation=conversation.pk)
    turns = turns.filter(pk=turn_id) if turn_id else turns.filter(status__in=Turn.ACTIVE)
    try:
        async with (await pool()).connection() as connection:
            sql, parameters = rows.compiled(turns.values("id", "status"))
            row = await (await connection.execute(sql, parameters)).fetchone()
            if row is None and turn_id:
                raise NotFound
            if row and row["status"] in Turn.ACTIVE and not ENGINE.stop_here(row["id"]):
                await rows_liveness.ask_to_stop(connection, row["id"])
    except psycopg.OperationalError as error:
        if turn_id is None or not ENGINE.stop_here(turn_id):
            raise ServiceUnavailable(service="PostgreSQL") from error


def delete_conversation(*, conversation: Conversation, actor: User) -> None:
    """Hide a conversation from every door at once and stop its turn; erased when Undo has lapsed."""
    with transaction.atomic():
        own = Conversation.objects.editable_by(actor).filter(pk=conversation.pk)
        if not own.update(deleted_at=timezone.now()):
            raise NotFound
        Turn.objects.filter(conversation=conversation, status__in=Turn.ACTIVE).update(stop_requested=True)


def restore_conversation(*, conversation_id: UUID, actor: User) -> Conversation:
    """Undo a deletion that is less than a minute old. Raises NotFound."""
    recent = timezone.now() - UNDO
    mine = Conversation.objects.filter(pk=conversation_id, owner=actor, deleted_at__gt=recent)
    if not mine.update(deleted_at=None):
        raise NotFound
    return Conversation.objects.visible_to(actor).get(pk=conversation_id)
