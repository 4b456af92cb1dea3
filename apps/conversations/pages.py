"""What the pages of a conversation show, read in a fixed number of queries however long it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Prefetch
from django.utils.safestring import SafeString

from apps.conversations import rows_branches, steps
from apps.conversations.models import Attachment, Citation, Conversation, Feedback, Message, Turn, TurnEvent
from apps.conversations.rendering import AnswerRenderer, anchor_of
from apps.models import repeats
from apps.workspaces.models import User

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
    feedback: Feedback | None = None
    attachments: Sequence[Attachment] = ()
    versions: Sequence[UUID] = ()  # of this place in the conversation, in the order of asking

    @property
    def version(self) -> int:
        """Which of the versions this is, from 1."""
        return self.versions.index(self.turn.pk) + 1 if self.turn.pk in self.versions else 1

    @property
    def version_before(self) -> UUID | None:
        """The version asked before this one."""
        return self.versions[self.version - 2] if self.version > 1 else None

    @property
    def version_after(self) -> UUID | None:
        """The version asked after this one."""
        return self.versions[self.version] if self.version < len(self.versions) else None

    @property
    def cost(self) -> str:
        """What the turn cost, as a number with its currency; empty where nobody knows or it was free."""
        amount = self.turn.usage.get("cost")
        if not isinstance(amount, int | float) or not amount:
            return ""
        return f"{self.turn.usage.get('currency') or ''} {amount:.4f}".strip()

    @property
    def may_continue(self) -> bool:
        """Whether a model could go on where the answer broke off; the built-in one quotes, and cannot."""
        broken = self.turn.status in {Turn.Status.STOPPED, Turn.Status.FAILED, Turn.Status.INTERRUPTED}
        return broken and bool(self.text) and not self.by_builtin

    @property
    def usage(self) -> dict[str, Any]:
        """The tokens that the vendor counted; empty where none did."""
        return self.turn.usage if self.turn.usage.get("prompt") else {}

    @property
    def cached_percent(self) -> int:
        """The share of the prompt that the vendor had cached, in hundredths."""
        return round(100 * self.usage.get("cached", 0) / self.usage["prompt"]) if self.usage else 0

    @property
    def reused_percent(self) -> int:
        """The share of the prompts' bytes that repeated the request before, in hundredths."""
        return round(100 * float(self.usage.get("prefix_reused", 0)))

    @property
    def breaks(self) -> str:
        """Where the turn's prompts stopped to repeat the one before, in words."""
        codes = [one.get("break") for one in self.usage.get("requests") or [] if isinstance(one, dict)]
        return ", ".join(repeats.place(code) for code in dict.fromkeys(codes) if code)

    @property
    def by_builtin(self) -> bool:
        """Whether the small built-in model answered."""
        return self.turn.model.startswith("builtin")


@dataclass(frozen=True, slots=True)
class Window:
    """Some turns of one branch, oldest first.

    ``earlier`` is what to pass as ``before`` for the turns above, ``end`` the branch's newest turn.
    """

    turns: list[ShownTurn]
    earlier: UUID | None
    end: UUID | None

    @property
    def at_end(self) -> bool:
        """Whether the branch's newest turn is shown, or there is none."""
        return not self.turns or self.turns[-1].turn.pk == self.end


def show_turns(
    conversation: Conversation, *, reader: User, turn: UUID | None = None, before: UUID | None = None
) -> Window:
    """Return the newest turns of the branch that ``turn`` is on, by default of the turn asked last.

    Where ``turn`` is too far up to be among them, those up to it. ``before`` asks for the ones above a
    turn. Ids that are not of this conversation are passed over. A fixed number of queries.
    """
    turns = conversation.turns.order_by("-number")
    named = [one for one in (turn, before) if one]
    known = set(turns.filter(pk__in=named).values_list("pk", flat=True)) if named else set()
    anchor = next((one for one in (turn, before) if one in known), None)
    newest = turns.values_list("pk", flat=True).first()
    if newest is None:
        return Window([], None, None)
    end = rows_branches.newest_below(anchor) if anchor else newest
    ids = rows_branches.path_to(end, limit=TURNS_SHOWN + 1)
    if before in known:
        ids = rows_branches.path_to(before, limit=TURNS_SHOWN + 2)[1:]
    elif turn in known and turn not in ids[:TURNS_SHOWN]:
        ids = rows_branches.path_to(turn, limit=TURNS_SHOWN + 1)
    earlier = ids[TURNS_SHOWN - 1] if len(ids) > TURNS_SHOWN else None
    found = with_parts(Turn.objects.filter(pk__in=ids[:TURNS_SHOWN]), reader=reader)
    rows = sorted(found, key=lambda row: row.number)
    return Window(with_versions(conversation, [show_turn(row) for row in rows]), earlier, end)


def with_versions(conversation: Conversation, shown: list[ShownTurn]) -> list[ShownTurn]:
    """Add to turns what belongs to them and is not theirs alone: other versions, and their files. Two queries."""
    siblings: dict[UUID | None, list[UUID]] = {}
    parents = {turn.turn.parent_id for turn in shown}
    known = conversation.turns.filter(parent__in=parents) | conversation.turns.filter(parent__isnull=True)
    for pk, parent in known.order_by("number").values_list("pk", "parent_id"):
        siblings.setdefault(parent, []).append(pk)
    named = {one for turn in shown for one in turn.turn.options.get("attachments") or ()}
    files = {str(row.pk): row for row in conversation.attachments.filter(pk__in=named).defer("text")} if named else {}
    return [
        replace(
            turn,
            versions=siblings.get(turn.turn.parent_id, []),
            attachments=[files[one] for one in turn.turn.options.get("attachments") or () if one in files],
        )
        for turn in shown
    ]


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
        feedback=getattr(turn, "feedback", None),
    )


def with_parts(turns: Any, *, reader: User | None = None) -> Any:
    """Add to a queryset of turns what ``show_turn`` reads; of sources, whether ``reader`` may read them now."""
    events = TurnEvent.objects.filter(type__in=steps.SHOWN_TYPES).order_by("turn_id", "seq")
    cited = Citation.objects.with_readable(reader) if reader else Citation.objects.all()
    return turns.select_related("feedback").prefetch_related(
        Prefetch("messages", Message.objects.prefetch_related(Prefetch("citations", cited))),
        Prefetch("events", events, to_attr="shown_events"),
    )
