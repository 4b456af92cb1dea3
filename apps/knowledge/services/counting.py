"""Counting what is there anew: documents and storage, for each workspace and person."""

from django.db import transaction

from apps.common.database import run

# A deleted document counts until it is erased, as its bytes do. Counters whose documents are all gone become 0.
COUNT = """
WITH there AS (
    SELECT workspace_id, person, k.kind, k.used
    FROM (
        SELECT workspace_id, NULL::uuid AS person, count(*) AS documents,
            coalesce(sum(size_bytes), 0)::bigint AS storage
        FROM knowledge_document GROUP BY workspace_id
        UNION ALL
        SELECT workspace_id, uploaded_by_id, count(*), coalesce(sum(size_bytes), 0)::bigint
        FROM knowledge_document WHERE uploaded_by_id IS NOT NULL GROUP BY workspace_id, uploaded_by_id
    ) AS found CROSS JOIN LATERAL (VALUES ('documents', documents), ('storage', storage)) AS k(kind, used)
), written AS (
    INSERT INTO workspaces_quota AS q (id, workspace_id, user_id, kind, used, began_at)
    SELECT gen_random_uuid(), workspace_id, person, kind, used, now() FROM there ORDER BY workspace_id, kind, person
    ON CONFLICT (workspace_id, user_id, kind) DO UPDATE SET used = excluded.used WHERE q.used <> excluded.used
    RETURNING 1
), emptied AS (
    UPDATE workspaces_quota AS q SET used = 0
    WHERE q.kind IN ('documents', 'storage') AND q.used <> 0 AND NOT EXISTS (
        SELECT 1 FROM there t
        WHERE t.workspace_id = q.workspace_id AND t.person IS NOT DISTINCT FROM q.user_id AND t.kind = q.kind)
    RETURNING 1
)
SELECT (SELECT count(*) FROM written), (SELECT count(*) FROM emptied)
"""


@transaction.atomic
def recount_quotas() -> int:
    """Set the counters of documents and storage to what is there; return how many were wrong.

    Uploads wait meanwhile (the lock), so that none is counted twice or not at all; run it as often as you like.
    """
    run("LOCK TABLE workspaces_quota IN SHARE ROW EXCLUSIVE MODE", [])
    [(written, emptied)] = run(COUNT, [])
    return int(written) + int(emptied)
