"""Where a question goes after it was understood. Code decides, not the main model."""

from dataclasses import dataclass

SKIPPED = frozenset({"greeting", "chitchat", "image_only", "doc_only"})
ABOUT_KNOWLEDGE = frozenset({"kb_search", "summarize", "clarification"})
INTENTS = SKIPPED | ABOUT_KNOWLEDGE | {"web_search"}


@dataclass(frozen=True, slots=True)
class Route:
    """The next node; ``notice`` names a fixed sentence that is the whole answer."""

    node: str  # "generate" or "agent"
    notice: str = ""


def route(intent: str, *, has_base: bool, web: bool, professional_tool: bool = False) -> Route:
    """Choose the node for an intent.

    Args:
        intent: one of INTENTS; anything else is treated as ``kb_search``.
        has_base: at least one knowledge base is selected and readable.
        web: web access is on for this turn.
        professional_tool: the agent has a tool bound that makes things, such as slides.
    """
    if intent in SKIPPED:
        return Route("generate")
    if professional_tool:
        return Route("agent")
    if intent == "web_search":
        return Route("agent") if web or has_base else Route("generate", "web_off")
    return Route("agent") if has_base else Route("generate", "no_base")
