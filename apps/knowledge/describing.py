"""What models make of pictures and recordings: called by the worker, outside the sandbox, only where one is set up."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import IO
from uuid import UUID

from django.conf import settings
from django.utils.translation import get_language_info

from apps.common.text import legible
from apps.knowledge.errors import EmptyFile, FileTooLarge, NeedsSpeechModel, TranscriptionFailed
from apps.knowledge.parsers.parsed import Parsed, Picture, tidy
from apps.models import gateway
from apps.models.chat import ResolvedModel

PROMPT = Path(__file__).parent / "prompts/describe_picture.md"
LARGEST_RECORDING = 200 << 20
ENDINGS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/ogg": "ogg", "audio/flac": "flac", "audio/mp4": "m4a"}


def transcribed(file: IO[bytes], content_type: str, *, workspace_id: UUID | None, check: Callable[[], None]) -> Parsed:
    """Return what is said in a recording.

    Raises:
        NeedsSpeechModel: none is set up.
        TranscriptionFailed: it does not answer, or refuses the recording.
        EmptyFile: nothing is said.
        FileTooLarge: no model takes that much at once.
    """
    try:
        model = gateway.resolve("speech", workspace_id=workspace_id)
    except gateway.ModelUnavailable as error:
        raise NeedsSpeechModel from error
    file.seek(0)
    audio = file.read(LARGEST_RECORDING + 1)
    if len(audio) > LARGEST_RECORDING:
        raise FileTooLarge(limit_mb=LARGEST_RECORDING >> 20)
    check()
    try:
        # vendors go by the ending, and the file's own name is not theirs to know
        text = gateway.transcribe_now(model, audio, file_name=f"recording.{ENDINGS[content_type]}", check=check)
    except gateway.ModelError as error:
        raise TranscriptionFailed(model=model.name, reason=error.details.get("reason", error.code)) from error
    markdown = tidy(legible(text)).strip()
    if not markdown:
        raise EmptyFile
    return Parsed(markdown, metadata={"transcribed_by": model.name})


def vision_model(workspace_id: UUID | None) -> ResolvedModel | None:
    """Return the model that describes pictures, None where none is set up."""
    try:
        return gateway.resolve("vision", workspace_id=workspace_id)
    except gateway.ModelUnavailable:
        return None


def described(model: ResolvedModel, picture: Picture, check: Callable[[], None]) -> str:
    """Return what a picture shows, in a few sentences. Raises gateway.ModelError."""
    said = gateway.describe_now(model, picture.data, media_type=picture.media_type, prompt=_prompt(), check=check)
    return tidy(legible(said)).strip()


@lru_cache(maxsize=1)
def _prompt() -> str:
    return PROMPT.read_text().format(language=get_language_info(settings.LANGUAGE_CODE)["name"])
