"""The legs of a search: one SQL statement each, each behind the reader's door.

Every leg returns the same columns. ``leg, rank, score, chunk_id`` come for up to DEPTH passages, so
that a passage that another leg brings has its true score here too; what a Passage needs besides
comes for the first ``candidates`` of them. ``ms`` is how long the statement had run at that row.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.knowledge.retrieval.scope import Scope

Statement = tuple[str, dict[str, Any]]

DEPTH = 100  # passages that a leg scores
SHORTEST_VERBATIM, LONGEST_VERBATIM = 3, 32  # characters of a question that trigrams are asked about

_DOOR = """door AS MATERIALIZED (
    SELECT id, chunk_count FROM ({door}) AS readable WHERE knowledge_base_id = ANY(%(bases)s)
)"""
_IN_FULL = """
SELECT r.leg, r.rank, r.score, r.chunk_id, c.document_id, c.knowledge_base_id, d.name AS document,
       c.text, c.heading, c.page, c.page_end, c.start, c."end",
       1000 * extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS ms
FROM ranked r
LEFT JOIN knowledge_chunk c ON c.id = CASE WHEN r.rank <= %(candidates)s THEN r.chunk_id END
LEFT JOIN knowledge_document d ON d.id = c.document_id
ORDER BY r.leg, r.rank
"""


def bases_statement(door: Scope, bases: Sequence[UUID]) -> Statement:
    """Return the statement that tells which of the bases may be read, and by which model they are embedded."""
    sql = f"SELECT * FROM ({door.sql}) AS readable WHERE id = ANY(%(bases)s)"  # noqa: S608
    return sql, {**door.parameters, "bases": list(bases)}


def vector_leg(door: Scope, *, bases: Sequence[UUID], vector: str, candidates: int) -> Statement:
    """Return the statement of the vector leg: cosine with the question, exactly, passage by passage.

    A passage's score is the mean of its own cosine and its best child's: the first says what it is
    about, the second that the answer stands in it. Siblings thus collapse before anything is cut.

    Args:
        door: readable documents, see ``scope``.
        bases: bases of one embedding model.
        vector: the question's embedding as text, ``[0.1,…]``, L2-normalised like the stored ones.
        candidates: passages to return in full.

    Plan: scan of the bases' vectors by ``knowledge_base_id``, HashAggregate by passage, hash
    semi-join of the passages with the door (before it, it would cost a third more), top-N sort:
    linear in the bases' vectors, and never approximate (an HNSW index under tenants' filters loses
    passages). ``<#>`` is the negative inner product:
    of normalised vectors that is the cosine, at less cost.
    """
    sql = f"""
