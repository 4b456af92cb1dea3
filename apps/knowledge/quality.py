"""Which passages of a base are likely to answer badly, found in SQL. Reads behind the caller's door."""

from collections.abc import Callable
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Value
from django.db.models.functions import Length
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models import Chunk, ChunkVector, KnowledgeBase, RetrievedPassage
from apps.knowledge.querysets import ChunkQuerySet

SHORT, LONG = 40, 4_000  # characters
BUCKET, BUCKETS = 100, 20  # of the histogram of lengths


def _short(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    return chunks.filter(level=Chunk.PARENT, disabled=False).annotate(length=Length("text")).filter(length__lt=SHORT)


def _long(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    return chunks.filter(level=Chunk.PARENT, disabled=False).annotate(length=Length("text")).filter(length__gt=LONG)


def _duplicate(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    twin = Chunk.objects.filter(
        knowledge_base=base, level=Chunk.PARENT, content_hash=OuterRef("content_hash"), document__deleted_at=None
    ).exclude(pk=OuterRef("pk"))
    return chunks.filter(Exists(twin), level=Chunk.PARENT, disabled=False)


def _orphan(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    """Passages that no vector leads to: the model refused them and all their parts."""
    vectors = ChunkVector.objects.filter(passage_id=OuterRef("pk"))
    return chunks.filter(~Exists(vectors), level=Chunk.PARENT, disabled=False)


def _headless(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    """Rows of a table without the two lines that say what its columns are."""
    rows = chunks.filter(level=Chunk.PARENT, disabled=False, text__regex=r"^\|[^\n]*\|[ \t]*(\n|$)")
    return rows.exclude(text__regex=r"(^|\n)\|[ \t:|-]*-[ \t:|-]*\|[ \t]*(\n|$)")


def _unused(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    used = RetrievedPassage.objects.filter(document_id=OuterRef("document"), content_hash=OuterRef("content_hash"))
    return chunks.filter(~Exists(used), level=Chunk.PARENT, disabled=False)


def _disabled(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    return chunks.filter(level=Chunk.PARENT, disabled=True)


def _edited(chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    return chunks.filter(level=Chunk.PARENT, edited=True)


Finding = Callable[[ChunkQuerySet, KnowledgeBase], ChunkQuerySet]
FIRST = "duplicate"
FINDINGS: dict[str, tuple[Any, Any, Finding]] = {
    "duplicate": (_("Repeated"), _("The same text stands in the base more than once."), _duplicate),
    "orphan": (_("Without a vector"), _("The model refused them: only their words lead here."), _orphan),
    "headless": (_("Table without heads"), _("Rows whose columns have no names."), _headless),
    "long": (_("Over-long"), _("More than a reader, or a model, takes in at once."), _long),
    "short": (_("Very short"), _("Hardly enough words to be found by, or to answer from."), _short),
    "unused": (_("Never retrieved"), _("No answer has had these among its sources yet."), _unused),
    "disabled": (_("Disabled"), _("People chose that these are not found."), _disabled),
    "edited": (_("Edited"), _("People changed what these say."), _edited),
}


def finding(kind: str, chunks: ChunkQuerySet, base: KnowledgeBase) -> ChunkQuerySet:
    """Return the passages of one kind; the first kind for an unknown word."""
    return FINDINGS.get(kind, FINDINGS[FIRST])[2](chunks, base)


def counts(chunks: ChunkQuerySet, base: KnowledgeBase) -> list[dict[str, Any]]:
    """Return each kind with its name, what it means and how many passages are of it; in one statement."""
    first, *others = (
        found(chunks, base).order_by().values(kind=Value(kind)).annotate(count=Count("pk"))
        for kind, (_name, _meaning, found) in FINDINGS.items()
    )
    counted = {row["kind"]: row["count"] for row in first.union(*others, all=True)}
    return [
        {"kind": kind, "name": name, "meaning": meaning, "count": counted.get(kind, 0)}
        for kind, (name, meaning, _found) in FINDINGS.items()
    ]


def lengths(passages: ChunkQuerySet) -> list[dict[str, int]]:
    """Return how many passages have which length, in steps of BUCKET characters; the last one and longer together."""
    rows = passages.annotate(length=Length("text"), step=F("length") / BUCKET)
    found: dict[int, int] = {}
    for step, count in rows.values_list("step").annotate(count=Count("pk")).order_by("step"):
        place = min(step, BUCKETS - 1)
        found[place] = found.get(place, 0) + count
    most = max(found.values(), default=1)
    last = max(found, default=0)
    return [
        {
            "from": place * BUCKET,
            "count": found.get(place, 0),
            "x": place * 12,
            "y": 60 - round(56 * found.get(place, 0) / most),
            "height": round(56 * found.get(place, 0) / most),
        }
        for place in range(last + 1)
    ]


def with_repeated(passages: ChunkQuerySet) -> ChunkQuerySet:
    """Add ``repeated``: whether the same text stands among these passages of one document once more."""
    twin = passages.filter(content_hash=OuterRef("content_hash")).exclude(pk=OuterRef("pk"))
    return passages.annotate(repeated=Exists(twin))
