"""Earlier turns as the model's messages, rebuilt from rows: they are the truth, a checkpoint is a cache."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from apps.common.database import pool
from apps.conversations import rows_branches
from apps.models.chat import Wire

LONGEST = 50  # turns


def up_to(turn_id: UUID | None) -> Callable[[], Awaitable[list[Wire]]]:
    """Return a function that reads a turn and those before it on its branch, oldest first."""

    async def read() -> list[Wire]:
        if turn_id is None:
            return []
        async with (await pool()).connection() as connection:
            found = await rows_branches.read_messages(connection, turn_id, limit=LONGEST)
        return _messages(found)

    return read


def _messages(found: list[tuple[UUID, str, str, list[str]]]) -> list[Wire]:
    """Return question and answer of each turn; a question that got no answer is left out.

    A question's message carries its turn's id as ``turn``: what was handed off is known by it; and as ``documents``
    those among the answer's sources, whose rights decide whether it may be told again.
    """
    pairs: dict[UUID, dict[str, str]] = {}
    shown: dict[UUID, list[str]] = {}
    for turn, role, text, documents in found:
        pairs.setdefault(turn, {})[role] = text
        shown.setdefault(turn, []).extend(documents)
    return [
        message
        for turn, pair in pairs.items()
        if pair.get("assistant") and pair.get("user")
        for message in (
            {"role": "user", "content": pair["user"], "turn": str(turn), "documents": shown[turn]},
            {"role": "assistant", "content": pair["assistant"]},
        )
    ]
