"""What the graph keeps between steps, and what of it the checkpoint keeps between turns."""

from typing import Annotated, Any

from langgraph.channels.untracked_value import UntrackedValue
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict

from apps.models.chat import Wire


def append(before: list[Wire] | None, new: list[Wire] | None) -> list[Wire]:
    """Join two lists of messages; the reducer of ``messages``."""
    return (before or []) + (new or [])


class TurnState(TypedDict, total=False):
    """The conversation's raw messages, and what is known about the turn in progress.

    ``messages`` are OpenAI-wire dicts exactly as they were asked and answered (what a model is
    shown is a view of them, see ``context_layout``). ``turn`` counts the conversation's turns, so that a
    checkpoint that missed one is noticed. ``fingerprint`` stands for the bytes of the last request
    (see ``prefix``). Untracked values live for one turn and never reach a checkpoint.
    """

    messages: Annotated[list[Wire], append]
    turn: int
    rewrite_query: str
    intent: str
    image_description: str
    sources: list[dict[str, Any]]
    fingerprint: bytes
    recent_pairs: Annotated[list[tuple[str, str]], UntrackedValue]
    asker_background: Annotated[list[str], UntrackedValue]
    remembered: Annotated[list[str], UntrackedValue]
    route: Annotated[str, UntrackedValue]
    notice: Annotated[str, UntrackedValue]
    steps_left: RemainingSteps
