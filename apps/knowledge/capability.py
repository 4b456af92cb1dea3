"""Whether this server knows documents at all: with ``LITE=1`` it answers from its model alone.

The doors of knowledge bases, documents and chunks are shut then, for everybody: no knowledge tool is
offered, nothing can be chosen, and what was stored stays where it is until the switch goes back.
"""

from django.conf import settings

from apps.knowledge.errors import KnowledgeOff


def knowledge_capability_enabled() -> bool:
    """Return whether documents are taken in, searched and shown here."""
    return not settings.LITE


def require_knowledge() -> None:
    """Raise KnowledgeOff where there is none to be had."""
    if not knowledge_capability_enabled():
        raise KnowledgeOff
