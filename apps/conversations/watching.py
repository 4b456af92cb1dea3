"""A turn's events for whoever may see it, besides sockets: as a stream of its own, or those of the past."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from time import monotonic
from typing import Any
from uuid import UUID

import orjson

from apps.common.database import in_db, pool
from apps.common.errors import NotFound
from apps.conversations import rows
from apps.conversations.engine import ENGINE
from apps.conversations.models import Turn
from apps.conversations.replay import fit_for
from apps.workspaces.models import User

LOOK_AGAIN_S = 5.0  # how old a look at the reader's rights may be while events are sent, though nobody told of a change
ALIVE_S = 15.0  # how long a stream may be silent before proxies take it for dead


async def watch(turn_id: UUID, *, who: User, after: int = 0) -> AsyncGenerator[dict[str, Any], None]:
    """Yield a turn's events above ``after`` until its end, while ``who`` may see it.

    Raises:
        NotFound: there is no such turn for them, or no longer.
    """
    withdrawals = ENGINE.withdrawals
    await in_db(_require, turn_id, who)
    looked_at = monotonic()
    async with aclosing(ENGINE.follow(turn_id, after=after, reader=who.principal)) as batches:
        async for batch in batches:
            if withdrawals != ENGINE.withdrawals or monotonic() - looked_at > LOOK_AGAIN_S:
                withdrawals = ENGINE.withdrawals
                await in_db(_require, turn_id, who)
                looked_at = monotonic()
            for frame in batch:
                yield orjson.loads(frame)


def _require(turn_id: UUID, who: User) -> None:
    if not Turn.objects.visible_to(who).filter(pk=turn_id).exists():
        raise NotFound


async def past(turn_id: UUID, *, who: User, after: int, limit: int) -> list[dict[str, Any]]:
    """Return stored events of a turn whose door ``who`` has passed; what they quote goes by today's rights."""
    async with (await pool()).connection() as connection:
        found = await rows.read_events(connection, turn_id, after=after, limit=limit)
        shown = await fit_for(who.principal, found, connection)
    head = {"turn": str(turn_id)}
    return [{"seq": e["seq"], **head, "type": e["type"], "at_ms": e["at_ms"], **orjson.loads(e["data"])} for e in shown]


async def with_pulse(source: AsyncIterator[bytes], *, pulse: bytes) -> AsyncGenerator[bytes, None]:
    """Yield what a source yields, and ``pulse`` where it is silent for long."""
    task: asyncio.Future[bytes] = asyncio.ensure_future(anext(source))
    try:
        while True:
            done, _pending = await asyncio.wait({task}, timeout=ALIVE_S)
            if not done:
                yield pulse
                continue
            try:
                piece = task.result()
            except StopAsyncIteration:
                return
            yield piece
            task = asyncio.ensure_future(anext(source))
    finally:
        task.cancel()
