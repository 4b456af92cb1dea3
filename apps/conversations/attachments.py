"""What a turn is given of the files attached to its conversation: names at once, contents where needed."""

from typing import Any
from uuid import UUID

from django.core.files.storage import default_storage

from apps.agents.turn import Attachment
from apps.common.database import in_db
from apps.conversations import attachment_errors as errors
from apps.conversations.models import Attachment as Row
from apps.knowledge.services.documents import storing


def as_given(facts: dict[str, Any], *, number: int) -> Attachment:
    """Make of a row's facts (``with_facts``) what the graph is given. ``number`` is that of its turn."""
    row_id, key = facts["id"], facts["file"]

    async def text() -> str:
        return await in_db(_text, row_id)

    async def content() -> bytes:
        return await in_db(_content, key)

    return Attachment(
        id=row_id,
        name=facts["name"],
        kind=facts["kind"],
        media_type=facts["media_type"],
        number=number,
        characters=facts["characters"],
        text=text,
        content=content,
    )


def _text(row_id: UUID) -> str:
    found = Row.objects.filter(pk=row_id).values_list("text", flat=True).first()
    if found is None:
        raise errors.AttachmentGone
    return found


def _content(key: str) -> bytes:
    try:
        with storing(), default_storage.open(key, "rb") as file:
            content: bytes = file.read()
    except FileNotFoundError as error:
        raise errors.AttachmentGone from error
    return content
