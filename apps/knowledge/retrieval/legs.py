"""The legs of a search: one SQL statement each, each behind the reader's door, and the one that fetches what won.

Every leg returns ``leg, rank, score, coverage, chunk_id, knowledge_base_id, width`` of up to DEPTH passages, so that a
passage that another leg brings has its true score here too. ``width`` is the bytes a character of its text, which tells
scripts apart; ``ms`` is how long the statement had run at
that row. ``watched`` is a passage that somebody asks about: its row comes whatever its rank.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.knowledge.retrieval.questions import Group
from apps.knowledge.retrieval.scope import Scope

Statement = tuple[str, dict[str, Any]]

DEPTH = 100  # passages that a leg scores
SHORT = 3  # terms of a question up to which its lone characters may begin a word
SHORTEST_VERBATIM, LONGEST_VERBATIM = 3, 32  # characters of a question that trigrams are asked about
INDEX_PREFIX = "vectors_"  # of the name of a base's index of vectors, see ``vector_indexes``
NEAREST = 400  # vectors that an index is asked for: of passages and of their children

_DOOR = """door AS MATERIALIZED (
    SELECT id, chunk_count FROM ({door}) AS readable WHERE knowledge_base_id = ANY(%(bases)s)
)"""
_MS = "1000 * extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS ms"
_BEGINNING = "left(c.text, 200)"
_WIDTH = f"octet_length({_BEGINNING})::float8 / greatest(char_length({_BEGINNING}), 1) AS width"
_SCARCE = "CASE WHEN r.rank = 1 THEN (SELECT coalesce(array_agg(term), '{}') FROM idf WHERE n < %(few)s) END"


# The place of a passage's best child; that of an edited passage is no longer where it was.
_FOCUS = """LEFT JOIN LATERAL (
    SELECT k.start - c.start AS focus
    FROM spots s JOIN knowledge_chunk k ON k.parent_id = c.id AND k.level = 1
    JOIN knowledge_chunkvector kv ON kv.chunk_id = k.id
    WHERE c.id = ANY(%(unplaced)s) AND c.knowledge_base_id = ANY(s.bases) AND NOT c.edited
    ORDER BY kv.embedding <#> s.vector LIMIT 1
) AS part ON TRUE"""


def _ranked(scarce: str = "NULL") -> str:
    """Return the end of a leg's statement: a row for each of the passages in ``ranked``, in their order."""
    return f"""
SELECT r.leg, r.rank, r.score, r.coverage, r.chunk_id, c.knowledge_base_id, {_WIDTH}, {_MS}, {scarce} AS scarce
FROM ranked r JOIN knowledge_chunk c ON c.id = r.chunk_id
ORDER BY r.leg, r.rank
"""  # noqa: S608


def _best(rows: str, watched: UUID | None) -> str:
    """Cut rows of ``chunk_id, score, coverage`` at DEPTH, but keep the watched one; ``rank`` is its place among all."""
    if watched is None:
        rows = f"(SELECT * FROM {rows} ORDER BY score DESC, chunk_id LIMIT {DEPTH}) AS cut"  # noqa: S608
    order = "row_number() OVER (ORDER BY score DESC, chunk_id) AS rank"
    ranked = f"SELECT {order}, score, coverage, chunk_id FROM {rows}"  # noqa: S608
    if watched is None:
        return ranked
    return f"SELECT * FROM ({ranked}) AS whole WHERE rank <= {DEPTH} OR chunk_id = %(watched)s"  # noqa: S608


def bases_statement(door: Scope, bases: Sequence[UUID]) -> Statement:
    """Return the statement that tells which of the bases may be read, and how each is searched.

    ``indexed``: the base has an index of its vectors that is whole; the catalogue is asked, which cannot be
    out of date.
    """
    sql = f"""
SELECT readable.*, EXISTS (
    SELECT 1 FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
    WHERE i.indisvalid
      AND c.relname = '{INDEX_PREFIX}' || replace(readable.id::text, '-', '') || '_' || readable.dimensions
) AS indexed
FROM ({door.sql}) AS readable WHERE id = ANY(%(bases)s)"""  # noqa: S608
    return sql, {**door.parameters, "bases": list(bases)}


