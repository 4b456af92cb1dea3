"""Whether a question can be answered: there is a chat and an embedding model. No endpoint is called."""

from apps.models.models import Kind
from apps.models.resolution import resolve


def probe_models() -> None:
    """Resolve the server's own models. Raises ModelUnavailable."""
    for kind in (Kind.CHAT, Kind.EMBEDDING):
        resolve(kind, workspace_id=None)
