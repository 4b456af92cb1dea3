"""What a search returns: plain values that cross into the graph, the pages and the API."""

from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that was hit, with the parent text to read and the reasons it was found.

    ``ranks`` holds the place in each leg ("vector", "lexical", "trigram"), from 1, absent where the leg did
    not find it. ``score`` orders one result list and means nothing outside it. ``focus`` is the
    character of ``text`` where what was looked for stands, where that is known.
    """

    chunk_id: UUID  # the parent passage
    document_id: UUID
    knowledge_base_id: UUID
    document: str  # the document's name
    text: str
    heading: str
    page: int | None
    page_end: int | None
    start: int  # character offsets in the document's Markdown
    end: int
    score: float
    ranks: dict[str, int] = field(default_factory=dict)
    rerank_score: float | None = None
    focus: int | None = None
    place: int | None = None  # in its document, from 0, by which it is read with what stands around it


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a search: how long it took and how many candidates entered and left it."""

    name: str
    ms: float
    entered: int
    left: int
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """How one candidate fared. ``lost_at`` names the stage that it did not survive, "" for a hit."""

    chunk_id: UUID
    ranks: dict[str, int]
    scores: dict[str, float]  # by leg, and "fusion", "rerank"
    lost_at: str = ""


class Traced(Protocol):
    """A candidate that can tell how it fared."""

    def trace(self) -> Trace:
        """Return it."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Passages, best first, and how they were found.

    ``degraded`` names the parts that failed while others answered: a leg, "rerank", "expansion",
    "profile". ``empty_reason`` says why there is nothing: "no_base" (none selected, or none of them
    readable), "nothing_indexed", "filter", "threshold", "no_match". ``reranked_by`` names what put the passages
    into their order, "" where it is the fused one.
    """

    passages: tuple[Passage, ...]
    stages: tuple[Stage, ...] = ()
    degraded: tuple[str, ...] = ()
    empty_reason: str = ""
    reranked_by: str = ""
    expanded: tuple[str, ...] = ()  # the questions that were asked besides
    candidates: tuple[Traced, ...] = ()

    @property
    def traces(self) -> tuple[Trace, ...]:
        """Return how each candidate fared; put together when somebody asks, which hardly anybody does."""
        return tuple(candidate.trace() for candidate in self.candidates)
