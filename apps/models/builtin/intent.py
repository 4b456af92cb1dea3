"""What a question wants, decided in this process: the nearest of a few dozen centroids.

Each file in ``intents/`` is a label; each paragraph of it is a group of sentences alike in one language; a centroid
is the mean of a group's vectors. ``manage.py build_intents`` writes the centroids to ``intents.npz``, so that the
first question need not wait for 700 sentences. docs/decisions/local-intent.md has how well it does.
"""

import asyncio
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from apps.models.builtin import embedder

FOLDER = Path(__file__).parent / "intents"
CENTROIDS = Path(__file__).parent / "intents.npz"

# Where a label leads. Confusing two of the same route changes little, so margins are between routes.
ROUTES = {
    "greeting": "talk",
    "chitchat": "talk",
    "kb_search": "knowledge",
    "clarification": "knowledge",
    "summarize": "knowledge",
    "web_search": "web",
    "image_only": "image",
    "doc_only": "document",
}
SURE = 0.015  # margin in cosine; above it 99.1 % of the routes were right in the measurement
STEEPNESS = 200.0  # of the confidence over the margin
MAX_CHARACTERS = 600  # more of a long question makes its intent no clearer
REMEMBERED = 500  # questions: a thread costs more than to look one up
_guesses: "dict[tuple[str, bool, bool], Guess]" = {}


@dataclass(frozen=True, slots=True)
class Guess:
    """The nearest label; ``margin`` is its lead, in cosine, over the nearest of another route."""

    label: str
    margin: float

    @property
    def is_sure(self) -> bool:
        return self.margin >= SURE

    @property
    def confidence(self) -> float:
        """About how often a guess with this margin is right, .5 to 1."""
        return 1 / (1 + math.exp(-STEEPNESS * self.margin))


def classify_now(text: str, *, images: bool = False, attachments: bool = False) -> Guess:
    """Return the guess for a question. The labels about images or attachments need one to be there."""
    labels, centroids = _centroids()
    possible = {"image_only": images, "doc_only": attachments}
    scores = centroids @ embedder.embed_now([text[:MAX_CHARACTERS]], purpose="query")[0]
    best: dict[str, float] = {}
    for label, score in zip(labels, scores.tolist(), strict=True):
        if possible.get(label, True):
            best[label] = max(score, best.get(label, -1.0))
    label = max(best, key=lambda each: best[each])
    others = (score for each, score in best.items() if ROUTES[each] != ROUTES[label])
    return Guess(label, best[label] - max(others))


async def classify(text: str, *, images: bool = False, attachments: bool = False) -> Guess:
    """Do the same away from the event loop, once for each of the last questions."""
    key = (text[:MAX_CHARACTERS], images, attachments)
    guess = _guesses.pop(key, None)
    if guess is None:
        guess = await asyncio.get_running_loop().run_in_executor(
            embedder.EXECUTOR, lambda: classify_now(text, images=images, attachments=attachments)
        )
        if len(_guesses) >= REMEMBERED:
            _guesses.pop(next(iter(_guesses)), None)
    _guesses[key] = guess  # the newest stands last
    return guess


def build() -> int:
    """Embed the sentences and write their centroids; return how many there are."""
    import numpy as np

    labels, rows = [], []
    for label, sentences in groups():
        mean = embedder.embed_now(sentences, purpose="query").mean(axis=0)
        labels.append(label)
        rows.append(mean / np.linalg.norm(mean))
    np.savez(CENTROIDS, labels=np.array(labels), centroids=np.array(rows, dtype=np.float16), digest=np.array(digest()))
    _centroids.cache_clear()
    return len(rows)


def groups() -> Iterator[tuple[str, list[str]]]:
    """Yield (label, sentences) for each group of each label."""
    for label in ROUTES:
        for paragraph in (FOLDER / f"{label}.txt").read_text(encoding="utf-8").strip().split("\n\n"):
            yield label, paragraph.splitlines()


def digest() -> str:
    """Return what tells whether the centroids were made from the sentences as they are."""
    return hashlib.sha256(repr(list(groups())).encode()).hexdigest()


@lru_cache(maxsize=1)
def _centroids() -> tuple[list[str], Any]:
    import numpy as np

    with np.load(CENTROIDS) as stored:
        return stored["labels"].tolist(), stored["centroids"].astype(np.float32)
