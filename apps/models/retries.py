"""When a failed call is worth another try, and how long to wait first."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from apps.models.errors import ModelError

ATTEMPTS = 3
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0  # a vendor that asks for more is overloaded: say so instead of hanging

T = TypeVar("T")


def pause_s(error: ModelError, attempt: int) -> float | None:
    """Return the seconds to wait after a failed ``attempt`` (from 1), or None to give up.

    Full jitter below a doubling bound, but never less than the vendor's Retry-After.
    """
    if not error.retryable or attempt >= ATTEMPTS:
        return None
    asked = error.retry_after_s or 0.0
    if asked > LONGEST_PAUSE_S:
        return None
    return float(asked + random.uniform(0, FIRST_PAUSE_S * 2 ** (attempt - 1)))  # noqa: S311 (not a secret)


async def retrying(call: Callable[[], Awaitable[T]]) -> T:
    """Await ``call()`` until it succeeds or is not worth another try."""
    attempt = 1
    while True:
        try:
            return await call()
        except ModelError as error:
            pause = pause_s(error, attempt)
            if pause is None:
                raise
        await asyncio.sleep(pause)
        attempt += 1
