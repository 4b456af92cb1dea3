"""A database of tenants to search in: passages, children, vectors, postings, signs, written by COPY.

Vectors lie in clusters, as those of texts do: an index that meets noise without any order would be measured at what it
never sees. Everything is drawn from one seed.
"""

import random
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

DIMENSIONS, CLUSTERS = 384, 400
PASSAGES_A_CHUNK = 0.29  # of the chunks are passages, the rest their children
WORDS = 60  # of a passage
SIGNS = 48 * 120  # bytes: of 120 tokens
COLUMNS = {
    "chunk": "knowledge_chunk (id, knowledge_base_id, document_id, generation, level, ordinal, parent_id, text,"
    ' heading, page, page_end, start, "end", content_hash, disabled, edited)',
    "vector": "knowledge_chunkvector (chunk_id, passage_id, document_id, knowledge_base_id, embedding)",
    "posting": "knowledge_posting (knowledge_base_id, term, chunk_id, document_id, weight)",
    "tokens": "knowledge_passagetokens (chunk_id, document_id, signs)",
}


@dataclass(frozen=True)
class World:
    """Who searches, each tenant's base (the largest first), and questions with their vectors."""

    person: Any
    bases: list[Any]
    questions: list[str]
    vectors: Any


@contextmanager
def scratch_database(name: str) -> Iterator[None]:
    """Make a database of our own on the server in use, and drop it."""
    from django.db import connection

    connection.settings_dict["TEST"]["NAME"] = name
    before = connection.creation.create_test_db(verbosity=0, autoclobber=True)
    original = "knowsphere" if before == name else before
    try:
        yield
    finally:
        connection.creation.destroy_test_db(original, verbosity=0)


def skewed(chunks: int, tenants: int) -> list[int]:
    """Return sizes that add up to about ``chunks``: the n-th tenant has 1/n of the first one's."""
    first = chunks / sum(1 / n for n in range(1, tenants + 1))
    return [max(10, round(first / n)) for n in range(1, tenants + 1)]


def fill(sizes: Sequence[int], *, questions: int, words: int = WORDS, signs: int = SIGNS) -> World:
    """Write one base a tenant, each with that many chunks. One person is in all tenants' workspaces.

    ``words`` of a passage and bytes of its ``signs`` may be fewer where only vectors are measured.
    """
    import numpy as np
    from django.db import connection

    from apps.knowledge.models import KnowledgeBase
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    drawn = _Draw(words, signs)
    person = User.objects.create_user("bench@example.com")
    bases = []
    with connection.cursor() as cursor:
        for number, size in enumerate(sizes):
            workspace = create_workspace(name=f"Tenant {number}", owner=person)
            base = KnowledgeBase.objects.create(
                workspace=workspace,
                name="Bench",
                embedding_model="builtin:multilingual-e5-small",
                dimensions=DIMENSIONS,
            )
            _fill_base(cursor, drawn, base, size)
            bases.append(base)
        cursor.execute("VACUUM ANALYZE")
    asked = [drawn.text(6, number) for number in range(questions)]
    return World(person, bases, asked, drawn.vectors(np.arange(questions) % CLUSTERS))


class _Draw:
    """Words by their rank, half of the passages English, half Chinese; vectors around their cluster's centre."""

    def __init__(self, words: int, signs: int) -> None:
        import numpy as np

        self.words, self.signs = words, signs
        self.rng, self.numbers = random.Random(7), np.random.default_rng(7)
        self.english = [
            "".join(self.rng.choices("aeioubcdfghklmnprstvw", k=self.rng.randint(3, 9))) for _ in range(8_000)
        ]
        self.chinese = ["".join(chr(self.rng.randint(0x4E00, 0x6FFF)) for _ in range(2)) for _ in range(8_000)]
        self.weights = [1 / (rank + 10) for rank in range(8_000)]
        self.centres = self.numbers.normal(size=(CLUSTERS, DIMENSIONS)).astype(np.float32)

    def text(self, count: int, number: int) -> str:
        words, joint = (self.english, " ") if number % 2 else (self.chinese, "")
        return joint.join(self.rng.choices(words, self.weights, k=count)) + "."

    def vectors(self, clusters: Any) -> Any:
        import numpy as np

        noise = self.numbers.normal(size=(len(clusters), DIMENSIONS)).astype(np.float32)
        found = self.centres[clusters] + 0.8 * noise
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def _fill_base(cursor: Any, drawn: _Draw, base: Any, size: int) -> None:
    from apps.knowledge.index_text import postings
    from apps.knowledge.models import Document

    passages = max(1, round(size * PASSAGES_A_CHUNK))
    documents = [
        Document(
            workspace_id=base.workspace_id,
            knowledge_base=base,
            name=f"{number}.md",
            size_bytes=1,
            sha256=uuid.uuid4().hex * 2,
            status="indexed",
            generation=1,
            chunk_count=-(-passages // max(1, passages // 30)),
        )
        for number in range(max(1, passages // 30))
    ]
    Document.objects.bulk_create(documents)
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
    owners: list[tuple[uuid.UUID, uuid.UUID, uuid.UUID]] = []
    clusters: list[int] = []
    for number in range(passages):
        document, parent = documents[number % len(documents)].pk, uuid.uuid4()
        cluster = drawn.rng.randrange(CLUSTERS)
        passage = drawn.text(drawn.words, number)
        rows["chunk"].append(_chunk(parent, base, document, 0, number, None, passage))
        rows["tokens"].append((parent, document, drawn.numbers.bytes(drawn.signs)))
        owners.append((parent, parent, document))
        terms = postings(passage).items()
        rows["posting"] += [(base.pk, term, parent, document, weight) for term, weight in terms]
        children = (size - passages) * (number + 1) // passages - (size - passages) * number // passages
        for _ in range(children):
            pk = uuid.uuid4()
            rows["chunk"].append(_chunk(pk, base, document, 1, len(owners), parent, passage[:100]))
            owners.append((pk, parent, document))
        clusters += [cluster] * (len(owners) - len(clusters))
        if len(owners) >= 20_000:
            _flush(cursor, drawn, base, rows, owners, clusters)
    _flush(cursor, drawn, base, rows, owners, clusters)


def _chunk(pk: Any, base: Any, document: Any, level: int, ordinal: int, parent: Any, text: str) -> tuple[Any, ...]:
    return (pk, base.pk, document, 1, level, ordinal, parent, text, "", 1, 1, 0, len(text), pk, False, False)


def _flush(
    cursor: Any, drawn: _Draw, base: Any, rows: dict[str, list[tuple[Any, ...]]], owners: list[Any], clusters: list[int]
) -> None:
    import numpy as np

    matrix = drawn.vectors(np.array(clusters, dtype=int))
    rows["vector"] = [(*owner, base.pk, as_text(row)) for owner, row in zip(owners, matrix, strict=True)]
    for name, columns in COLUMNS.items():
        with cursor.copy(f"COPY {columns} FROM STDIN") as copy:
            for row in rows[name]:
                copy.write_row(row)
        rows[name].clear()
    owners.clear()
    clusters.clear()


def as_text(vector: Any) -> str:
    """Write a vector as PostgreSQL reads it."""
    return "[" + ",".join(f"{number:.5f}" for number in vector.tolist()) + "]"
