"""The numbers behind ``[[cN]]``: given by the server, one for each passage of a turn."""

import re
from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from apps.agents.turn import ATTACHED, Source
from apps.agents.web.addresses import same
from apps.knowledge.retrieval.passages import Passage

WEB_TEXT = 4_000  # characters of a page that a citation keeps
NUMBER = re.compile(r"\[*\s*[cC]?(\d{1,4})\s*\]*")


class SourceLedger:
    """Numbers passages as tools find them. A passage found twice keeps its number."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._numbers: dict[UUID, int] = {}
        self._pages: dict[str, int] = {}

    def number(self, passage: Passage) -> int:
        """Return the passage's number, giving it the next one if it is new."""
        if passage.chunk_id not in self._numbers:
            n = len(self._sources) + 1
            self._numbers[passage.chunk_id] = n
            self._sources.append(
                Source(
                    n=n,
                    kind="attachment" if passage.knowledge_base_id == ATTACHED else "chunk",
                    document=passage.document,
                    text=passage.text,
                    document_id=passage.document_id,
                    chunk_id=passage.chunk_id,
                    page=passage.page,
                    heading=passage.heading,
                    start=passage.start,
                    end=passage.end,
                )
            )
        return self._numbers[passage.chunk_id]

    def number_page(self, url: str, title: str, text: str, *, whole: bool) -> int:
        """Return the number of a page of the web; what was read of it replaces the snippet that named it."""
        key = same(url)
        source = Source(n=0, kind="web", document=title, text=text[:WEB_TEXT], url=url)
        if key not in self._pages:
            self._pages[key] = len(self._sources) + 1
            self._sources.append(replace(source, n=self._pages[key]))
        elif whole:
            self._sources[self._pages[key] - 1] = replace(source, n=self._pages[key])
        return self._pages[key]

    def known(self, n: int) -> bool:
        """Return whether this turn has given out the number."""
        return 1 <= n <= len(self._sources)

    def find(self, reference: str) -> Source | None:
        """Return the source that ``c3``, ``[[c3]]`` or ``3`` means, or None."""
        match = NUMBER.fullmatch(reference.strip())
        return self._sources[int(match[1]) - 1] if match and self.known(int(match[1])) else None

    def pick(self, numbers: Iterable[int]) -> tuple[Source, ...]:
        """Return the sources of known numbers, in the order of the numbers."""
        return tuple(self._sources[n - 1] for n in sorted(set(numbers)) if self.known(n))

    def all(self) -> tuple[Source, ...]:
        """Return every source of the turn, by number."""
        return tuple(self._sources)
