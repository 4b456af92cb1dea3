"""How many calls a model gets at once, and whether it gets any: a place in its line, and a circuit breaker.

Both belong to the process. A model that failed several times in a row is left alone for a while, so that
every turn does not wait for its time-outs; then one call tries it.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _

from apps.models.chat import ResolvedModel
from apps.models.errors import ModelOverloaded, ModelTimeout, ModelUnavailable

FAILURES = 4  # calls in a row, each of which was tried three times
REST_S = 30.0
LINE_S = 60.0  # how long a call may wait for its place


@dataclass(slots=True)
class _Health:
    failures: int = 0
    rests_until: float = 0.0


_Key = tuple[UUID | None, str, str, str]  # workspaces with the same vendor and name do not share line or failures
_health: dict[_Key, _Health] = {}
_places: dict[tuple[asyncio.AbstractEventLoop, int, _Key], asyncio.Semaphore] = {}


@asynccontextmanager
async def place(model: ResolvedModel) -> AsyncIterator[None]:
    """Hold a place at the model for one call.

    Raises:
        ModelUnavailable: it failed just now, several times in a row.
        ModelOverloaded: its places were taken for a minute.
    """
    health = _health.setdefault(_key(model), _Health())
    left = health.rests_until - time.monotonic()
    if health.failures >= FAILURES:
        if left > 0:
            raise ModelUnavailable(
                model=model.name, reason=_("it failed several times; it is tried again in %(s)d s") % {"s": left + 1}
            )
        health.rests_until = time.monotonic() + REST_S  # this call tries it, others wait for what it finds
    line = _line(model)
    if line is not None:
        try:
            async with asyncio.timeout(LINE_S):
                await line.acquire()
        except TimeoutError:
            raise ModelOverloaded(model=model.name, reason=_("too many calls at once")) from None
    try:
        yield
    except (ModelUnavailable, ModelTimeout):
        health.failures += 1
        health.rests_until = time.monotonic() + REST_S
        raise
    except Exception:
        health.failures = 0  # it answers, if only to refuse
        raise
    else:
        health.failures = 0
    finally:
        if line is not None:
            line.release()


def forget() -> None:
    """Forget failures, as after a model's settings changed."""
    _health.clear()


def _key(model: ResolvedModel) -> _Key:
    return model.id, model.base_url, model.name, str(model.kind)


def _line(model: ResolvedModel) -> asyncio.Semaphore | None:
    if not model.max_concurrent:
        return None
    loop = asyncio.get_running_loop()
    key = (loop, model.max_concurrent, _key(model))
    if key not in _places:
        for other in [known for known in _places if known[0].is_closed()]:
            del _places[other]
        _places[key] = asyncio.Semaphore(model.max_concurrent)
    return _places[key]
