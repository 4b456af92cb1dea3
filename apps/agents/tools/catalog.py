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
    """What a call gave: ``text`` for the model, ``summary`` for the asker.

    ``whole`` is what is put away in place of ``text`` where a result is too large for the prompt, and
    ``store`` asks for that whatever its size. ``documents`` are documents shown beside the numbered ones.
    """

    text: str
    summary: str = ""
    ok: bool = True
    whole: str = ""
    store: bool = False
    documents: tuple[str, ...] = ()
    ran: bool = True  # False: the call was wrong, so nothing was looked up
    found: bool = False  # something was found that has no number, such as names of documents
    refused: str = ""  # why it was not done, where that is a rule and no mistake


@dataclass(frozen=True, slots=True)
class Tool:
    """One thing that the model may call. The schema that it sees is made from ``arguments``."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[TurnContext, Any], Awaitable[ToolResult]]
    needs_knowledge: bool = False
    needs_web: bool = False
    retrieval: bool = False  # its results may be cited
    lookup: bool = False  # it looks for what an answer may stand on
    at_run_time: bool = False  # comes with any other tool; no agent's configuration names it
    paged: bool = False  # keeps its own results small; they are never put away


TOOLS = Registry[Tool](
    "tool",
    {
        "doc_retrieval": "apps.agents.tools.doc_retrieval.TOOL",
        "get_document_info": "apps.agents.tools.get_document_info.TOOL",
        "get_stored_data": "apps.agents.tools.get_stored_data.TOOL",
        "grep_chunks": "apps.agents.tools.grep_chunks.TOOL",
        "list_chunks": "apps.agents.tools.list_chunks.TOOL",
        "web_fetch": "apps.agents.tools.web_fetch.TOOL",
        "web_search": "apps.agents.tools.web_search.TOOL",
        "write_plan": "apps.agents.tools.write_plan.TOOL",
    },
)


def usable(names: Iterable[str], switches: Switches) -> dict[str, Tool]:
    """Return the agent's tools that can work in this turn, by name; unknown names are skipped."""
    chosen = {name for name in names if name in TOOLS}
    tools = [TOOLS.get(name) for name in TOOLS]
    return {
        tool.name: tool
        for tool in tools
        if (tool.name in chosen or (chosen and tool.at_run_time))
        and (switches.knowledge or not tool.needs_knowledge)
        and (switches.web or not tool.needs_web)
    }


def reaches_web(names: Iterable[str]) -> bool:
    """Return whether one of an agent's tools needs the web."""
    return any(TOOLS.get(name).needs_web for name in set(names) if name in TOOLS)


def choosable() -> list[Tool]:
    """Return the tools that an agent's configuration may name."""
    return [tool for name in TOOLS if not (tool := TOOLS.get(name)).at_run_time]


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
