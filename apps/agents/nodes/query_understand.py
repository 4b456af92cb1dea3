"""Node: what the question means and what it wants."""

import logging
from typing import Any

from langgraph.runtime import Runtime

from apps.agents.context import Decision, TurnContext
from apps.agents.nodes.manage_memory import only_remember
from apps.agents.prompts import prompt
from apps.agents.rewriting import accepted, leaves_out
from apps.agents.routing import route
from apps.agents.state import TurnState
from apps.common.errors import KnowSphereError
from apps.models.chat import ChatRequest

logger = logging.getLogger(__name__)

ANSWER_LIMIT = 600  # characters of an earlier answer that the rewrite sees


async def query_understand(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Restore what the question refers to, name its intent, choose the next node by code.

    Writes ``rewrite_query``, ``intent``, ``image_description``, ``route`` and ``notice``. Emits
    one ``understanding``. These are short requests of their own: they share nothing with the prompt.
    """
    context = runtime.context
    if state.get("remembered") and only_remember(context.question):
        _emit(context, context.question, "chitchat", 1.0, "rules")
        return {"rewrite_query": context.question, "intent": "chitchat", "route": "generate", "notice": "remembered"}
    question = await _restore(state, context)
    decision: Decision = await context.decide(question)
    _emit(context, question, decision.label, decision.confidence, decision.method)
    chosen = route(decision.label, has_base=context.switches.knowledge, web=context.switches.web)
    return {
        "rewrite_query": question,
        "intent": decision.label,
        "image_description": "",
        "route": chosen.node,
        "notice": chosen.notice,
    }


async def _restore(state: TurnState, context: TurnContext) -> str:
    pairs = state.get("recent_pairs") or []
    if not pairs or not context.rewrites or not leaves_out(context.question):
        return context.question
    earlier = "\n".join(f"Q: {asked}\nA: {answer[:ANSWER_LIMIT]}" for asked, answer in pairs)
    background = "\n".join(state.get("asker_background") or [])
    memory = "\n".join([context.note, *(state.get("plan") or [])]).strip()  # of work, for this request alone
    note = f"<note>\n{memory}\n</note>\n" if memory else ""
    request = ChatRequest(
        messages=[
            {"role": "system", "content": prompt("rewrite")},
            {
                "role": "user",
                "content": f"{note}<earlier>\n{earlier}\n</earlier>\n<asker>\n{background}\n</asker>\n"
                f"<question>\n{context.question}\n</question>",
            },
        ],
        temperature=0.0,
        max_tokens=300,
        thinking=False,
        purpose="understand",
    )
    try:
        reply = await context.ask_fast(request)
    except KnowSphereError as error:
        logger.info("rewrite skipped: %s", error.code)
        return context.question
    rewritten = reply.text.strip()
    return (
        rewritten
        if accepted(context.question, rewritten, earlier=f"{earlier}\n{background}\n{memory}")
        else context.question
    )


def _emit(context: TurnContext, question: str, intent: str, confidence: float, method: str) -> None:
    context.emit(
        "understanding",
        {
            "rewrite_query": question,
            "intent": intent,
            "confidence": round(confidence, 3),
            "method": method,
            "image_description": "",
        },
    )