def vector_leg(
    door: Scope,
    *,
    bases: Sequence[UUID],
    vector: str,
    indexed: Sequence[UUID] = (),
    dimensions: int = 0,
    watched: UUID | None = None,
) -> Statement:
    """Return the statement of the vector leg: cosine with the question, passage by passage.

    A passage's score is the mean of its own cosine and its best child's: the first says what it is
    about, the second that the answer stands in it. Siblings thus collapse before anything is cut.

    Args:
        door: readable documents, see ``scope``.
        bases: bases of one embedding model.
        vector: the question's embedding as text, ``[0.1,…]``, L2-normalised like the stored ones.
        indexed: those of the bases that have an index of vectors of their own (``vector_indexes``).
        dimensions: of the vectors, where there are ``indexed`` bases.
        watched: a passage whose row is wanted whatever its rank.

    Plan: scan of the bases' vectors by ``knowledge_base_id``, HashAggregate by passage, hash
    semi-join of the passages with the door (before it, it would cost a third more), top-N sort:
    linear in the bases' vectors, and exact. ``<#>`` is the negative inner product: of normalised
    vectors that is the cosine, at less cost. An indexed base instead walks its own HNSW index, iteratively, past
    what the door refuses, to the NEAREST vectors; their passages are then scored exactly, by primary key and
    ``chunk_children``. Nothing is approximate but which passages are looked at, and no base shares an index.
    """
    exact = [base for base in bases if base not in set(indexed)]
    near = "".join(_nearest(number, base, dimensions) for number, base in enumerate(indexed))
    sources = ["SELECT * FROM scanned"] if exact or not indexed else []
    sources += [f"SELECT * FROM close_{number}" for number in range(len(indexed))]  # noqa: S608
    sql = f"""
WITH {_DOOR.format(door=door.sql)},
scanned AS (
    SELECT v.passage_id, v.document_id, v.chunk_id = v.passage_id AS whole,
           -(v.embedding <#> %(vector)s::halfvec) AS cosine
    FROM knowledge_chunkvector v
    WHERE v.knowledge_base_id = ANY(%(exact)s)
    OFFSET 0 -- or each aggregate below would compute the cosine anew
),{near}
best AS (
    SELECT passage_id, document_id,
           max(cosine) FILTER (WHERE whole) AS whole, max(cosine) FILTER (WHERE NOT whole) AS part
    FROM ({" UNION ALL ".join(sources)}) AS found GROUP BY passage_id, document_id
),
scored AS (
    SELECT passage_id AS chunk_id, (coalesce(whole, part) + coalesce(part, whole)) / 2 AS score,
           NULL::float8 AS coverage
    FROM best WHERE document_id IN (SELECT id FROM door)
),
ranked AS (SELECT 'vector' AS leg, best.* FROM ({_best("scored", watched)}) AS best)
{_ranked()}"""  # noqa: S608
    parameters = {**door.parameters, "bases": list(bases), "exact": exact, "vector": vector, "watched": watched}
    return sql, parameters


def _nearest(number: int, base: UUID, dimensions: int) -> str:
    """Return the CTEs that look into one base's index. Its id stands there as text: the index's condition must be seen.

    The odd test of the door keeps it a filter of the walk; as a join it would end the walk's use.
    """
    return f"""
near_{number} AS MATERIALIZED (
    SELECT v.passage_id FROM knowledge_chunkvector v
    WHERE v.knowledge_base_id = '{base}' AND (v.document_id IN (SELECT id FROM door)) IS TRUE
    ORDER BY v.embedding::halfvec({dimensions:d}) <#> %(vector)s::halfvec({dimensions:d}) LIMIT {NEAREST}
),
close_{number} AS (
    SELECT v.passage_id, v.document_id, v.chunk_id = v.passage_id AS whole,
           -(v.embedding <#> %(vector)s::halfvec) AS cosine
    FROM knowledge_chunkvector v
    WHERE v.chunk_id IN (SELECT passage_id FROM near_{number} UNION
                         SELECT id FROM knowledge_chunk WHERE parent_id IN (SELECT passage_id FROM near_{number}))
    OFFSET 0
),"""  # noqa: S608


