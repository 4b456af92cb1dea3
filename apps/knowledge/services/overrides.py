"""What people decided about passages, carried from one generation to the next by the hash of the text."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from django.db.models import Exists, OuterRef, Q

from apps.knowledge.chunkers.drafts import CHILD, PARENT, ChunkDraft
from apps.knowledge.models import Chunk, ChunkOverride, Document
from apps.knowledge.storage import Mark, content_hash

Recut = Callable[[str], list[ChunkDraft]]


def applied(
    document: Document, drafts: Sequence[ChunkDraft], *, recut: Recut, numbers: dict[int, int]
) -> tuple[list[ChunkDraft], list[Mark]]:
    """Return the drafts with people's changes in them, and a mark for each.

    ``numbers`` counts, by level, what a document's earlier parts have become.

    A disabled passage stays with its children, to be enabled again. An edited one gets its text, and
    in place of its children those that ``recut`` cuts the new text into.
    """
    marks = [Mark(content_hash(draft.text)) for draft in drafts]
    if not document.generation:  # nobody can have changed what was never there
        return list(drafts), marks
    changes = {row.content_hash: row for row in ChunkOverride.objects.filter(document=document)}
    if not changes:
        return list(drafts), marks
    made: list[ChunkDraft] = []
    made_marks: list[Mark] = []
    parents: list[int | None] = []  # places in ``drafts``, None for a child that was made here
    places: dict[int, int] = {}  # of a draft in the new list
    recut_passages: set[int] = set()
    for place, (draft, mark) in enumerate(zip(drafts, marks, strict=True)):
        above = draft.parent
        if draft.level == CHILD and above is not None:
            if above in recut_passages:
                continue
            mark = mark._replace(disabled=made_marks[places[above]].disabled)
        change = changes.get(mark.content_hash) if draft.level == PARENT else None
        if change:
            mark = mark._replace(disabled=change.disabled, edited=bool(change.text))
        places[place] = len(made)
        passage = replace(draft, text=change.text) if change and change.text else draft
        made.append(passage)
        made_marks.append(mark)
        parents.append(above)
        if passage is not draft:
            recut_passages.add(place)
            for child in children(passage, places[place], recut):
                made.append(child)
                made_marks.append(Mark(content_hash(child.text), disabled=mark.disabled, edited=True))
                parents.append(None)
    moved = [
        draft if above is None else replace(draft, parent=places[above])
        for draft, above in zip(made, parents, strict=True)
    ]
    return renumbered(moved, numbers), made_marks


def waiting(document: Document) -> bool:
    """Whether people decided something about the passages that answer which these do not show yet."""
    said = ChunkOverride.objects.filter(document=document, content_hash=OuterRef("content_hash"))
    edit = Exists(said.exclude(text=""))
    same = Exists(said.filter(text=OuterRef("text")).exclude(text=""))
    off = Exists(said.filter(disabled=True))
    behind = Q(edit, edited=False) | Q(~same, edited=True) | Q(off, disabled=False) | Q(~off, disabled=True)
    return Chunk.objects.filter(behind, document=document, level=Chunk.PARENT).exists()


def children(passage: ChunkDraft, place: int, recut: Recut) -> list[ChunkDraft]:
    """Return the parts that an edited passage is searched by; none where it is short enough to be its own."""
    pieces = [piece for piece in recut(passage.text) if piece.text.strip()]
    parts = [piece for piece in pieces if piece.level == CHILD] or [piece for piece in pieces if piece.level == PARENT]
    if len(parts) < 2:
        return []
    return [replace(passage, level=CHILD, parent=place, text=part.text) for part in parts]


def renumbered(drafts: list[ChunkDraft], counts: dict[int, int]) -> list[ChunkDraft]:
    """Return the drafts with their ordinals within each level made gapless, going on from ``counts``."""
    numbered = []
    for draft in drafts:
        ordinal = counts.get(draft.level, 0)
        counts[draft.level] = ordinal + 1
        numbered.append(replace(draft, ordinal=ordinal))
    return numbered
