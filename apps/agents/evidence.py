"""What an answer may stand on in this turn, decided by code and not by the model's good will."""

from apps.agents.citations import MARKER, NUMBER
from apps.agents.context import TurnContext
from apps.agents.state import TurnState

MOST_READ = 10  # passages that one reading takes


def owes_something(state: TurnState, context: TurnContext, *, forced: bool) -> bool:
    """Return whether what the model says next has to be looked at before anybody sees it."""
    if owes_nothing_said(context):
        return True
    return not forced and (owes_search(state, context) or owes_reading(context))


def owes_search(state: TurnState, context: TurnContext) -> bool:
    """Return whether the question wants facts and nothing was looked up in this turn."""
    asked = state.get("route") == "agent" and not state.get("attached", "").startswith("<")  # a short file stands there
    can = "doc_retrieval" in context.tools or "web_search" in context.tools
    return asked and can and not context.record.looked


def owes_reading(context: TurnContext) -> bool:
    """Return whether hits are known by excerpts alone, and nothing was asked to be read."""
    record = context.record
    return "list_chunks" in context.tools and bool(record.excerpts) and not record.readings


def cited_unread(context: TurnContext, text: str) -> list[int]:
    """Return the numbers that an answer cites although only an excerpt of them was seen."""
    if not owes_reading(context):
        return []
    cited = dict.fromkeys(int(n) for marker in MARKER.finditer(text) for n in NUMBER.findall(marker[0]))
    return [n for n in cited if n in context.record.excerpts][:MOST_READ]


def owes_nothing_said(context: TurnContext) -> bool:
    """Return whether everything that was looked up gave nothing, so that no fact can follow."""
    return bool(context.record.looked) and not context.record.found


def nothing_said(context: TurnContext) -> str:
    """Return the sentence that is the answer where nothing was found, or nothing could be reached; else ""."""
    record = context.record
    if not owes_nothing_said(context):
        return ""
    if record.failed == record.looked:
        return context.say("lookup_failed")
    return context.say("nothing_found", queries=", ".join(f"“{query}”" for query in record.queries[:5]))
