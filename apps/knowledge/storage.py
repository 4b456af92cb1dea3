"""Rows of a generation, written and erased whole: chunks, vectors and postings by COPY, in one transaction.

All three in PostgreSQL's binary format. Against ``bulk_create`` this is the difference between 40 ms
and 1 ms of our CPU for a document of ten chunks, and a search never sees a part of it.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from struct import Struct
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Model, Q
from django.utils import timezone

from apps.common.database import copy_in, run
from apps.common.text import storable
from apps.knowledge.chunkers.drafts import PARENT, ChunkDraft
from apps.knowledge.errors import EmbeddingSwitched
from apps.knowledge.index_text import POSTED_LEVELS, lexical_input, postings
from apps.knowledge.models import (
    Chunk,
    ChunkOverride,
    ChunkVector,
    Document,
    DocumentImage,
    NextVector,
    PassageTokens,
    Posting,
    RetrievedPassage,
)
from apps.knowledge.retrieval import vector_indexes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
BUFFER_ROWS = 2_000  # vectors laid out at a time
BUFFER_BYTES = 1 << 18
IN_MEMORY_BYTES = 4 << 20  # of a kind of rows; more go through a temporary file

# The columns of fixed width that come first.
_CHUNK = Struct("!h i16s i16s i16s ii ih ii i16s i? i?")
_NUMBER = Struct("!ii")
_LENGTH = Struct("!i")
_NULL = _LENGTH.pack(-1)
_TOKEN_HEAD = Struct("!h i16s i16s i")
_POSTING_TAIL = Struct("!i16s i16s id")


class Mark(NamedTuple):
    """What a chunk is besides its draft: the hash of its text as it was cut, and what people decided about it."""

    content_hash: UUID
    disabled: bool = False
    edited: bool = False


class Batch(NamedTuple):
    """A part of a generation. ``vectors`` is float32, one row a draft, of length 1, NaN where there is none.

    A draft's ``parent`` is an index into ``drafts``. ``tokens`` are the signs of passages' tokens, by place,
    where the model gives them; ``marks`` one a draft; ``failed`` of them the model refused.
    """

    drafts: Sequence[ChunkDraft]
    vectors: "Vectors"
    tokens: Mapping[int, bytes]
    marks: Sequence[Mark]
    failed: int = 0


class _Rows:
    """The rows of a generation as they go over the wire, in memory or, if there are many, on disk."""

    def __init__(self, stack: ExitStack) -> None:
        self.chunks, self.vectors, self.tokens, self.terms = (
            stack.enter_context(SpooledTemporaryFile(max_size=IN_MEMORY_BYTES))  # noqa: SIM115
            for _ in range(4)
        )
        self.passages = self.failed = self.embedded = 0
        self.changed: set[UUID] = set()  # hashes of what people disabled or edited

    def add(self, document: Document, batch: Batch, progress: Callable[[float], None]) -> None:
        drafts, marks = batch.drafts, batch.marks
        ids = _new_ids(len(drafts))
        self.chunks.writelines(_chunk_rows(document, document.generation + 1, drafts, marks, ids))
        self.vectors.writelines(_vector_rows(document, drafts, ids, batch.vectors))
        self.tokens.writelines(_token_rows(document, ids, batch.tokens))
        self.terms.writelines(_posting_rows(document, drafts, marks, ids, progress))
        self.passages += sum(draft.level == PARENT for draft in drafts)
        self.failed += batch.failed
        self.embedded += len(batch.vectors)
        self.changed |= {mark.content_hash for mark in marks if mark.disabled or mark.edited}


def replace_generation(
    document: Document,
    batches: Iterable[Batch],
    *,
    model: str,
    markdown_key: str,
    metadata: dict[str, Any],
    page_count: int | None,
    progress: Callable[[float], None] = lambda share: None,
) -> bool:
    """Make the next generation of a claimed document live, and its old one gone. False if the claim is lost.

    ``model`` names the model that made the vectors and must still be the base's own. ``progress`` is called
    while terms are counted, which is the long part and done before the transaction, so that no row is
    locked meanwhile; what it or ``batches`` raises leaves everything as it was.

    Raises:
        EmbeddingSwitched: the base goes by another model by now; everything is left as it was.
    """
    with ExitStack() as stack:
        rows = _Rows(stack)
        for batch in batches:
            rows.add(document, batch, progress)
        return _commit(document, rows, model=model, markdown_key=markdown_key, metadata=metadata, page_count=page_count)


def _commit(document: Document, rows: _Rows, *, model: str, **fields: Any) -> bool:
    replaced, generation = document.generation, document.generation + 1
    settled: dict[str, Any] = document.settlement(
        Document.Status.INDEXED,
        parsed={},
        generation=generation,
        chunk_count=rows.passages,
        failed_chunks=rows.failed,
        indexed_at=timezone.now(),
        **fields,
    )
    if not connection.in_atomic_block and document.knowledge_base.dimensions:
        vector_indexes.set_aside(document.knowledge_base_id, document.knowledge_base.dimensions, rows.embedded)
    with transaction.atomic():
        model_now = _model_now(document)
        counts = {"chunk_count": settled["chunk_count"], "failed_chunks": settled["failed_chunks"]}
        if model_now is None or not document.end(settled, **counts):
            return False
        if model_now != model:
            raise EmbeddingSwitched
        if replaced:
            _erase_chunks(document.pk)
            _mark_applied(document, rows.changed)
            _carry_images(document, fresh=settled["markdown_key"] != document.markdown_key)
        copy_rows(Chunk, CHUNK_COLUMNS, _blocks(rows.chunks))
        copy_rows(ChunkVector, VECTOR_COLUMNS, _blocks(rows.vectors))
        copy_rows(PassageTokens, SIGN_COLUMNS, _blocks(rows.tokens))
        copy_rows(Posting, POSTING_COLUMNS, _blocks(rows.terms))
    document.take(settled)
    return True


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    return iter(lambda: file.read(BUFFER_BYTES), b"")


def _model_now(document: Document) -> str | None:
    """Return the model that the base, if there is one, goes by until the transaction ends: a move waits for that."""
    statement = "SELECT embedding_model FROM knowledge_knowledgebase WHERE id = %s AND deleted_at IS NULL FOR SHARE"
    return next((model for (model,) in run(statement, [document.knowledge_base_id])), None)


def _carry_images(document: Document, *, fresh: bool) -> None:
    """Let go the pictures of a text that was read anew; those of the same text belong to the next generation."""
    old = DocumentImage.objects.filter(document=document, generation__lte=document.generation)
    if fresh:
        old.delete()
    else:
        old.update(generation=document.generation + 1)


def _mark_applied(document: Document, there: set[UUID]) -> None:
    """Note which of people's changes this generation has a passage for; the others are listed on the page."""
    changes = ChunkOverride.objects.filter(document=document)
    changes.update(applied=Q(content_hash__in=there) if there else False)


