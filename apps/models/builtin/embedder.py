"""The built-in embedding model: multilingual-e5-small, 384 dimensions, in this process, without network.

Everything loads when it is first used (about a second) and stays. Never on the event loop: ``embed`` runs
in threads of its own, and the model's lock is held for one small batch at a time, so that a question does not
wait behind a document. Cosines lie in about .7–1; no absolute threshold means anything.
"""

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from apps.models.builtin.network import Network
from apps.models.builtin.tokenizer import Tokenizer
from apps.models.builtin.weights import WeightFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DIMENSIONS = 384
PREFIXES = {"query": "query: ", "passage": "passage: "}
BATCH_TOKENS = 1_024  # larger batches leave the CPU's caches: slower, not faster
MAX_THREADS = 4

_lock = threading.Lock()
_loading = threading.Lock()
EXECUTOR = ThreadPoolExecutor(2, thread_name_prefix="embedder")


def embed_now(texts: Sequence[str], *, purpose: str) -> "Vectors":
    """Return vectors [len(texts), 384] of length 1, in the order of ``texts``.

    ``purpose`` is "query" or "passage": the model was trained with these words before its texts. A text
    of more than 510 tokens is read in windows, and its vector is their mean by length.
    """
    if purpose == "query" and len(texts) == 1:  # a turn asks twice: for its intent, and to search
        return _question(texts[0]).copy()
    return _embedded(texts, purpose)


@lru_cache(maxsize=256)
def _question(text: str) -> "Vectors":
    return _embedded([text], "query")


def _embedded(texts: Sequence[str], purpose: str) -> "Vectors":
    import numpy as np

    network, tokenizer = _network(), _tokenizer()
    prefix, size = PREFIXES[purpose], network.shape.positions - 2
    windows: list[tuple[int, list[int]]] = []
    for number, text in enumerate(texts):
        ids = tokenizer.ids(prefix + text)
        windows.extend((number, ids[start : start + size]) for start in range(0, len(ids), size))
    windows.sort(key=lambda window: len(window[1]))  # alike lengths together: little padding
    sums = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
    for batch in _batches(windows):
        with _lock:
            pooled = network.pooled([ids for _number, ids in batch])
        for (number, ids), vector in zip(batch, pooled, strict=True):
            sums[number] += len(ids) * vector
    vectors: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return vectors


async def embed(texts: Sequence[str], *, purpose: str) -> "Vectors":
    """Do the same away from the event loop."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(EXECUTOR, lambda: embed_now(texts, purpose=purpose))


def warm_up() -> None:
    """Begin to load in the background and return at once: somebody is about to ask."""
    if not _load_network.cache_info().currsize:
        EXECUTOR.submit(_question, "hello")


def count_tokens(text: str) -> int:
    """Return how many tokens the model makes of a text, without its prefix and borders."""
    return len(_tokenizer().ids(text)) if text else 0


def threads() -> int:
    """Return the CPU threads of one call: EMBEDDER_THREADS, else one in servers, a few in commands."""
    if settings.EMBEDDER_THREADS:
        return int(settings.EMBEDDER_THREADS)
    if os.environ.get("KNOWSPHERE_PROCESS") in {"web", "worker"}:
        return 1
    return min(MAX_THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _batches(windows: list[tuple[int, list[int]]]) -> list[list[tuple[int, list[int]]]]:
    """Cut windows, shortest first, into batches whose padded size stays within BATCH_TOKENS."""
    batches: list[list[tuple[int, list[int]]]] = []
    for window in windows:
        padded = len(window[1]) + 2
        if batches and (len(batches[-1]) + 1) * padded <= BATCH_TOKENS:
            batches[-1].append(window)
        else:
            batches.append([window])
    return batches


def _network() -> Network:
    with _loading:
        return _load_network()


def _tokenizer() -> Tokenizer:
    with _loading:
        return _load_tokenizer()


@lru_cache(maxsize=1)
def _weights() -> WeightFile:
    return WeightFile()


@lru_cache(maxsize=1)
def _load_network() -> Network:
    return Network(_weights(), threads=threads())


@lru_cache(maxsize=1)
def _load_tokenizer() -> Tokenizer:
    return Tokenizer(_weights(), Path(settings.HOME) / "cache")
