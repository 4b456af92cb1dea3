"""Tool: find a regular expression, for codes, names and exact wording."""

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator

from apps.agents.context import TurnContext
from apps.agents.tools.catalog import Tool, ToolResult
from apps.agents.tools.results import counted, show
from apps.knowledge.retrieval.passages import Passage

AROUND = 200  # characters before and after the first match


class Arguments(BaseModel):
    """What to match."""

    model_config = ConfigDict(extra="forbid")

    pattern: str = Field(
        min_length=1, max_length=200, description="A regular expression, matched without regard to case."
    )
    limit: int = Field(default=10, ge=1, le=10, description="How many passages.")

    @field_validator("pattern")
    @classmethod
    def compiles(cls, value: str) -> str:
        """Refuse here what the database would refuse later, so that the model learns the field."""
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value


async def grep_chunks(context: TurnContext, arguments: Arguments) -> ToolResult:
    """Return the passages in which the pattern occurs, with the text around its first match."""
    found = await context.grep(arguments.pattern, arguments.limit)
    if not found:
        return ToolResult(f"No passage matches {arguments.pattern!r}.", summary=counted(context, ()))

    def body(passage: Passage) -> tuple[str, str]:
        middle = passage.focus or 0  # the database's: this process never runs a pattern that a model wrote
        start, end = max(0, middle - AROUND), min(len(passage.text), middle + 2 * AROUND)
        if end - start == len(passage.text):
            return passage.text, "full"
        return "…" * (start > 0) + passage.text[start:end] + "…" * (end < len(passage.text)), "excerpt"

    text, shown = show(context, "grep_chunks", found, body)
    return ToolResult(text, summary=counted(context, found[:shown]))


TOOL = Tool(
    name="grep_chunks",
    description=(
        "Find passages in which a regular expression occurs: codes, numbers, names, exact wording. "
        "Returns numbered excerpts."
    ),
    arguments=Arguments,
    run=grep_chunks,
    needs_knowledge=True,
    lookup=True,
    retrieval=True,
)
