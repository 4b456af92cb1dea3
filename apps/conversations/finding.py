"""Where a text stands in a person's conversations, with the words around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.conversations.models import Message

LONGEST = 200  # characters that may be searched for
MARKER = re.compile(r"\s?\[\[c\d+\]\]")
AROUND = 60  # characters shown on each side


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The first place in a conversation, cut in three so that the page can mark what was found."""

    turn_id: UUID
    before: str
    found: str
    after: str


def excerpts(conversations: Sequence[UUID], text: str) -> dict[UUID, Excerpt]:
    """Return for each conversation, whose door the caller has passed, the newest place that says ``text``.

    One query. A conversation that only its title brought here has none.
    """
    said = Message.objects.filter(conversation__in=conversations, text__icontains=text)
    newest = said.order_by("conversation_id", "-created_at").distinct("conversation_id")
    return {
        row.conversation_id: _cut(row.turn_id, row.text, text)
        for row in newest.only("conversation_id", "turn_id", "text")
    }


def _cut(turn_id: UUID, said: str, text: str) -> Excerpt:
    read = MARKER.sub("", said)  # as readers see it
    whole = read if text.lower() in read.lower() else said
    place = max(whole.lower().find(text.lower()), 0)  # lengths may differ in rare scripts; then nothing worse than off
    begin, end = max(place - AROUND, 0), place + len(text)
    before = f"{'…' if begin else ''}{' '.join(whole[begin:place].split())}"
    spaced = before + (" " if whole[place - 1 : place].isspace() and before else "")
    rest = whole[end : end + AROUND]
    lead = " " if rest[:1].isspace() else ""
    after = f"{lead}{' '.join(rest.split())}{'…' if len(whole) > end + AROUND else ''}"
    return Excerpt(turn_id, spaced, whole[place:end], after)