def lexical_leg(
    door: Scope,
    *,
    bases: Sequence[UUID],
    terms: Mapping[str, float],
    lone: Collection[str] = (),
    verbatim: str = "",
    watched: UUID | None = None,
    few: int = 0,
) -> Statement:
    """Return the statement of the lexical leg: BM25 over postings, and pg_trgm for what stands there verbatim.

    A term's idf is taken over what may be read of the selected bases, at query time. The two parts come
    back as legs of their own, "lexical" and "trigram"; the first row of each says in ``scarce`` which terms there
    is little of, if terms were asked for.

    Args:
        door: readable documents, see ``scope``.
        bases: the selected bases.
        terms: ``index_text.query_terms`` of the question; may be empty if ``verbatim`` is not.
        lone: ``index_text.lone_characters`` of the question.
        verbatim: the question itself, where ``has_trigrams`` says that it is worth it.
        watched: a passage whose row is wanted whatever its rank.
        few: of how many readable passages a term is no longer scarce.

    Plan: index-only scan of the postings' primary key (base, term) INCLUDE (document, weight), filtered by
    the door, so that what one may not read counts in no idf, an aggregate by term and one by passage, top-N sort:
    linear in the postings of the question's terms. The trigram part is a bitmap scan of
    ``trigrams_of_base``, whose first column is the base: what other tenants have costs nothing. It is
    linear in the bases' passages that share a trigram, hence only for short questions, under a time limit that
    search sets.
    """
    parameters = {**door.parameters, "bases": list(bases), "watched": watched}
    tables, parts = "", []
    if terms:
        lone = set(lone).intersection(terms) if len(terms) <= SHORT else set()
        tables += _bm25(lone)
        parts.append(f"SELECT 'lexical' AS leg, best.* FROM ({_best('bm25', watched)}) AS best")  # noqa: S608
        parameters |= {"terms": list(terms), "weights": list(terms.values()), "lone": list(lone)}
        parameters["exact"] = [term for term in terms if term not in lone]
    if verbatim:
        table, more = _verbatim(verbatim)
        tables += table
        parts.append(f"SELECT 'trigram' AS leg, best.* FROM ({_best('verbatim', watched)}) AS best")  # noqa: S608
        parameters |= more
    sql = f"""
WITH {_DOOR.format(door=door.sql)},
{tables}
ranked AS ({" UNION ALL ".join(parts)})
{_ranked(_SCARCE) if terms else _ranked()}"""
    return sql, {**parameters, "few": few}


def passages_statement(
    door: Scope,
    *,
    bases: Sequence[UUID],
    chunks: Sequence[UUID],
    tokens: bool = False,
    vectors: bool = False,
    spots: Sequence[Group] = (),
    unplaced: Sequence[UUID] = (),
) -> Statement:
    """Return the statement that fetches passages whole, behind the door once more, in no order.

    Args:
        door: readable documents, see ``scope``.
        bases: the selected bases.
        chunks: which passages.
        tokens: whether their tokens are wanted, for the built-in reranker.
        vectors: whether their vectors are, for diversity.
        spots: the question in the space of each model, by which the best child of a passage is told.
        unplaced: of which passages the place of the best child is wanted, as ``focus``.

    Plan: primary keys of chunks, documents, tokens and vectors; ``chunk_children`` for the children.
    """
    signs = "t.signs" if tokens else "NULL::bytea AS signs"
    embedding = "v.embedding::text AS embedding" if vectors else "NULL::text AS embedding"
    spots = spots if unplaced else ()
    given = " UNION ALL ".join(
        f"SELECT %(spot_{number})s::halfvec AS vector, %(spot_bases_{number})s::uuid[] AS bases"
        for number in range(len(spots))
    )
    parameters = {**door.parameters, "bases": list(bases), "chunks": list(chunks), "unplaced": list(unplaced)}
    for number, spot in enumerate(spots):
        parameters |= {f"spot_{number}": spot.vector, f"spot_bases_{number}": spot.bases}
    sql = f"""
{f"WITH spots AS MATERIALIZED ({given})" if spots else ""}
SELECT c.id AS chunk_id, c.document_id, c.knowledge_base_id, d.name AS document, c.text, c.heading,
       c.page, c.page_end, c.start, c."end", c.parent_id, CASE c.level WHEN 0 THEN c.ordinal END AS place,
       {"part.focus" if spots else "NULL::int AS focus"}, {signs}, {embedding}, {_MS}
FROM knowledge_chunk c JOIN ({door.sql}) d ON d.id = c.document_id
{"LEFT JOIN knowledge_passagetokens t ON t.chunk_id = c.id" if tokens else ""}
{"LEFT JOIN knowledge_chunkvector v ON v.chunk_id = c.id" if vectors else ""}
{_FOCUS if spots else ""}
WHERE c.id = ANY(%(chunks)s) AND c.knowledge_base_id = ANY(%(bases)s) AND NOT c.disabled"""  # noqa: S608
    return sql, parameters


