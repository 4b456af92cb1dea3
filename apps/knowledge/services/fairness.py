"""Who is next: a worker's turn goes to the workspace that has least, not to whoever queued most.

Rows of the queue are turns, not documents: one tenant's thousand files are a thousand turns, and
each turn asks here what to work on. So another tenant's single file waits for one step at most.
"""

from uuid import UUID

from django.db import connection

from apps.knowledge.models import Document

# Both partial: the index document_waiting (workspace, status, changed_at) holds only what waits. The
# recursion hops from workspace to workspace in it, so that the cost grows with workspaces that wait and
# not with documents. What is read already comes before what is not: it is nearer to its answer.
_WAITING = "d.status IN ('uploaded', 'parsed') AND d.deleted_at IS NULL"
_NEXT = f"""
WITH RECURSIVE lanes AS (
    (SELECT d.workspace_id FROM knowledge_document d WHERE {_WAITING} ORDER BY d.workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.workspace_id FROM knowledge_document d
            WHERE {_WAITING} AND d.workspace_id > lanes.workspace_id ORDER BY d.workspace_id LIMIT 1)
    FROM lanes WHERE lanes.workspace_id IS NOT NULL
)
SELECT (SELECT d.id FROM knowledge_document d
        WHERE d.workspace_id = lanes.workspace_id AND {_WAITING}
        ORDER BY d.status, d.changed_at LIMIT 1)
FROM lanes WHERE lanes.workspace_id IS NOT NULL
ORDER BY (SELECT count(*) FROM knowledge_document d
          WHERE d.workspace_id = lanes.workspace_id AND d.lease_until IS NOT NULL),
         (SELECT max(d.started_at) FROM knowledge_document d WHERE d.workspace_id = lanes.workspace_id) NULLS FIRST
LIMIT 1
"""  # noqa: S608


def next_waiting() -> Document | None:
    """Return the document whose turn it is, None if nothing waits.

    Of the workspaces where something waits: the one with the fewest documents in work, then the one
    that was served longest ago; within it the oldest. Nothing is locked; the claim decides.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEXT)
        row: tuple[UUID | None] | None = cursor.fetchone()
    return Document.objects.filter(pk=row[0]).first() if row and row[0] else None


def load() -> list[dict[str, object]]:
    """Return each workspace with something in work or waiting: how much, and since when; the fullest first."""
    sql = f"""
SELECT d.workspace_id, w.slug, count(*) FILTER (WHERE {_WAITING}) AS waiting,
       count(*) FILTER (WHERE d.lease_until IS NOT NULL) AS running,
       count(*) FILTER (WHERE d.lease_until < now()) AS stuck,
       min(d.changed_at) FILTER (WHERE {_WAITING}) AS oldest
FROM knowledge_document d JOIN workspaces_workspace w ON w.id = d.workspace_id
WHERE ({_WAITING}) OR (d.lease_until IS NOT NULL AND d.deleted_at IS NULL)
GROUP BY d.workspace_id, w.slug ORDER BY count(*) DESC LIMIT 100"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
