"""The built-in embedding model: multilingual-e5-small, 384 dimensions, in this process, without network.

Everything loads when it is first used (about a second) and stays. Never on the event loop: ``embed`` runs
in threads of its own, and the model's lock is held for one small batch at a time, so that a question does not
wait behind a document. Cosines lie in about .7–1; no absolute threshold means anything.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from apps.models.builtin import late_interaction
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
        return _question(texts[0])[0].copy()
    return _embedded(texts, purpose)


def embed_with_tokens_now(texts: Sequence[str]) -> "tuple[Vectors, list[bytes]]":
    """Do the same for passages, and return besides what ``late_interaction.scores`` wants to know of each."""
    tokens: dict[int, bytes] = {}

    def keep(number: int, states: "Vectors") -> None:
        tokens[number] = tokens.get(number, b"") + late_interaction.signs(states)

    vectors = _embedded(texts, "passage", keep)
    return vectors, [tokens.get(number, b"") for number in range(len(texts))]


@lru_cache(maxsize=256)
def _question(text: str) -> "tuple[Vectors, Vectors]":
    import numpy as np

    tokens: list[Vectors] = []
    vectors = _embedded([text], "query", lambda _number, states: tokens.append(late_interaction.centred(states)))
    return vectors, np.concatenate(tokens)


def _embedded(texts: Sequence[str], purpose: str, keep: "Callable[[int, Vectors], None] | None" = None) -> "Vectors":
    """Embed; give ``keep`` each text's number with the states of its tokens, those of the prefix left out."""
    import numpy as np

    network, tokenizer = _network(), _tokenizer()
    prefix, size = PREFIXES[purpose], network.shape.positions - 2
    begins = len(tokenizer.ids(prefix.strip()))
    windows: list[tuple[int, list[int]]] = []
    skipped: dict[int, int] = {}  # places of the prefix in a text's first window
    for number, text in enumerate(texts):
        ids = tokenizer.ids(prefix + text)
        cut = [ids[start : start + size] for start in range(0, len(ids), size)]
        skipped[id(cut[0])] = begins
        windows.extend((number, window) for window in cut)
    windows.sort(key=lambda window: len(window[1]))  # alike lengths together: little padding
    sums = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
    for batch in _batches(windows):
        with _lock:
            means, states = network.read([ids for _number, ids in batch])
        for place, (number, ids) in enumerate(batch):
            sums[number] += len(ids) * means[place]
            if keep is not None:
                keep(number, states[place, 1 + skipped.get(id(ids), 0) : 1 + len(ids)])
    vectors: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return vectors


async def embed(texts: Sequence[str], *, purpose: str) -> "Vectors":
    """Do the same away from the event loop."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(EXECUTOR, lambda: embed_now(texts, purpose=purpose))


def centres(pairs: Sequence[tuple[str, str]]) -> "Vectors":
    """Return what ``late_interaction`` takes off, [3, 384], from passages that say the same in two languages.

    The mean of the two languages' mean token states; the direction between those; that between their mean vectors.
    """
    import numpy as np

    vectors, tokens = [], []
    for texts in zip(*pairs, strict=True):
        states: dict[int, Vectors] = {}
        vectors.append(_embedded(texts, "passage", states.__setitem__).mean(axis=0))
        tokens.append(np.concatenate(list(states.values())).mean(axis=0))
    away = [first - second for first, second in (tokens, vectors)]
    found: Vectors = np.stack([np.mean(tokens, axis=0), *(one / np.linalg.norm(one) for one in away)])
    return found


async def token_scores(query: str, passages: Sequence[bytes]) -> list[float | None]:
    """Return how well passages answer a question, see ``late_interaction.scores``; away from the event loop."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(EXECUTOR, lambda: late_interaction.scores(_question(query)[1], passages))


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
