"""The tools that exist. An agent stores names of this table, nothing executable."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from apps.agents.context import Switches, TurnContext
from apps.common.registry import Registry
from apps.models.chat import Wire


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave: ``text`` for the model, ``summary`` for the asker."""

    text: str
    summary: str = ""
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Tool:
    """One thing that the model may call. The schema that it sees is made from ``arguments``."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[TurnContext, Any], Awaitable[ToolResult]]
    needs_knowledge: bool = False
    retrieval: bool = False  # its results may be cited


TOOLS = Registry[Tool](
    "tool",
    {
        "doc_retrieval": "apps.agents.tools.doc_retrieval.TOOL",
        "get_document_info": "apps.agents.tools.get_document_info.TOOL",
        "grep_chunks": "apps.agents.tools.grep_chunks.TOOL",
        "list_chunks": "apps.agents.tools.list_chunks.TOOL",
    },
)


def usable(names: Iterable[str], switches: Switches) -> dict[str, Tool]:
    """Return the agent's tools that can work in this turn, by name; unknown names are skipped."""
    tools = (TOOLS.get(name) for name in sorted(set(names)) if name in TOOLS)
    return {tool.name: tool for tool in tools if switches.knowledge or not tool.needs_knowledge}


@cache
def schema(tool: Tool) -> Wire:
    """Return a tool as the OpenAI chat interface describes one, shared by all turns: never change it."""
    parameters = _plain(tool.arguments.model_json_schema())
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def _plain(node: Any) -> Any:
    """Drop the titles that pydantic makes from names: tokens without news."""
    if isinstance(node, dict):
        return {
            key: {name: _plain(field) for name, field in value.items()} if key == "properties" else _plain(value)
            for key, value in node.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_plain(item) for item in node] if isinstance(node, list) else node
