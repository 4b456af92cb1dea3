"""What the graph keeps between steps, and what of it the checkpoint keeps between turns."""

from typing import Annotated, Any

from langgraph.channels.untracked_value import UntrackedValue
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict

from apps.models.chat import Wire


def append(before: list[Wire] | None, new: list[Wire] | None) -> list[Wire]:
    """Join two lists of messages; the reducer of ``messages``."""
    return (before or []) + (new or [])


def append_ids(before: list[str] | None, new: list[str] | None) -> list[str]:
    """Join two lists of ids; the reducer of ``turns``."""
    return (before or []) + (new or [])


def join(before: dict[str, list[str]] | None, new: dict[str, list[str]] | None) -> dict[str, list[str]]:
    """Join what calls showed; a call id that a vendor gives twice stands for both; the reducer of ``documents``."""
    joined = dict(before or {})
    for call, ids in (new or {}).items():
        joined[call] = sorted({*joined.get(call, ()), *ids})
    return joined


class TurnState(TypedDict, total=False):
    """The conversation's raw messages, and what is known about the turn in progress.

    ``messages`` are OpenAI-wire dicts exactly as they were asked and answered (what a model is
    shown is a view of them, see ``context_layout``); ``turns`` are the ids of the turns that they
    make, one for each question ("" where it is not known). ``turn`` counts the conversation's turns,
    so that a checkpoint that missed one is noticed. ``prompt_tokens`` is what the main model's last
    request cost, as its vendor counted. ``plan`` are the steps of the newest plan.
    ``handoff_shown`` is the handoff that the asker has seen.
    ``fingerprint`` and ``beginning`` stand for the bytes of the last request (see ``prefix``). ``documents`` says for
    each call of a tool which documents its result shows; ``withdrawn`` are calls of earlier turns
    with one that may not be read any more. Untracked values live for one turn and never reach a
    checkpoint.
    """

    messages: Annotated[list[Wire], append]
    turns: Annotated[list[str], append_ids]
    turn: int
    prompt_tokens: int
    handoff_shown: str
    plan: list[str]
    rewrite_query: str
    intent: str
    image_description: str
    sources: list[dict[str, Any]]
    fingerprint: bytes
    beginning: list[str]
    documents: Annotated[dict[str, list[str]], join]
    withdrawn: Annotated[list[str], UntrackedValue]
    recent_pairs: Annotated[list[tuple[str, str]], UntrackedValue]
    asker_background: Annotated[list[str], UntrackedValue]
    remembered: Annotated[list[str], UntrackedValue]
    attached: Annotated[str, UntrackedValue]
    route: Annotated[str, UntrackedValue]
    notice: Annotated[str, UntrackedValue]
    steps_left: RemainingSteps


def ids_of_turns(state: TurnState) -> list[str]:
    """Return the id of each turn of ``messages``, "" where it is not known."""
    count = sum(message["role"] == "user" for message in state.get("messages") or [])
    known = (state.get("turns") or [])[-count:] if count else []
    return [""] * (count - len(known)) + known