def hide_passage(passage_id: UUID) -> None:
    """Take a passage and its children out of every index. In a transaction of the caller's."""
    chunks = Chunk.objects.filter(Q(pk=passage_id) | Q(parent=passage_id, level=Chunk.CHILD))
    ids = list(chunks.values_list("pk", flat=True))
    ChunkVector.objects.filter(chunk__in=ids).delete()
    base = Chunk.objects.values_list("knowledge_base", flat=True).get(pk=passage_id)
    Posting.objects.filter(knowledge_base_id=base, chunk_id__in=ids).delete()
    PassageTokens.objects.filter(chunk__in=ids).delete()
    chunks.update(disabled=True)


def erase_document(document_id: UUID) -> None:
    """Erase a document's row, chunks, vectors and postings in one transaction. Its files are the caller's."""
    with transaction.atomic():
        _erase_chunks(document_id)
        RetrievedPassage.objects.filter(document_id=document_id).delete()
        Document.objects.filter(pk=document_id).delete()


def _erase_chunks(document_id: UUID) -> None:
    """Delete without Django's collector, which would first load every row."""
    with connection.cursor() as cursor:
        for model in (Posting, PassageTokens, ChunkVector, NextVector):
            cursor.execute(f'DELETE FROM "{model._meta.db_table}" WHERE document_id = %s', [document_id])  # noqa: S608
        table = Chunk._meta.db_table
        # Children first: a parent's foreign key would otherwise look for its children row by row.
        cursor.execute(f'DELETE FROM "{table}" WHERE document_id = %s AND parent_id IS NOT NULL', [document_id])  # noqa: S608
        cursor.execute(f'DELETE FROM "{table}" WHERE document_id = %s', [document_id])  # noqa: S608


CHUNK_COLUMNS = (
    "id, knowledge_base_id, document_id, generation, level, ordinal, content_hash, disabled, edited, parent_id, "
    'root_id, text, heading, page, page_end, start, "end"'
)
VECTOR_COLUMNS = "chunk_id, passage_id, knowledge_base_id, document_id, embedding"
SIGN_COLUMNS = "chunk_id, document_id, signs"
POSTING_COLUMNS = "knowledge_base_id, term, chunk_id, document_id, weight"


def copy_rows(model: type[Model], columns: str, rows: Iterator[bytes]) -> None:
    """Write rows that are laid out in PostgreSQL's binary format, without header and trailer."""
    first = next(rows, b"")
    if not first:
        return
    statement = f'COPY "{model._meta.db_table}" ({columns}) FROM STDIN (FORMAT binary)'
    if second := next(rows, b""):
        copy_in(statement, chain([HEADER + first, second], rows, [TRAILER]))
    else:  # of most documents; each write is a round of the driver's
        copy_in(statement, [HEADER + first + TRAILER])


def _new_ids(count: int) -> list[bytes]:
    """Return that many random (version 4) UUIDs as bytes."""
    noise = bytearray(os.urandom(16 * count))
    noise[6::16] = bytes(byte & 0x0F | 0x40 for byte in noise[6::16])
    noise[8::16] = bytes(byte & 0x3F | 0x80 for byte in noise[8::16])
    return [bytes(noise[at : at + 16]) for at in range(0, len(noise), 16)]


