"""How well a passage answers a question, token by token: MaxSim over the built-in embedder's token vectors.

Each token of the question looks for the token of the passage that is most like it; a passage's score
is the mean of those likenesses. Of a passage's tokens only the signs are kept, 48 bytes each, which
loses little: the angle between a vector and another's signs still orders them.

Token vectors share a large common part that says nothing, and those of one language another: the mean of all tokens is
taken off first, and the direction in which Chinese and English lie apart. The same direction comes off a question's
vector. All three are in ``centres.npy``, which ``manage.py build_centres`` makes from ``parallel.jsonl``.

Source: Khattab & Zaharia, "ColBERT", SIGIR 2020, for MaxSim; docs/decisions/rerank.md has what was measured.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

CENTRES = Path(__file__).with_name("centres.npy")  # rows: tokens' centre, tokens' direction, vectors' direction
PAIRS = Path(__file__).with_name("parallel.jsonl")
BEYOND = 1.5  # how often a question's own share of the direction is taken off


def pairs() -> list[tuple[str, str]]:
    """Return the paragraphs that say the same in Chinese and in English."""
    rows = map(json.loads, PAIRS.read_text(encoding="utf-8").splitlines())
    return [(row["zh"], row["en"]) for row in rows]


def centred(states: "Vectors") -> "Vectors":
    """Return token states, [tokens, width], without their common parts, each of length 1."""
    import numpy as np

    rest = _rest(states)
    found: Vectors = rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
    return found


def signs(states: "Vectors") -> bytes:
    """Return the signs of token states, [tokens, width], as width / 8 bytes a token."""
    import numpy as np

    return np.packbits(_rest(states) > 0, axis=1).tobytes()


def scores(question: "Vectors", passages: Sequence[bytes]) -> list[float | None]:
    """Return how well each passage answers, in their order; None where nothing is known of its tokens.

    Args:
        question: ``centred`` tokens of the question, [tokens, width].
        passages: ``signs`` of each.

    Returns:
        Means of cosines between tokens and signs: in [-1, 1], in practice 0 to .6.
    """
    import numpy as np

    width = question.shape[1]
    lengths = [len(passage) * 8 // width for passage in passages]
    if not sum(lengths) or not len(question):
        return [None] * len(passages)
    bits = np.unpackbits(np.frombuffer(b"".join(passages), dtype=np.uint8)).reshape(-1, width)
    # With bits b, the signs are 2b - 1, and their dot product with q is 2 (q · b) - sum(q).
    likeness = 2 * (bits.astype(np.float32) @ question.T) - question.sum(axis=1)
    found: list[float | None] = []
    at = 0
    for length in lengths:
        best = likeness[at : at + length].max(axis=0) if length else None
        found.append(None if best is None else float(best.mean()) / width**0.5)
        at += length
    return found


def without_language(vector: "Vectors") -> "Vectors":
    """Return a question's vector turned away from its own language.

    The model puts Chinese and English apart along one direction, farther than subjects are: among many Chinese
    passages a Chinese question would never reach the English one that answers it. Passages keep theirs: against a
    question without that part it counts nothing. Half as much more is taken off, since a passage in the question's own
    language that answers it also has its words, which the lexical leg sees.
    """
    direction = _centres()[2]
    found: Vectors = vector - BEYOND * (vector @ direction) * direction
    return found


def _rest(states: "Vectors") -> "Vectors":
    import numpy as np

    centre, direction, _vectors = _centres()
    rest = states - centre
    found: Vectors = rest - np.outer(rest @ direction, direction)
    return found


@lru_cache(maxsize=1)
def _centres() -> "Vectors":
    import numpy as np

    centres: Vectors = np.load(CENTRES)
    return centres
