"""Node: one answer without tools."""

from typing import Any

from langgraph.runtime import Runtime

from apps.agents.answering import answer, last_request, request_for
from apps.agents.context import TurnContext
from apps.agents.messages import INTERRUPTED_ANSWER
from apps.agents.state import TurnState


async def generate(state: TurnState, runtime: Runtime[TurnContext]) -> dict[str, Any]:
    """Answer a greeting or small talk by one model call, or say the fixed sentence of the route.

    A question about documents without a base, or about the web with the web off, is never answered
    from the model's memory. Writes ``messages`` and ``fingerprint``.
    """
    context = runtime.context
    if notice := state.get("notice"):
        said = context.say(notice)
        context.token(said)
        return {"messages": [{"role": "assistant", "content": said}]}
    request, mark = request_for(state, context, tools=())
    reply = await answer(context, request)
    message = {"role": "assistant", "content": reply.content or INTERRUPTED_ANSWER}
    return {"messages": [message], **last_request(context, request, mark)}
