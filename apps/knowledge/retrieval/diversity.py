"""Maximal marginal relevance: good passages that are not copies of each other. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


def as_vectors(texts: Sequence[str | None]) -> "Vectors":
    """Read vectors as PostgreSQL writes them, each to length 1; a row of NaN where there is none of the usual size."""
    import numpy as np

    read = [None if text is None else np.fromstring(text.strip("[]"), dtype=np.float32, sep=",") for text in texts]
    sizes = [len(vector) for vector in read if vector is not None]
    size = max(set(sizes), key=sizes.count) if sizes else 1
    vectors = np.full((len(read), size), np.nan, dtype=np.float32)
    for place, vector in enumerate(read):
        if vector is not None and len(vector) == size:
            vectors[place] = vector / max(float(np.linalg.norm(vector)), 1e-9)
    return vectors


def marginal_order(relevance: Sequence[float], vectors: "Vectors", *, share: float, count: int) -> list[int]:
    """Return the places of ``count`` passages, each the best beside those already taken.

    A passage is worth ``share * relevance - (1 - share) * likeness``, likeness being the largest to one already
    taken. Cosines of embedding models crowd together (those of E5 in .7 to 1), so both sides are
    stretched over this list first: the median likeness of two of its passages is 0, a copy is 1.

    Args:
        relevance: the scores that order the list now.
        vectors: float32 [n, dimensions] of length 1; a row of NaN is like nothing.
        share: 1 is relevance alone.
        count: how many to take; all where there are fewer.

    Source: Carbonell & Goldstein, "The Use of MMR, Diversity-Based Reranking", SIGIR 1998; the
    stretching is ours. O(n · count).
    """
    import numpy as np

    n = len(relevance)
    if not n:
        return []
    likeness = np.nan_to_num(vectors @ vectors.T, nan=-1.0)
    low = float(np.median(likeness[~np.eye(n, dtype=bool)])) if n > 1 else 0.0
    likeness = np.clip((likeness - low) / max(1.0 - low, 1e-6), 0.0, 1.0)
    worth = np.asarray(relevance, dtype=float)
    worth = (worth - worth.min()) / max(float(worth.max() - worth.min()), 1e-9)
    taken: list[int] = []
    most_like = np.zeros(n)
    free = np.ones(n, dtype=bool)
    for _ in range(min(count, n)):
        gain = np.where(free, share * worth - (1 - share) * most_like, -np.inf)
        best = int(gain.argmax())
        taken.append(best)
        free[best] = False
        most_like = np.maximum(most_like, likeness[best])
    return taken
