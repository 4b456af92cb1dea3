"""Tool: search the web."""

from pydantic import BaseModel, ConfigDict, Field

from apps.agents.context import TurnContext
from apps.agents.tools.catalog import Tool, ToolResult
from apps.agents.tools.results import show_web
from apps.agents.web.addresses import same


class Arguments(BaseModel):
    """What to look for."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    query: str = Field(min_length=1, max_length=300, description="A few words to look for.")
    count: int = Field(default=6, ge=1, le=10, description="How many results.")


async def web_search(context: TurnContext, arguments: Arguments) -> ToolResult:
    """Ask the configured search engine once; its addresses may be opened with web_fetch."""
    hits = await context.search_web(arguments.query, arguments.count)
    if not hits:
        said = f"Nothing found on the web for {arguments.query!r}. Try fewer or other words."
        return ToolResult(said, summary=context.say("pages_found", pages=0))
    context.record.addresses.update(same(hit.url) for hit in hits)
    text = show_web(context, "web_search", [(hit.url, hit.title, hit.snippet) for hit in hits], part="snippet")
    return ToolResult(text, summary=context.say("pages_found", pages=len(hits)))


TOOL = Tool(
    name="web_search",
    description=(
        "Search the web. Returns numbered results with addresses and snippets; read a page with web_fetch. "
        "It supplements the knowledge bases and never replaces reading them."
    ),
    arguments=Arguments,
    run=web_search,
    needs_web=True,
    retrieval=True,
    lookup=True,
)
