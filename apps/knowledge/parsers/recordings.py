"""Recordings: only a speech model reads them, and the worker calls it (``describing.transcribed``), not the sandbox."""

from typing import BinaryIO

from apps.knowledge.parsers.parsed import Parsed, ParseFailure


def parse_recording(file: BinaryIO) -> Parsed:
    """Raise ParseFailure(needs_speech_model)."""
    raise ParseFailure("needs_speech_model")
