"""How much of a workspace's prompts repeated the request before: sums of its turns' own records, no content."""

from datetime import datetime

from apps.common.database import run
from apps.models.repeats import Repeats
from apps.workspaces.models import Workspace

COUNT = """
SELECT r ->> 'break', count(*), sum((r ->> 'bytes')::bigint), sum((r ->> 'reused')::bigint)
FROM conversations_turn t JOIN conversations_conversation c ON c.id = t.conversation_id,
    jsonb_array_elements(CASE WHEN jsonb_typeof(t.usage -> 'requests') = 'array' THEN t.usage -> 'requests'
        ELSE '[]' END) r
WHERE c.workspace_id = %s AND t.started_at >= %s GROUP BY 1
"""


def count(workspace: Workspace, since: datetime) -> Repeats:
    """Sum up the requests of the workspace's turns since a moment, by where they broke."""
    return Repeats.of(run(COUNT, [workspace.pk, since]))
