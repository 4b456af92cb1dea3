"""Conversations whose history the caller keeps, as clients of chat completions do."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from apps.agents.models import Agent
from apps.common.text import storable
from apps.conversations import rows, rows_branches
from apps.conversations.models import Conversation, Message, Turn
from apps.conversations.services.keeping import start_conversation, title_of
from apps.workspaces.models import User, Workspace

LONGEST = 100  # exchanges that are compared, and taken over
LOOKED_AT = 5  # turns that end alike


class Exchange(NamedTuple):
    """A question and its answer."""

    question: str
    answer: str


class Place(NamedTuple):
    """Where a question goes: after ``turn``, or at the conversation's beginning; whether it was ``made`` just now."""

    conversation: Conversation
    turn: Turn | None
    made: bool = False


def continue_conversation(*, workspace: Workspace, agent: Agent, earlier: Sequence[Exchange], actor: User) -> Place:
    """Return the place after exactly these exchanges: where they took place, else in a conversation made of them.

    So a caller who sends the whole history each time gets one conversation, and a branch where they changed it.
    """
    told = [Exchange(storable(one.question), storable(one.answer)) for one in earlier[-LONGEST:]]
    found = _find(workspace, agent, told, actor) if told else None
    return found or _take_over(workspace, agent, told, actor)


def _find(workspace: Workspace, agent: Agent, told: list[Exchange], actor: User) -> Place | None:
    last = told[-1]
    alike = Turn.objects.visible_to(actor).filter(
        conversation__workspace=workspace, conversation__agent=agent, question=last.question, finished_at__isnull=False
    )
    alike = alike.filter(messages__role=Message.Role.ASSISTANT, messages__text=last.answer)
    for turn in alike.select_related("conversation").order_by("-started_at")[:LOOKED_AT]:
        path = rows_branches.path_to(turn.pk, limit=LONGEST)
        texts = {row.pk: row for row in Turn.objects.filter(pk__in=path).with_answers()}
        before = [Exchange(texts[pk].question, texts[pk].answer or "") for pk in reversed(path)]  # type: ignore[attr-defined]
        if before == told:
            return Place(turn.conversation, turn)
    return None


@transaction.atomic
def _take_over(workspace: Workspace, agent: Agent, told: list[Exchange], actor: User) -> Place:
    conversation = start_conversation(workspace=workspace, actor=actor, agent=agent)
    turn: Turn | None = None
    for number, one in enumerate(told, start=1):
        turn = Turn.objects.create(
            conversation=conversation,
            parent=turn,
            number=number,
            client_id=uuid4().hex,
            status=Turn.Status.SUCCEEDED,
            question=one.question,
            finished_at=timezone.now(),
        )
        for role, text in ((Message.Role.USER, one.question), (Message.Role.ASSISTANT, one.answer)):
            Message.objects.create(
                id=rows.message_id(turn.pk, role), conversation=conversation, turn=turn, role=role, text=text
            )
    if told:
        conversation.title = title_of(told[0].question)
        conversation.save(update_fields=["title"])
    return Place(conversation, turn, made=True)