WITH {_DOOR.format(door=door.sql)},
scanned AS (
    SELECT v.passage_id, v.document_id, v.chunk_id = v.passage_id AS whole,
           -(v.embedding <#> %(vector)s::halfvec) AS cosine
    FROM knowledge_chunkvector v
    WHERE v.knowledge_base_id = ANY(%(bases)s)
    OFFSET 0 -- or each aggregate below would compute the cosine anew
),
best AS (
    SELECT passage_id, document_id,
           max(cosine) FILTER (WHERE whole) AS whole, max(cosine) FILTER (WHERE NOT whole) AS part
    FROM scanned GROUP BY passage_id, document_id
),
scored AS (
    SELECT passage_id AS chunk_id, (coalesce(whole, part) + coalesce(part, whole)) / 2 AS score
    FROM best WHERE document_id IN (SELECT id FROM door)
    ORDER BY score DESC, passage_id LIMIT {DEPTH}
),
ranked AS (
    SELECT 'vector' AS leg, row_number() OVER (ORDER BY score DESC, chunk_id) AS rank, score, chunk_id FROM scored
)
{_IN_FULL}"""  # noqa: S608
    return sql, {**door.parameters, "bases": list(bases), "vector": vector, "candidates": candidates}


def lexical_leg(
    door: Scope, *, bases: Sequence[UUID], terms: Mapping[str, float], candidates: int, verbatim: str = ""
) -> Statement:
    """Return the statement of the lexical leg: BM25 over postings, and pg_trgm for what stands there verbatim.

    A term's idf is taken over the selected bases, at query time. The two parts come back as legs of
    their own, "lexical" and "trigram".

    Args:
        door: readable documents, see ``scope``.
        bases: the selected bases.
        terms: ``index_text.query_terms`` of the question; may be empty if ``verbatim`` is not.
        candidates: passages to return in full.
        verbatim: the question itself, where ``has_trigrams`` says that it is worth it.

    Plan: index-only scan of the postings' primary key (base, term) INCLUDE (document, weight), an
    aggregate by term and one by passage, hash semi-join of the passages with the door, top-N sort:
    linear in the postings of the question's terms. The
    trigram part is a bitmap scan of ``passage_trigrams``, whose cost grows with all tenants' text:
    hence only for short questions, and under a time limit that search sets.
    """
    parameters = {**door.parameters, "bases": list(bases), "candidates": candidates}
    tables, parts = "", []
    if terms:
        tables += _bm25(terms)
        parts.append("SELECT 'lexical' AS leg, score, chunk_id FROM bm25")
        parameters |= {"terms": list(terms), "weights": list(terms.values())}
    if verbatim:
        table, more = _verbatim(verbatim)
        tables += table
        parts.append("SELECT 'trigram' AS leg, score, chunk_id FROM verbatim")
        parameters |= more
    sql = f"""
WITH {_DOOR.format(door=door.sql)},
{tables}
found AS ({" UNION ALL ".join(parts)}),
ranked AS (
    SELECT leg, row_number() OVER (PARTITION BY leg ORDER BY score DESC, chunk_id) AS rank, score, chunk_id FROM found
)
{_IN_FULL}"""  # noqa: S608
    return sql, parameters


def has_trigrams(query: str, terms: Mapping[str, float]) -> bool:
    """Whether looking for the question verbatim is worth its cost.

    Trigrams need 3 characters, letters or digits among them, and a sentence never stands there
    word for word. A shorter one is looked for as it stands if it has no terms: "%", "'", a stop word.
    """
    if len(query) < SHORTEST_VERBATIM:
        return not terms
    return len(query) <= LONGEST_VERBATIM and any(character.isalnum() for character in query)


def _bm25(terms: Mapping[str, float]) -> str:
    """Return the CTEs of BM25: postings of the terms, idf, the sum by passage.

    A question of one character finds every term that begins with it (see ``index_text``).
    """
    only = next(iter(terms))
    single = len(terms) == 1 and len(only) == 1 and not only.isascii()
    term = "(%(terms)s::text[])[1]" if single else "p.term"
    count = "count(DISTINCT chunk_id)::float8" if single else "count(*)::float8"
    matches = f"p.term >= {term} AND p.term < chr(ascii({term}) + 1)" if single else "p.term = ANY(%(terms)s)"
    return f"""hits AS MATERIALIZED (
    SELECT {term} AS term, p.chunk_id, p.document_id, p.weight
    FROM knowledge_posting p
    WHERE p.knowledge_base_id = ANY(%(bases)s) AND {matches}
),
idf AS MATERIALIZED (
    SELECT h.term, t.weight * ln(1 + (greatest(n.passages, h.n) - h.n + 0.5) / (h.n + 0.5)) AS weight
    FROM (SELECT term, {count} AS n FROM hits GROUP BY term) AS h
    JOIN unnest(%(terms)s::text[], %(weights)s::float8[]) AS t(term, weight) USING (term)
    CROSS JOIN (SELECT coalesce(sum(chunk_count), 0)::float8 AS passages FROM door) AS n
),
summed AS (
    SELECT h.chunk_id, h.document_id, sum(h.weight * i.weight) AS score
    FROM hits h JOIN idf i USING (term) GROUP BY h.chunk_id, h.document_id
),
bm25 AS (
    SELECT chunk_id, score FROM summed WHERE document_id IN (SELECT id FROM door)
    ORDER BY score DESC, chunk_id LIMIT {DEPTH}
),"""  # noqa: S608


def _verbatim(query: str) -> tuple[str, dict[str, Any]]:
    """Return the CTE that finds the question's characters as they stand, misspelt ones from 3 characters on.

    The subselect hides the question from the planner, which would compare it with each text of the
    column's histogram to guess how many match: 10 ms.
    """
    parameters = {"query": query}
    if len(query) >= SHORTEST_VERBATIM:
        score, matches = "word_similarity(%(query)s, c.text)", "(SELECT %(query)s) <%% c.text"
    elif query.isalnum() and query.isascii():
        score, matches = "1.0", "c.text ~* (SELECT %(query)s)"
        parameters["query"] = rf"\m{query}\M"
    else:
        score, matches = "1.0", "c.text LIKE (SELECT %(query)s)"
        escaped = query.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        parameters["query"] = f"%{escaped}%"
    table = f"""verbatim AS (
    SELECT c.id AS chunk_id, {score} AS score
    FROM knowledge_chunk c
    WHERE c.level = 0 AND NOT c.disabled AND c.knowledge_base_id = ANY(%(bases)s)
      AND c.document_id IN (SELECT id FROM door) AND {matches}
    ORDER BY score DESC, c.id LIMIT %(candidates)s
),"""  # noqa: S608
    return table, parameters
