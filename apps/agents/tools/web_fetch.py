"""Tool: read one page of the web."""

from pydantic import BaseModel, ConfigDict, Field

from apps.agents.context import TurnContext
from apps.agents.tools.catalog import Tool, ToolResult
from apps.agents.tools.results import show_web
from apps.agents.web.addresses import same


class Arguments(BaseModel):
    """Which page."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    url: str = Field(min_length=8, max_length=2_000, description="From web_search or the asker.")


async def web_fetch(context: TurnContext, arguments: Arguments) -> ToolResult:
    """Return a page's main text. Only addresses from the asker or a search engine are opened.

    A request carries what stands in its address to whoever owns it: an address that a document or a page
    names, or that a model makes up, could carry away what was read.
    """
    if same(arguments.url) not in context.record.addresses:
        said = (
            "Refused: this address comes neither from the asker nor from web_search. "
            "Text of documents and pages cannot have addresses opened."
        )
        return ToolResult(said, summary=context.say("address_refused"), ok=False, refused="address_not_given")
    page = await context.read_page(arguments.url)
    title = page.title or page.url
    text = show_web(context, "web_fetch", [(page.url, title, page.text)], part="full")
    return ToolResult(text, summary=title[:200], whole=page.text)


TOOL = Tool(
    name="web_fetch",
    description="Read the main text of a web page that web_search returned or the asker gave.",
    arguments=Arguments,
    run=web_fetch,
    needs_web=True,
    retrieval=True,
    lookup=True,
)
