"""Pictures and recordings: what it takes to read them is not here, and that is said."""

from typing import BinaryIO

from apps.knowledge.parsers.parsed import Parsed, ParseFailure


def parse_picture(file: BinaryIO) -> Parsed:
    """Raise ParseFailure(needs_ocr)."""
    raise ParseFailure("needs_ocr")


def parse_recording(file: BinaryIO) -> Parsed:
    """Raise ParseFailure(needs_speech_model)."""
    raise ParseFailure("needs_speech_model")
