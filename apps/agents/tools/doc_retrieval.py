"""Tool: search by meaning and by words in the turn's knowledge bases."""

from datetime import date
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from apps.agents.context import TurnContext
from apps.agents.tools.catalog import Tool, ToolResult
from apps.agents.tools.excerpts import excerpt
from apps.agents.tools.results import counted, show
from apps.knowledge.retrieval.filters import Condition, Filters, Text
from apps.knowledge.retrieval.passages import Passage

EXCERPT = 560  # characters; ten of them with their heads fit one result
EMPTY = {
    "no_base": "No knowledge base is selected.",
    "nothing_indexed": "The selected knowledge bases hold no indexed document that the asker may read.",
    "filter": "No document fits the filters. Search again with fewer of them.",
    "threshold": "Nothing relevant was found: no passage reaches the threshold of the selected knowledge bases.",
}


class Arguments(BaseModel):
    """What to look for."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    query: str = Field(
        min_length=1, max_length=500, description="A whole question or the words to look for, in any language."
    )
    top_k: int | None = Field(
        default=None, ge=1, le=10, description="How many passages; null: as many as the knowledge bases are set to."
    )
    tags: list[Text] = Field(default_factory=list, max_length=10, description="Only documents with all of these tags.")
    folders: list[UUID] = Field(
        default_factory=list,
        max_length=10,
        description="Only documents in one of these folders or below: a folder_id of get_document_info.",
    )
    document_name: str = Field(default="", max_length=200, description="Only documents whose name contains this.")
    added_from: date | None = Field(default=None, description="Only documents added on this day or later, YYYY-MM-DD.")
    added_to: date | None = Field(default=None, description="Only documents added on this day or earlier, YYYY-MM-DD.")
    metadata: list[Condition] = Field(
        default_factory=list, max_length=10, description="Only documents with these facts, by the fields of their base."
    )

    def filters(self) -> Filters:
        """Return what documents must fit."""
        return Filters.of(
            {
                "tags": self.tags,
                "folders": self.folders,
                "name": self.document_name,
                "added_from": self.added_from,
                "added_to": self.added_to,
                "metadata": self.metadata,
            }
        )


async def doc_retrieval(context: TurnContext, arguments: Arguments) -> ToolResult:
    """Search once, by meaning and by words together; long passages are shown as excerpts."""
    filters = arguments.filters()
    found = await context.search(arguments.query, arguments.top_k, *([filters] if filters else []))
    notes = []
    if found.degraded:
        notes.append(f"Part of the search failed ({', '.join(found.degraded)}): results may be incomplete.")
    if not found.passages:
        reason = EMPTY.get(found.empty_reason, f"Nothing found for {arguments.query!r}. Try fewer or other words.")
        return ToolResult("\n".join([reason, *notes]), summary=counted(context, ()))

    def body(passage: Passage) -> tuple[str, str]:
        shown = excerpt(passage.text, arguments.query, limit=EXCERPT, focus=passage.focus)
        return shown, "full" if shown == passage.text else "excerpt"

    text, shown = show(context, "doc_retrieval", found.passages, body, notes=notes)
    if 'part="excerpt"' in text:
        text += "\nRead those marked as excerpts in full with list_chunks before you answer from them."
    return ToolResult(text, summary=counted(context, found.passages[:shown]))


TOOL = Tool(
    name="doc_retrieval",
    description=(
        "Search the selected knowledge bases by meaning and by words. Returns numbered passages, the best first. "
        "Use it before answering any question about facts."
    ),
    arguments=Arguments,
    run=doc_retrieval,
    needs_knowledge=True,
    lookup=True,
    retrieval=True,
)