def _passage(drafts: Sequence[ChunkDraft], place: int) -> int:
    """Return the passage that a hit on a chunk is a hit on: itself, or the one that it is a child of."""
    parent = drafts[place].parent
    return place if parent is None or drafts[place].level == PARENT else parent


def _root(drafts: Sequence[ChunkDraft], place: int) -> int:
    while (parent := drafts[place].parent) is not None:
        place = parent
    return place


def content_hash(text: str) -> UUID:
    """Return the hash by which a passage is known again, whatever its id."""
    return UUID(bytes=hashlib.md5(storable(text).encode(), usedforsecurity=False).digest())


def _text(value: str) -> bytes:
    encoded = storable(value).encode()
    return _LENGTH.pack(len(encoded)) + encoded


def _flags(mark: Mark) -> tuple[int | bytes | bool, ...]:
    return 16, mark.content_hash.bytes, 1, mark.disabled, 1, mark.edited


def _integer(value: int | None) -> bytes:
    return _NULL if value is None else _NUMBER.pack(4, value)


def _chunk_rows(
    document: Document, generation: int, drafts: Sequence[ChunkDraft], marks: Sequence[Mark], ids: list[bytes]
) -> Iterator[bytes]:
    base, own = document.knowledge_base_id.bytes, document.pk.bytes
    for draft, mark, key in zip(drafts, marks, ids, strict=True):
        place = (4, generation, 2, draft.level, 4, draft.ordinal)
        yield b"".join(
            (
                _CHUNK.pack(17, 16, key, 16, base, 16, own, *place, *_flags(mark)),
                _NULL if draft.parent is None else _LENGTH.pack(16) + ids[draft.parent],
                _NULL if draft.parent is None else _LENGTH.pack(16) + ids[_root(drafts, draft.parent)],
                _text(draft.text),
                _text(draft.heading),
                _integer(draft.page),
                _integer(draft.page_end),
                _integer(draft.start),
                _integer(draft.end),
            )
        )


def _vector_rows(
    document: Document, drafts: Sequence[ChunkDraft], ids: list[bytes], vectors: "Vectors"
) -> Iterator[bytes]:
    import numpy as np  # here, because the web process deletes documents and never writes a vector

    base, own = document.knowledge_base_id.bytes, document.pk.bytes
    there = np.flatnonzero(~np.isnan(vectors[:, 0])) if vectors.shape[1] else np.empty(0, dtype=int)
    for at in range(0, len(there), BUFFER_ROWS):
        places = there[at : at + BUFFER_ROWS]
        chunks, passages = [ids[place] for place in places], [ids[_passage(drafts, place)] for place in places]
        yield wide_rows([chunks, passages, [base] * len(places), [own] * len(places)], vectors[places])


def wide_rows(uuids: Sequence[Sequence[bytes]], vectors: "Vectors") -> bytes:
    """Return rows of some UUIDs and one half-precision vector, laid out by numpy: no Python a number."""
    import numpy as np

    dimensions = vectors.shape[1]
    columns = [(f"{place}{part}", kind) for place in range(len(uuids)) for part, kind in (("_n", ">i4"), ("", "V16"))]
    vector = [("size", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("values", ">f2", (dimensions,))]
    row = np.dtype([("fields", ">i2"), *columns, *vector])
    rows = np.zeros(len(vectors), dtype=row)
    rows["fields"] = len(uuids) + 1
    for place, column in enumerate(uuids):
        rows[f"{place}_n"] = 16
        rows[f"{place}"] = np.array(column, dtype="V16")
    rows["size"] = 4 + 2 * dimensions
    rows["dimensions"] = dimensions
    rows["values"] = vectors
    return rows.tobytes()


def _token_rows(document: Document, ids: list[bytes], tokens: Mapping[int, bytes]) -> Iterator[bytes]:
    own = document.pk.bytes
    for place, signs in tokens.items():
        yield _TOKEN_HEAD.pack(3, 16, ids[place], 16, own, len(signs)) + signs


def _posting_rows(
    document: Document,
    drafts: Sequence[ChunkDraft],
    marks: Sequence[Mark],
    ids: list[bytes],
    progress: Callable[[float], None],
) -> Iterator[bytes]:
    head = b"\x00\x05" + _LENGTH.pack(16) + document.knowledge_base_id.bytes
    own = document.pk.bytes
    for place, (draft, mark, key) in enumerate(zip(drafts, marks, ids, strict=True)):
        if draft.level not in POSTED_LEVELS or mark.disabled:
            continue
        if not place % 64:
            progress(place / len(drafts))
        parts: list[bytes] = []
        for term, weight in postings(lexical_input(document.name, draft.heading, draft.text)).items():
            encoded = term.encode()
            parts += (head, _LENGTH.pack(len(encoded)), encoded, _POSTING_TAIL.pack(16, key, 16, own, 8, weight))
        yield b"".join(parts)
