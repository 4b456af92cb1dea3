"""What of a person's memory belongs to a question."""

from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow

from apps.common.database import read_together
from apps.knowledge.index_text import postings
from apps.knowledge.models import Document
from apps.memory.models import DocumentAffinity, MemoryItem, MemorySwitch
from apps.workspaces.doors import DoorQuery, Statement
from apps.workspaces.principals import Who

ABOUT_THE_PERSON = 10  # newest profile and interest items
FACTS = 5  # that share the most with the question
CONSIDERED = 300  # newest items of any kind that are looked at
CHARACTERS = 2_000  # of all together
DOCUMENTS = 5  # often consulted ones


OWN = DoorQuery[MemoryItem](
    lambda who, workspace: (
        MemoryItem.objects.visible_to(who)
        .filter(workspace_id=workspace)
        .order_by("-created_at")
        .only("kind", "text")[:CONSIDERED]
    )
)
OFF = DoorQuery[MemorySwitch](
    lambda who, workspace: MemorySwitch.objects.visible_to(who).filter(workspace_id=workspace)
)
CONSULTED = DoorQuery[DocumentAffinity](
    lambda who, workspace: (
        DocumentAffinity.objects.editable_by(who).filter(workspace_id=workspace).often().values("document")[:1]
    )
)
OFTEN = DoorQuery[Document](
    lambda who, workspace: (
        Document.objects.visible_to(who)
        .filter(
            pk__in=DocumentAffinity.objects.editable_by(who)
            .filter(workspace_id=workspace)
            .often()
            .values("document")[:DOCUMENTS]
        )
        .only("name")
        .order_by("name")
    )
)


def statements(who: Who, workspace_id: UUID) -> list[Statement]:
    """Return what to read for ``recall``, to run beside other statements."""
    return [query.statement(who, workspace=workspace_id) for query in (OFF, OWN, CONSULTED)]


async def recall(
    off: Sequence[DictRow],
    items: Sequence[DictRow],
    consulted: Sequence[DictRow],
    *,
    who: Who,
    workspace_id: UUID,
    question: str,
) -> list[str]:
    """Return what of a person's memory belongs to a question, given the rows of ``statements``.

    Only who consulted documents often has their names read: the door of documents is the dearest.
    """
    if off:
        return []
    often: Sequence[DictRow] = ()
    if consulted:
        [often] = await read_together([OFTEN.statement(who, workspace=workspace_id)])
    return picked(items, often, question=question)


def picked(items: Sequence[DictRow], often: Sequence[DictRow], *, question: str) -> list[str]:
    """Return what belongs to a question, most useful first, capped.

    Profile and interests come always; facts only where they share a word with the question, rarer
    words counting more. Documents that two answers cited or more come last, by name. Rows are those of
    this moment, so a deleted item is gone at once.
    """
    person = [item["text"] for item in items if item["kind"] != MemoryItem.Kind.FACT][:ABOUT_THE_PERSON]
    facts = [item["text"] for item in items if item["kind"] == MemoryItem.Kind.FACT]
    chosen: list[str] = []
    room = CHARACTERS
    for text in [*person, *relevant(facts, question)[:FACTS]]:
        if len(text) > room:
            break
        room -= len(text)
        chosen.append(text)
    names = [" ".join(row["name"].split())[:120] for row in often]
    return [*chosen, f"Often consulted: {', '.join(names)}"] if names else chosen


def relevant(facts: list[str], question: str) -> list[str]:
    """Return the facts that share a term with the question, the best first."""
    asked = set(postings(question))
    terms = [set(postings(fact)) for fact in facts]
    often = {term: sum(term in fact for fact in terms) for term in asked}
    scores = [sum(1 / often[term] for term in asked & fact) for fact in terms]
    order = sorted(range(len(facts)), key=lambda i: -scores[i])
    return [facts[i] for i in order if scores[i] > 0]
