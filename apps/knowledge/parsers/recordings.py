"""Recordings: only a speech model reads them, and that is called by the worker, not here."""

from typing import BinaryIO

from apps.knowledge.parsers.parsed import Parsed, ParseFailure


def parse_recording(file: BinaryIO) -> Parsed:
    """Raise ParseFailure(needs_speech_model)."""
    raise ParseFailure("needs_speech_model")
