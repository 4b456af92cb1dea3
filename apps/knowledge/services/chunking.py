"""How a base cuts its documents, changed."""

from collections.abc import Mapping
from typing import Any

from apps.common.errors import InvalidInput
from apps.knowledge import chunkers
from apps.knowledge.chunkers import SETTINGS, validated_settings
from apps.knowledge.errors import NothingChosen
from apps.knowledge.models import Document, Job, KnowledgeBase
from apps.knowledge.services.jobs import start_job
from apps.workspaces import audit
from apps.workspaces.models import User


def settings_of(chunker: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return a chunker's settings from what a form sent: only those that differ from their defaults.

    Raises:
        InvalidInput: there is no such chunker or setting, or a value is of another kind.
    """
    if chunker not in chunkers.CHUNKERS:
        raise InvalidInput(field="chunker", reason=f"there is no chunker {chunker!r}")
    values: dict[str, Any] = {}
    for setting in SETTINGS.get(chunker).described():
        if isinstance(setting.default, bool):
            value: Any = typed.get(setting.name) in ("on", "true", "1")
        elif setting.name not in typed:
            continue
        elif isinstance(setting.default, int):
            text = typed[setting.name].strip()
            if not text.isascii() or not text.isdecimal():
                raise InvalidInput(field=setting.name, reason="must be a whole number")
            value = int(text[:10])
        else:
            value = typed[setting.name]
        if value != setting.default:
            values[setting.name] = value
    return values


def configure_chunker(
    *,
    knowledge_base: KnowledgeBase,
    chunker: str,
    chunker_settings: Mapping[str, Any],
    actor: User,
    again: bool = False,
) -> int:
    """Change how a base cuts its documents from now on; ``again`` queues those that are there, returned as a number.

    Raises:
        InvalidInput: the settings cannot be used; nothing is changed.
        JobActive: the documents are being indexed again already; the settings are changed.
    """
    validated_settings(chunker, chunker_settings)
    knowledge_base.chunker, knowledge_base.chunker_settings = chunker, dict(chunker_settings)
    knowledge_base.save(update_fields=["chunker", "chunker_settings"])
    audit.did("base.changed", knowledge_base, who=actor, fields=["chunker", "chunker_settings"])
    if not again:
        return 0
    documents = Document.objects.filter(knowledge_base=knowledge_base, generation__gt=0, deleted_at__isnull=True)
    try:
        return start_job(knowledge_base=knowledge_base, kind=Job.Kind.INDEX, documents=documents, actor=actor).total
    except NothingChosen:
        return 0
