"""What a turn did, as the list of steps that readers see. Pure: events in, lines out.

The page's script builds the same list while the turn runs, with the same words (``words``).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.utils.translation import gettext as _

# Steps that appear only when something is amiss, or when something was remembered.
WARNINGS = {"store_answer", "checkpoint", "image", "memory", "remembered", "retry"}
SHOWN_TYPES = ("step", "handoff", "plan", "understanding", "tool.started", "tool.finished")


class Event(Protocol):
    """A stored event; rows of TurnEvent are such."""

    type: str
    data: dict[str, Any]


@dataclass(slots=True)
class Line:
    """One step: ``state`` is "ok", "running" or "bad"."""

    key: str
    name: str
    label: str
    state: str = "running"
    seconds: float | None = None
    details: list[str] = field(default_factory=list)
    note: str = ""  # longer, folded away


def words() -> dict[str, list[str]]:
    """Return for each step that is shown what to call it while it runs and when it is done."""
    return {
        "query_understand": [_("Understanding the question"), _("Understood the question")],
        "handoff": [_("Summing up earlier turns"), _("Summed up earlier turns")],
        "doc_retrieval": [_("Searching"), _("Searched")],
        "grep_chunks": [_("Searching for exact words"), _("Searched for exact words")],
        "list_chunks": [_("Reading passages"), _("Read passages")],
        "get_document_info": [_("Looking up documents"), _("Looked up documents")],
        "web_search": [_("Searching the web"), _("Searched the web")],
        "web_fetch": [_("Reading a page"), _("Read a page")],
        "write_plan": [_("Planning"), _("Planned")],
        "get_stored_data": [_("Reading a stored result"), _("Read a stored result")],
        "answer": [_("Answering"), _("Answered")],
        "store_answer": [_("Waiting for the database"), _("Stored the answer")],
        "checkpoint": [_("Saving the conversation"), _("The conversation’s state was not saved")],
        "image": [_("Looking at the picture"), _("The picture was not seen")],
        "memory": [_("Remembering"), _("Not remembered")],
        "remembered": [_("Remembering"), _("Remembered")],
        "retry": [_("Trying a tool again"), _("Tried a tool again")],
        "other": [_("Using a tool"), _("Used a tool")],
    }


def timeline(events: Iterable[Event], *, answered: bool, over: bool) -> list[Line]:
    """Return the steps in the order in which they began.

    ``answered``: some text was written. ``over``: nothing runs any more, so a step that never
    finished was cut off.
    """
    lines: dict[str, Line] = {}
    for event in events:
        _apply(lines, event.type, event.data)
    if not answered:
        lines.pop("answer", None)
    for line in lines.values():
        if over and line.state == "running":
            line.state = "bad"
        line.label = _label(line.name, done=line.state != "running")
    return list(lines.values())


def _apply(lines: dict[str, Line], kind: str, data: dict[str, Any]) -> None:
    if kind == "step" and data.get("name") == "query_understand":
        _step(lines, "query_understand", data)
    elif kind == "step" and data.get("name") in {"agent", "generate"}:
        if data.get("status") == "started":
            lines.pop("answer", None)  # of an earlier round, which ended in tool calls
        _step(lines, "answer", data)
    elif kind == "step" and data.get("name") in WARNINGS:
        _step(lines, data["name"], data)
        if data.get("detail"):
            lines[data["name"]].details.append(str(data["detail"]))
    elif kind == "plan":
        lines["plan"] = Line("plan", "write_plan", "", state="ok", note=_planned(data.get("steps")))
    elif kind == "tool.started" and data.get("name") == "write_plan":
        return  # its plan is shown, once
    elif kind == "handoff":
        lines["handoff"] = Line("handoff", "handoff", "", state="ok", note=str(data.get("text", "")))
    elif kind == "understanding" and "query_understand" in lines and data.get("rewrite_query"):
        lines["query_understand"].details = [f"“{data['rewrite_query']}”"]
    elif kind == "tool.started":
        line = Line(key=str(data.get("call_id")), name=str(data.get("name")), label="")
        line.details = _asked(data.get("arguments"))
        lines[line.key] = line
    elif kind == "tool.finished" and (begun := lines.get(str(data.get("call_id")))):
        begun.state = "ok" if data.get("ok") else "bad"
        begun.seconds = _seconds(data)
        if data.get("summary"):
            begun.details.append(str(data["summary"])[:200])


def _step(lines: dict[str, Line], name: str, data: dict[str, Any]) -> None:
    line = lines.setdefault(name, Line(key=name, name=name, label=""))
    if data.get("status") != "started":
        line.state = "ok" if data.get("status") == "finished" else "bad"
        line.seconds = _seconds(data)


def _planned(steps: Any) -> str:
    """Return a plan as lines, each with the sign of its state."""
    signs = {"done": "✓", "running": "▸", "dropped": "✕"}
    shown = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return "\n".join(f"{signs.get(str(step.get('state')), '○')} {step.get('title', '')}"[:220] for step in shown)


def _asked(arguments: Any) -> list[str]:
    """Return what a tool was asked to look for, in quotation marks."""
    if not isinstance(arguments, dict):
        return []
    asked = arguments.get("query") or arguments.get("pattern") or arguments.get("url") or ""
    return [f"“{asked}”"[:200]] if asked else []


def _seconds(data: dict[str, Any]) -> float | None:
    elapsed = data.get("elapsed_ms")
    return elapsed / 1000 if isinstance(elapsed, int | float) else None


def _label(name: str, *, done: bool) -> str:
    known = words()
    return known.get(name, known["other"])[done]
