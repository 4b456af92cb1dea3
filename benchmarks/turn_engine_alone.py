"""The product with a runner that only passes the model's stream on: what the turn engine costs.

``uvicorn benchmarks.turn_engine_alone:application``.
"""

import asyncio
from contextlib import aclosing

from knowsphere.asgi import application as product

# isort: split
from apps.agents.turn import EventSink, TurnOutcome, TurnRequest
from apps.common.lifespan import Lifespan
from apps.conversations.engine import ENGINE
from benchmarks.relay import UPSTREAM


async def run_turn(request: TurnRequest, *, events: EventSink, stop: asyncio.Event) -> TurnOutcome:
    """Answer with the model's own stream."""
    texts: list[str] = []
    async with aclosing(UPSTREAM.stream(request.question)) as stream:
        async for text in stream:
            if stop.is_set():
                return TurnOutcome("stopped", "".join(texts))
            texts.append(text)
            events.token(text)
    return TurnOutcome("succeeded", "".join(texts))


ENGINE.run_turn = run_turn
application = Lifespan(product.application, services=[UPSTREAM, *product.services])
