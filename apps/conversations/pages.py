"""What the pages of a conversation show, read in a fixed number of queries however long it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch
from django.utils.safestring import SafeString

from apps.conversations import steps
from apps.conversations.models import Citation, Conversation, Message, Turn, TurnEvent
from apps.conversations.rendering import AnswerRenderer, anchor_of

TURNS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn as ``_turn.html`` draws it. ``sources`` are the cited ones, by the number that is shown."""

    turn: Turn
    anchor: str
    html: SafeString
    text: str
    sources: list[tuple[int, Citation]]
    steps: list[steps.Line]
    seconds: float | None
    running: bool

    @property
    def usage(self) -> dict[str, Any]:
        """The tokens that the vendor counted; empty where none did."""
        return self.turn.usage if self.turn.usage.get("prompt") else {}

    @property
    def cached_percent(self) -> int:
        """The share of the prompt that the vendor had cached, in hundredths."""
        return round(100 * self.usage.get("cached", 0) / self.usage["prompt"]) if self.usage else 0

    @property
    def by_builtin(self) -> bool:
        """Whether the small built-in model answered."""
        return self.turn.model.startswith("builtin")


def show_turns(conversation: Conversation, *, before: int | None = None) -> tuple[list[ShownTurn], int | None]:
    """Return the newest turns, oldest first, and the number to pass as ``before`` for the ones above."""
    turns = conversation.turns.order_by("-number").prefetch_related(*_parts())
    if before is not None:
        turns = turns.filter(number__lt=before)
    rows = list(turns[: TURNS_SHOWN + 1])
    earlier = rows[TURNS_SHOWN - 1].number if len(rows) > TURNS_SHOWN else None
    return [show_turn(turn) for turn in reversed(rows[:TURNS_SHOWN])], earlier


def show_turn(turn: Turn) -> ShownTurn:
    """Return one turn as it is drawn; answer, citations and steps of a running one are still to come."""
    running = turn.status in Turn.ACTIVE
    answers = [message for message in turn.messages.all() if message.role == Message.Role.ASSISTANT]
    text, citations = "", []
    if answers and not running:
        text, citations = answers[0].text, list(answers[0].citations.all())
    renderer = AnswerRenderer({row.n: row for row in citations}, anchor=anchor_of(turn.pk))
    html, numbers = renderer.render(text), renderer.shown
    shown = sorted(((numbers[row.n], row) for row in citations if row.n in numbers), key=lambda pair: pair[0])
    events: Sequence[TurnEvent] = () if running else turn.shown_events  # type: ignore[attr-defined]
    return ShownTurn(
        turn=turn,
        anchor=anchor_of(turn.pk),
        html=html,
        text=text,
        sources=shown,
        steps=steps.timeline(events, answered=bool(text), over=not running),
        seconds=(turn.finished_at - turn.started_at).total_seconds() if turn.finished_at else None,
        running=running,
    )


def with_parts(turns: Any) -> Any:
    """Add to a queryset of turns what ``show_turn`` reads."""
    return turns.prefetch_related(*_parts())


def _parts() -> list[Prefetch[Any]]:
    events = TurnEvent.objects.filter(type__in=steps.SHOWN_TYPES).order_by("turn_id", "seq")
    return [
        Prefetch("messages", Message.objects.prefetch_related("citations")),
        Prefetch("events", events, to_attr="shown_events"),
    ]
