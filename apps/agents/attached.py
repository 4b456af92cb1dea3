"""Files of a conversation: their text as passages that the knowledge tools find and read, and no rows.

Short texts stand whole in their turn's question. Longer ones, and those of earlier turns, are cut into
passages in memory when a tool first asks; a passage's id is made from the file's and its place, so it is
the same in every turn.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from apps.agents.tools.excerpts import terms
from apps.agents.turn import ATTACHED, Attachment
from apps.common.errors import KnowSphereError
from apps.knowledge.retrieval.passages import Passage

INLINE = 8_000  # characters of a turn's files together; more are read with tools
PASSAGE = 1_200  # characters
BORDER = re.compile(r"\n\s*\n")
HEADING = re.compile(r"^#{1,6}\s+(.+)$", re.MULTILINE)


class Attached:
    """The conversation's files; every one of them is the asker's own, so nothing is asked twice here."""

    def __init__(self, attachments: Sequence[Attachment], *, number: int) -> None:
        self.all = tuple(attachments)
        self.new = tuple(one for one in attachments if one.number == number)
        self._passages: dict[UUID, list[Passage]] = {}

    @property
    def documents(self) -> list[Attachment]:
        """Those that have text."""
        return [one for one in self.all if one.characters]

    def ids(self) -> frozenset[UUID]:
        """Return the files' ids."""
        return frozenset(one.id for one in self.all)

    async def search(self, query: str, top_k: int) -> list[Passage]:
        """Return passages that share words with the query, rarer words counting more, best first."""
        passages = await self._all_passages()
        wanted = terms(query)
        found = [wanted & terms(f"{passage.document} {passage.text}") for passage in passages]
        often = Counter(term for own in found for term in own)
        scores = [sum(1 / often[term] for term in own) for own in found]
        order = sorted(range(len(passages)), key=lambda i: (-scores[i], i))
        if not any(scores):
            return passages[:top_k]  # a file that was handed over is worth a look, whatever the words
        return [passages[i] for i in order[:top_k] if scores[i] > 0]

    async def grep(self, pattern: str, limit: int) -> list[Passage]:
        """Return passages in which a text stands; a pattern is taken by the word, this process runs none."""
        wanted = [part.lower() for part in pattern.replace("\\", "").split("|") if part.strip()]
        found = []
        for passage in await self._all_passages():
            lower = passage.text.lower()
            if any(part in lower for part in wanted):
                found.append(passage)
        return found[:limit]

    async def read(
        self, *, chunk_ids: Sequence[UUID], document_id: UUID | None, first: int, count: int
    ) -> list[Passage]:
        """Return passages by id, or a run of one file."""
        if document_id is not None:
            own = [one for one in self.all if one.id == document_id]
            return (await self._of(own[0]))[first : first + count] if own else []
        wanted = set(chunk_ids)
        return [passage for passage in await self._all_passages() if passage.chunk_id in wanted] if wanted else []

    def info(self, document_ids: Collection[UUID]) -> list[Mapping[str, Any]]:
        """Describe files as ``get_document_info`` shows documents."""
        return [
            {"document_id": str(one.id), "name": one.name, "kind": "attached file", "characters": one.characters}
            for one in self.all
            if not document_ids or one.id in document_ids
        ]

    async def _all_passages(self) -> list[Passage]:
        return [passage for one in self.documents for passage in await self._of(one)]

    async def _of(self, attachment: Attachment) -> list[Passage]:
        if attachment.id not in self._passages:
            try:
                text = await attachment.text()
            except KnowSphereError:
                text = ""  # it is gone
            self._passages[attachment.id] = passages_of(attachment, text)
        return self._passages[attachment.id]


def passages_of(attachment: Attachment, text: str) -> list[Passage]:
    """Cut a text at blank lines, or hard where there is none, into passages under their heading."""
    found: list[Passage] = []
    heading = ""
    for start, end in _spans(text):
        heads = HEADING.findall(text[start:end])
        part = text[start:end].strip()
        if part:
            place = len(found)
            found.append(
                Passage(
                    chunk_id=uuid5(attachment.id, str(place)),
                    document_id=attachment.id,
                    knowledge_base_id=ATTACHED,
                    document=attachment.name,
                    text=part,
                    heading=heads[0] if heads else heading,
                    page=None,
                    page_end=None,
                    start=start,
                    end=end,
                    score=0.0,
                    place=place,
                )
            )
        heading = heads[-1] if heads else heading
    return found


def _spans(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    borders = [match.end() for match in BORDER.finditer(text)]
    while start < len(text):
        limit = start + PASSAGE
        fitting = [border for border in borders if start < border <= limit]
        end = len(text) if limit >= len(text) else fitting[-1] if fitting else limit
        spans.append((start, end))
        start = end
        borders = [border for border in borders if border > start]
    return spans
