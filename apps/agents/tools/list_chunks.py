"""Tool: read passages in full."""

import re
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from apps.agents.context import TurnContext
from apps.agents.tools.catalog import Tool, ToolResult
from apps.agents.tools.results import counted, show
from apps.knowledge.retrieval.passages import Passage

CUT = re.compile(r'^<result id="c(\d+)" [^\n]*part="cut">\n(.*)\n</result>$', re.MULTILINE | re.DOTALL)


class Arguments(BaseModel):
    """Which passages: by number, or a run of one document."""

    model_config = ConfigDict(extra="forbid")

    ids: list[str] = Field(
        default_factory=list, max_length=10, description='Numbers of results ("c1") or chunk ids to read in full.'
    )
    document: str = Field(
        default="", description="Read a document in order: the number of one of its results or its id."
    )
    first: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="With document: the place of the first passage, from 0. Around a hit: its own place less 1 or 2.",
    )
    count: int = Field(default=5, ge=1, le=10, description="With document: how many passages.")
    start_at: int = Field(
        default=0, ge=0, le=100_000_000, description="Skip so many characters of the first passage, to read on."
    )

    @model_validator(mode="after")
    def one_way(self) -> "Arguments":
        """Require exactly one of the two ways to name passages."""
        if bool(self.ids) == bool(self.document):
            raise ValueError("give either ids or document")
        return self


async def list_chunks(context: TurnContext, arguments: Arguments) -> ToolResult:
    """Read what was named, in full as far as one result holds; the rest is named for the next call."""
    if arguments.ids:
        wanted = [chunk_of(context, reference) for reference in arguments.ids]
        missing = [name for name, chunk in zip(arguments.ids, wanted, strict=True) if chunk is None]
        chunk_ids = list(dict.fromkeys(chunk for chunk in wanted if chunk is not None))
        found = list(await context.read(chunk_ids=chunk_ids)) if chunk_ids else []
        place = {chunk: i for i, chunk in enumerate(chunk_ids)}
        found.sort(key=lambda passage: place.get(passage.chunk_id, len(place)))
        if len(found) < len(chunk_ids):
            here = {passage.chunk_id for passage in found}
            missing += [n for n, c in zip(arguments.ids, wanted, strict=True) if c is not None and c not in here]
    else:
        document_id = document_of(context, arguments.document)
        missing = [] if document_id else [arguments.document]
        found = (
            list(await context.read(document_id=document_id, first=arguments.first, count=arguments.count))
            if document_id
            else []
        )
    notes = [f"Not found: {', '.join(name[:60] for name in missing)}."] if missing else []
    if not found:
        return ToolResult("\n".join(notes) or "There is no passage at that place.", ok=not missing)

    offset = {found[0].chunk_id: arguments.start_at}

    def body(passage: Passage) -> tuple[str, str]:
        start = offset.get(passage.chunk_id, 0)
        return passage.text[start:], "rest" if start else "full"

    text, shown = show(context, "list_chunks", found, body, notes=notes)
    if cut := CUT.search(text):
        went = arguments.start_at + len(cut[2])
        text += f'\nc{cut[1]} goes on: read on with ids ["c{cut[1]}"] and start_at {went} before you answer from it.'
    if shown < len(found):
        text += f"\n{len(found) - shown} more passages did not fit: ask for them in the next call."
    return ToolResult(text, summary=counted(context, found[:shown]))


def chunk_of(context: TurnContext, reference: str) -> UUID | None:
    """Return the chunk that a number or an id names."""
    source = context.record.sources.find(reference)
    return source.chunk_id if source else _uuid(reference)


def document_of(context: TurnContext, reference: str) -> UUID | None:
    """Return the document that a result's number or an id names."""
    source = context.record.sources.find(reference)
    return source.document_id if source else _uuid(reference)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


TOOL = Tool(
    name="list_chunks",
    description=(
        "Read passages in full: by the numbers of results (c1), by chunk id, or a document from a place on. "
        "Always read a hit in full before you answer from it."
    ),
    arguments=Arguments,
    run=list_chunks,
    needs_knowledge=True,
    lookup=True,
    retrieval=True,
)
