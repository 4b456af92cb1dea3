"""Tool: what documents there are, without their text."""

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from apps.agents.context import TurnContext
from apps.agents.delimiters import disarmed
from apps.agents.tools.catalog import Tool, ToolResult
from apps.agents.tools.list_chunks import document_of
from apps.agents.tools.results import ITEMS, LIMIT

FACTS = 300  # characters of one document's tags, and of its facts


class Arguments(BaseModel):
    """Which documents; none named: those of the selected bases."""

    model_config = ConfigDict(extra="forbid")

    documents: list[str] = Field(
        default_factory=list,
        max_length=10,
        description="Ids, or numbers of results (c1). Empty: the first documents of the selected knowledge bases.",
    )


async def get_document_info(context: TurnContext, arguments: Arguments) -> ToolResult:
    """Describe documents, and what a search can be narrowed by. It never returns text, so nothing to cite."""
    wanted = [document_of(context, reference) for reference in arguments.documents]
    missing = [name for name, found in zip(arguments.documents, wanted, strict=True) if found is None]
    document_ids = [found for found in wanted if found is not None]
    rows = [] if missing and not document_ids else await context.info(document_ids=document_ids)
    here = {str(row.get("document_id") or row.get("id")) for row in rows}
    missing += [str(document_id) for document_id in document_ids if str(document_id) not in here]
    lines = [_line(row) for row in rows]
    if not arguments.documents:
        names = ", ".join(base.name for base in context.bases)
        total = sum("total" not in row for row in rows) + max((row.get("total", 0) for row in rows), default=0)
        lines.insert(0, f"Knowledge bases: {names}. {total} documents, the newest {min(ITEMS, len(rows))} of them:")
    if missing:
        lines.append(f"Not found: {', '.join(name[:60] for name in missing)}.")
    shown = lines[: ITEMS + 2]
    text = disarmed("\n".join(shown))[: LIMIT - 200]
    return ToolResult(
        f'<results tool="get_document_info">\n{text}\n</results>\nThese are names and numbers, no evidence.',
        summary=context.say("documents_described", documents=len(rows)),
        ok=bool(rows) or not missing,
        documents=tuple(sorted(here)),
        found=bool(rows),
    )


def _line(row: Mapping[str, Any]) -> str:
    """Say what is known of one document; of tags and facts the beginning."""
    known = {key: value for key, value in row.items() if key != "total" and value not in (None, "", [], {})}
    return " · ".join(f"{key}: {_value(value)}" for key, value in known.items())


def _value(value: Any) -> str:
    return orjson.dumps(value).decode()[:FACTS] if isinstance(value, dict | list) else str(value)


TOOL = Tool(
    name="get_document_info",
    description="List documents with their names, state, pages, size, tags, folder and facts. It returns no text.",
    arguments=Arguments,
    run=get_document_info,
    needs_knowledge=True,
    lookup=True,
)
