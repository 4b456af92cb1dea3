"""Earlier turns as the model's messages, rebuilt from rows: they are the truth, a checkpoint is a cache."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from apps.common.database import in_db
from apps.conversations.models import Message
from apps.models.chat import Wire

LONGEST = 50  # turns


def of_conversation(conversation_id: UUID, *, before: int) -> Callable[[], Awaitable[list[Wire]]]:
    """Return a function that reads the finished turns before turn number ``before``, oldest first."""

    async def read() -> list[Wire]:
        return await in_db(_messages, conversation_id, before)

    return read


def _messages(conversation_id: UUID, before: int) -> list[Wire]:
    """Return question and answer of each turn; a question that got no answer is left out."""
    found = Message.objects.filter(
        conversation=conversation_id, turn__number__lt=before, turn__number__gte=before - LONGEST
    )
    pairs: dict[int, dict[str, str]] = {}
    for number, role, text in found.order_by("turn__number").values_list("turn__number", "role", "text"):
        pairs.setdefault(number, {})[role] = text
    return [
        {"role": role, "content": pair[role]}
        for pair in pairs.values()
        if pair.get("assistant") and pair.get("user")
        for role in ("user", "assistant")
    ]