def ancestors_statement(door: Scope, *, chunks: Sequence[UUID]) -> Statement:
    """Return the statement that fetches the parents and grandparents of chunks, with how many children each has.

    None that holds a passage which was switched off or edited: its own text still has the old words.

    Plan: primary key of chunks, ``chunk_children`` for the counts, the documents' chunks for what was changed.
    """
    sql = f"""
WITH RECURSIVE up AS (
    SELECT c.parent_id AS id FROM knowledge_chunk c WHERE c.id = ANY(%(chunks)s) AND c.parent_id IS NOT NULL
    UNION
    SELECT c.parent_id FROM up JOIN knowledge_chunk c ON c.id = up.id WHERE c.parent_id IS NOT NULL
)
SELECT c.id AS chunk_id, c.document_id, c.knowledge_base_id, d.name AS document, c.text, c.heading,
       c.page, c.page_end, c.start, c."end", c.parent_id, CASE c.level WHEN 0 THEN c.ordinal END AS place,
       (SELECT count(*) FROM knowledge_chunk k WHERE k.parent_id = c.id) AS children, {_MS}
FROM up JOIN knowledge_chunk c ON c.id = up.id JOIN ({door.sql}) d ON d.id = c.document_id
WHERE NOT c.disabled AND NOT EXISTS (
    SELECT 1 FROM knowledge_chunk k
    WHERE k.document_id = c.document_id AND (k.parent_id = c.id OR k.root_id = c.id) AND (k.disabled OR k.edited)
)"""  # noqa: S608
    return sql, {**door.parameters, "chunks": list(chunks)}


def has_trigrams(query: str, terms: Mapping[str, float]) -> bool:
    """Whether looking for the question verbatim is worth its cost.

    Trigrams need 3 characters, letters or digits among them, and a sentence never stands there
    word for word. A shorter one is looked for as it stands if it has no terms: "%", "'", a stop word.
    """
    if len(query) < SHORTEST_VERBATIM:
        return not terms
    return len(query) <= LONGEST_VERBATIM and any(character.isalnum() for character in query)


def _bm25(lone: Collection[str]) -> str:
    """Return the CTEs of BM25: postings of the terms behind the door, idf, the sum by passage.

    ``coverage`` is the share of the question's words that a passage has, by their idf. A ``lone`` character of a short
    question finds every term that begins with it (see ``index_text``). The odd test of the door is a hashed filter,
    whatever the planner thinks of the door's size, and costs what one after the aggregate did.
    """
    behind = "p.knowledge_base_id = ANY(%(bases)s) AND (p.document_id IN (SELECT id FROM door)) IS TRUE"
    beginning = f"""
    UNION ALL
    SELECT l.term, p.chunk_id, p.document_id, sum(p.weight)
    FROM unnest(%(lone)s::text[]) AS l(term)
    JOIN knowledge_posting p ON p.term >= l.term AND p.term < chr(ascii(l.term) + 1)
    WHERE {behind} GROUP BY l.term, p.chunk_id, p.document_id"""  # noqa: S608
    return f"""hits AS MATERIALIZED (
    SELECT p.term, p.chunk_id, p.document_id, p.weight
    FROM knowledge_posting p
    WHERE {behind} AND p.term = ANY(%(exact)s){beginning if lone else ""}
),
idf AS MATERIALIZED (
    SELECT t.term, h.n, t.weight * ln(1 + (greatest(n.passages, h.n) - h.n + 0.5) / (h.n + 0.5)) AS weight
    FROM unnest(%(terms)s::text[], %(weights)s::float8[]) AS t(term, weight)
    LEFT JOIN (SELECT term, count(*)::float8 AS n FROM hits GROUP BY term) AS found USING (term)
    CROSS JOIN LATERAL (SELECT coalesce(found.n, 0) AS n) AS h
    CROSS JOIN (SELECT coalesce(sum(chunk_count), 0)::float8 AS passages FROM door) AS n
),
bm25 AS (
    SELECT h.chunk_id, sum(h.weight * i.weight) AS score,
           sum(i.weight) / nullif((SELECT sum(weight) FROM idf), 0) AS coverage
    FROM hits h JOIN idf i USING (term) GROUP BY h.chunk_id
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
    SELECT c.id AS chunk_id, {score} AS score, NULL::float8 AS coverage
    FROM knowledge_chunk c
    WHERE c.level = 0 AND NOT c.disabled AND c.knowledge_base_id = ANY(%(bases)s)
      AND c.document_id IN (SELECT id FROM door) AND {matches}
),"""  # noqa: S608
    return table, parameters
