"""The floor: the same legs written by hand for one tenant. No door, no state, no idf over what may be seen."""

VECTOR = """
WITH best AS (
    SELECT passage_id, max(cosine) FILTER (WHERE whole) AS whole, max(cosine) FILTER (WHERE NOT whole) AS part
    FROM (SELECT passage_id, chunk_id = passage_id AS whole, -(embedding <#> %(vector)s::halfvec) AS cosine
          FROM knowledge_chunkvector WHERE knowledge_base_id = %(base)s OFFSET 0) AS scanned
    GROUP BY passage_id
)
SELECT passage_id AS chunk_id, (coalesce(whole, part) + coalesce(part, whole)) / 2 AS score
FROM best ORDER BY score DESC LIMIT 100
"""
INDEXED = """
WITH near AS MATERIALIZED (
    SELECT passage_id FROM knowledge_chunkvector WHERE knowledge_base_id = '{base}'
    ORDER BY embedding::halfvec({dimensions}) <#> %(vector)s::halfvec({dimensions}) LIMIT 400
),
best AS (
    SELECT passage_id, max(cosine) FILTER (WHERE whole) AS whole, max(cosine) FILTER (WHERE NOT whole) AS part
    FROM (SELECT passage_id, chunk_id = passage_id AS whole, -(embedding <#> %(vector)s::halfvec) AS cosine
          FROM knowledge_chunkvector WHERE chunk_id IN (
              SELECT passage_id FROM near UNION
              SELECT id FROM knowledge_chunk WHERE parent_id IN (SELECT passage_id FROM near)) OFFSET 0) AS scanned
    GROUP BY passage_id
)
SELECT passage_id AS chunk_id, (coalesce(whole, part) + coalesce(part, whole)) / 2 AS score
FROM best ORDER BY score DESC LIMIT 100
"""
BM25 = """
WITH hits AS (
    SELECT term, chunk_id, weight FROM knowledge_posting
    WHERE knowledge_base_id = %(base)s AND term = ANY(%(terms)s)
),
idf AS (SELECT term, ln(1 + (%(passages)s - count(*) + 0.5) / (count(*) + 0.5)) AS idf FROM hits GROUP BY term)
SELECT chunk_id, sum(weight * idf) AS score FROM hits JOIN idf USING (term)
GROUP BY chunk_id ORDER BY score DESC LIMIT 100
"""
TRIGRAM = """
SELECT word_similarity(%(query)s, text) AS score, id AS chunk_id
FROM knowledge_chunk
WHERE level = 0 AND knowledge_base_id = %(base)s AND (SELECT %(query)s) <%% text ORDER BY score DESC LIMIT 100
"""
PASSAGES = """
SELECT c.*, d.name FROM knowledge_chunk c JOIN knowledge_document d ON d.id = c.document_id WHERE c.id = ANY(%(chunks)s)
"""
PASSAGES_AND_TOKENS = """
SELECT c.*, d.name, t.signs FROM knowledge_chunk c JOIN knowledge_document d ON d.id = c.document_id
LEFT JOIN knowledge_passagetokens t ON t.chunk_id = c.id WHERE c.id = ANY(%(chunks)s)
"""
