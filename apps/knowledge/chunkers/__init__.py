"""How documents are cut. To add a way: write ``chunkers/<name>.py`` with ``chunk`` and settings, add two lines here.

A chunker is a pure function ``chunk(markdown, pages, settings, count_tokens) -> list[ChunkDraft]``.
Its settings are validated when a base is saved and again when they are used, since a stored row may be
older than the rules. Indexing and every preview call ``cut``, so that a preview shows what will be indexed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.common.errors import InvalidInput
from apps.common.registry import Registry
from apps.knowledge.chunkers.drafts import ChunkDraft, Chunker, PageMark, TokenCounter
from apps.knowledge.chunkers.settings import ChunkerSettings, SettingRefused
from apps.knowledge.chunkers.windows import Window, in_windows, pages_of, placed

HERE = "apps.knowledge.chunkers"
CHUNKERS = Registry[Chunker](
    "chunker",
    {
        "by_heading": f"{HERE}.by_heading.chunk",
        "parent_child": f"{HERE}.parent_child.chunk",
        "three_level": f"{HERE}.three_level.chunk",
    },
)
SETTINGS = Registry[type[ChunkerSettings]](
    "chunker settings",
    {
        "by_heading": f"{HERE}.by_heading.ByHeadingSettings",
        "parent_child": f"{HERE}.parent_child.ParentChildSettings",
        "three_level": f"{HERE}.three_level.ThreeLevelSettings",
    },
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


def cut(
    chunker: str,
    values: Mapping[str, Any],
    markdown: str,
    pages: Sequence[Sequence[int]],
    *,
    most_tokens: int,
    count_tokens: TokenCounter,
) -> list[ChunkDraft]:
    """Cut a document with a chunker and its stored or typed settings.

    ``pages`` holds (number, offset in the Markdown) of each page, in order. ``most_tokens`` is what the
    embedding model reads of a chunk, less what is put before it; ``count_tokens`` counts as it does.

    Raises:
        InvalidInput: the settings cannot be used.
    """
    drafts: list[ChunkDraft] = []
    found = cut_windows(
        chunker, values, in_windows(markdown), pages, most_tokens=most_tokens, count_tokens=count_tokens
    )
    for part in found:
        before = len(drafts)
        drafts += [
            draft if draft.parent is None or not before else replace(draft, parent=draft.parent + before)
            for draft in part
        ]
    return drafts


def cut_windows(
    chunker: str,
    values: Mapping[str, Any],
    parts: Iterable[Window],
    pages: Sequence[Sequence[int]],
    *,
    most_tokens: int,
    count_tokens: TokenCounter,
) -> Iterator[list[ChunkDraft]]:
    """Do what ``cut`` does window by window; ``parent`` is an index into the window's own list.

    Raises:
        InvalidInput: the settings cannot be used.
    """
    settings = validated_settings(chunker, values).within(most_tokens)
    marks = [PageMark(number, start) for number, start in pages]
    ordinals: Counter[int] = Counter()
    for window in parts:
        try:
            drafts = CHUNKERS.get(chunker)(
                window.text, pages_of(window, marks) if marks else [], settings, count_tokens
            )
        except SettingRefused as refused:
            raise InvalidInput(field=refused.field, reason=refused.reason) from refused
        if window.start:
            drafts = placed(drafts, window, ordinals, getattr(settings, "heading_level", 6))
        ordinals.update(draft.level for draft in drafts)
        yield drafts
