"""Search at 10,000 chunks against the same legs in hand-written SQL, without rights and without fusion.

``python -m benchmarks.bench_search --explain`` prints the plans of the product's statements.
"""

import asyncio
import random
import statistics
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from benchmarks.report import Ratio

PASSAGES, CHILDREN, DIMENSIONS = 2_900, 7_100, 384
QUERIES = 60
BAR = 1.5

# What somebody would write by hand for one tenant: no door, no state, no idf over what is visible.
FLOOR_VECTOR = """
WITH best AS (
    SELECT passage_id, max(cosine) FILTER (WHERE whole) AS whole, max(cosine) FILTER (WHERE NOT whole) AS part
    FROM (SELECT passage_id, chunk_id = passage_id AS whole, -(embedding <#> %(vector)s::halfvec) AS cosine
          FROM knowledge_chunkvector WHERE knowledge_base_id = %(base)s OFFSET 0) AS scanned
    GROUP BY passage_id
),
scored AS (
    SELECT passage_id AS chunk_id, (coalesce(whole, part) + coalesce(part, whole)) / 2 AS score
    FROM best ORDER BY score DESC LIMIT 32
)
SELECT s.score, c.*, d.name FROM scored s
JOIN knowledge_chunk c ON c.id = s.chunk_id JOIN knowledge_document d ON d.id = c.document_id ORDER BY score DESC
"""
FLOOR_BM25 = """
WITH hits AS (
    SELECT term, chunk_id, weight FROM knowledge_posting
    WHERE knowledge_base_id = %(base)s AND term = ANY(%(terms)s)
),
idf AS (SELECT term, ln(1 + (%(passages)s - count(*) + 0.5) / (count(*) + 0.5)) AS idf FROM hits GROUP BY term),
scored AS (
    SELECT chunk_id, sum(weight * idf) AS score FROM hits JOIN idf USING (term)
    GROUP BY chunk_id ORDER BY score DESC LIMIT 32
)
SELECT s.score, c.*, d.name FROM scored s
JOIN knowledge_chunk c ON c.id = s.chunk_id JOIN knowledge_document d ON d.id = c.document_id ORDER BY score DESC
"""
FLOOR_TRIGRAM = """
SELECT word_similarity(%(query)s, c.text) AS score, c.*, d.name
FROM knowledge_chunk c JOIN knowledge_document d ON d.id = c.document_id
WHERE c.level = 0 AND c.knowledge_base_id = %(base)s AND (SELECT %(query)s) <%% c.text ORDER BY score DESC LIMIT 32
"""


@contextmanager
def scratch_database() -> Iterator[None]:
    """Make a database of our own on the server in use, and drop it."""
    from django.db import connection

    connection.settings_dict["TEST"]["NAME"] = "bench_search"
    before = connection.creation.create_test_db(verbosity=0, autoclobber=True)
    original = "knowsphere" if before == "bench_search" else before
    try:
        yield
    finally:
        connection.creation.destroy_test_db(original, verbosity=0)


