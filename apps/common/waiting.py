"""Waiting for something slow, as long as it is wanted."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LOOK_EVERY_S = 0.25


async def while_wanted(work: Coroutine[Any, Any, T], check: Callable[[], None]) -> T:
    """Await a call, looking four times a second whether it is still wanted: what ``check`` raises ends it at once."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=LOOK_EVERY_S))[0]:
            check()
        return task.result()
    finally:
        task.cancel()  # a call that is over does not mind
        await asyncio.wait([task])
