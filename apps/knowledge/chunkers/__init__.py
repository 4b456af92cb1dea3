"""How documents are cut. To add one: write ``chunkers/<name>.py`` with ``chunk``, ``SETTINGS``, add its line here.

A chunker is a pure function ``chunk(markdown, pages, settings, count_tokens) -> list[ChunkDraft]``.
Its settings are validated when a base is saved and again when they are used, since a stored row may be
older than the rules.
"""

from collections.abc import Mapping
from typing import Any

from apps.common.errors import InvalidInput
from apps.common.registry import Registry
from apps.knowledge.chunkers.drafts import Chunker, ChunkerSettings, SettingRefused

CHUNKERS = Registry[Chunker]("chunker", {"parent_child": "apps.knowledge.chunkers.parent_child.chunk"})
SETTINGS = Registry[type[ChunkerSettings]](
    "chunker settings", {"parent_child": "apps.knowledge.chunkers.parent_child.ParentChildSettings"}
)


def validated_settings(chunker: str, values: Mapping[str, Any]) -> ChunkerSettings:
    """Return the settings of a chunker, defaults filled in.

    Raises:
        InvalidInput: there is no such chunker or setting, or the values do not fit together.
    """
    if chunker not in CHUNKERS:
        raise InvalidInput(field="chunker", reason=f"there is no chunker {chunker!r}")
    try:
        return SETTINGS.get(chunker).of(values)
    except SettingRefused as refused:
        raise InvalidInput(field=refused.field, reason=refused.reason) from refused