def fill() -> tuple[Any, Any, list[str]]:
    """Write one base of passages, children, vectors and postings. Returns person, base, queries."""
    import numpy as np
    from django.db import connection

    from apps.knowledge.index_text import postings
    from apps.knowledge.models import Document, KnowledgeBase
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    rng, numbers = random.Random(7), np.random.default_rng(7)
    person = User.objects.create_user("bench@example.com")
    workspace = create_workspace(name="Bench", owner=person)
    base = KnowledgeBase.objects.create(
        workspace=workspace, name="Bench", embedding_model="builtin:multilingual-e5-small", dimensions=DIMENSIONS
    )
    documents = [
        Document.objects.create(
            workspace=workspace,
            knowledge_base=base,
            name=f"{number}.md",
            size_bytes=1,
            sha256=uuid.uuid4().hex * 2,
            status="indexed",
            generation=1,
            chunk_count=PASSAGES // 100,
        )
        for number in range(100)
    ]
    english = ["".join(rng.choices("aeioubcdfghklmnprstvw", k=rng.randint(3, 9))) for _ in range(8_000)]
    chinese = ["".join(chr(rng.randint(0x4E00, 0x6FFF)) for _ in range(2)) for _ in range(8_000)]
    weights = [1 / (rank + 10) for rank in range(8_000)]

    def text(words: list[str], count: int) -> str:
        joint = " " if words is english else ""
        return joint.join(rng.choices(words, weights, k=count)) + "."

    chunks, vectors, terms = [], [], []
    for number in range(PASSAGES):
        document, parent = documents[number % 100].pk, uuid.uuid4()
        passage = text(english if number % 2 else chinese, 120)
        chunks.append((parent, base.pk, document, 1, 0, number, None, passage, "", 1, 1, 0, len(passage)))
        vectors.append((parent, parent, document))
        terms += [(base.pk, term, parent, document, weight) for term, weight in postings(passage).items()]
        for child in range(CHILDREN * number // PASSAGES, CHILDREN * (number + 1) // PASSAGES):
            pk, part = uuid.uuid4(), passage[:200]
            chunks.append((pk, base.pk, document, 1, 1, child, parent, part, "", 1, 1, 0, len(part)))
            vectors.append((pk, parent, document))
    matrix = numbers.normal(size=(len(vectors), DIMENSIONS))
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    with connection.cursor() as cursor:
        _copy(
            cursor,
            "knowledge_chunk (id, knowledge_base_id, document_id, generation, level, ordinal, parent_id, text,"
            ' heading, page, page_end, start, "end")',
            chunks,
        )
        _copy(
            cursor,
            "knowledge_chunkvector (chunk_id, passage_id, document_id, knowledge_base_id, embedding)",
            [(*row, base.pk, as_text(vector)) for row, vector in zip(vectors, matrix, strict=True)],
        )
        _copy(cursor, "knowledge_posting (knowledge_base_id, term, chunk_id, document_id, weight)", terms)
        cursor.execute("VACUUM ANALYZE")
    half = QUERIES // 2
    questions = [text(english, 6) for _ in range(half)] + [text(chinese, 6) for _ in range(half)]
    return person, base, questions


def as_text(vector: Any) -> str:
    """Write a vector as PostgreSQL reads it."""
    return "[" + ",".join(f"{number:.6f}" for number in vector.tolist()) + "]"


def _copy(cursor: Any, table: str, rows: list[tuple[Any, ...]]) -> None:
    with cursor.copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


async def measure(person: Any, base: Any, questions: list[str]) -> tuple[float, float]:
    """Return p50 in ms: ours without the embedding call, and the floor."""
    from apps.common.database import close_pool, pool
    from apps.knowledge.index_text import query_terms
    from apps.knowledge.retrieval.legs import has_trigrams
    from apps.knowledge.retrieval.questions import embed_question
    from apps.knowledge.retrieval.search import search

    ours, floor = [], []
    row = {"id": base.pk, "workspace_id": base.workspace_id, "embedding_model": base.embedding_model}
    for question in questions[:5] + questions:
        vector = (await embed_question(question, [row])).vectors[0].vector
        parameters = {
            "vector": vector,
            "base": base.pk,
            "terms": list(query_terms(question)),
            "passages": PASSAGES,
            "query": question,
        }
        statements = [FLOOR_VECTOR, FLOOR_BM25]
        if has_trigrams(question, query_terms(question)):
            statements.append(FLOOR_TRIGRAM)
        began = perf_counter()
        async with (await pool()).connection() as connection, connection.pipeline():
            cursors = [await connection.execute(sql, parameters) for sql in statements]
            for cursor in cursors:
                await cursor.fetchall()
        floor.append((perf_counter() - began) * 1000)
        began = perf_counter()
        result = await search(person, question, knowledge_bases=[base.pk], top_k=8)
        embedding = next(stage.ms for stage in result.stages if stage.name == "embed")
        ours.append((perf_counter() - began) * 1000 - embedding)
        if len(result.passages) != 8:
            raise RuntimeError(f"the search found {len(result.passages)} passages: {result.stages}")
    if "--explain" in sys.argv:
        await explain(person, base, questions)
    await close_pool()
    return statistics.median(ours[5:]), statistics.median(floor[5:])


async def explain(person: Any, base: Any, questions: list[str]) -> None:
    """Print how PostgreSQL runs the product's own statements."""
    from apps.common.database import pool
    from apps.knowledge.index_text import query_terms
    from apps.knowledge.retrieval.legs import bases_statement, lexical_leg, vector_leg
    from apps.knowledge.retrieval.scope import readable_bases, readable_documents

    door, terms = readable_documents(person), query_terms(questions[0])
    common: dict[str, Any] = {"bases": [base.pk], "candidates": 32}
    statements = [
        bases_statement(readable_bases(person), [base.pk]),
        vector_leg(door, vector=as_text(__import__("numpy").ones(DIMENSIONS) / DIMENSIONS**0.5), **common),
        lexical_leg(door, terms=terms, **common),
        lexical_leg(door, terms=terms, verbatim=questions[0], **common),
    ]
    async with (await pool()).connection() as connection:
        for sql, parameters in statements:
            cursor = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", parameters)
            print(*(next(iter(row.values())) for row in await cursor.fetchall()), "", sep="\n")


def run() -> list[Ratio]:
    """Compare and return the ratio."""
    with scratch_database():
        ours, floor = asyncio.run(measure(*fill()))
    return [Ratio("search p50 at 10,000 chunks, question embedded", ours, floor, "ms", BAR)]


if __name__ == "__main__":
    import os

    import django

    from knowsphere import postgres

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
    postgres.hold()
    django.setup()
    print(*run(), sep="\n")
