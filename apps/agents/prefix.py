"""How much of a request repeats the one before it, without keeping the one before it.

Vendors reuse the work on a prompt's beginning while its bytes stay the same. A fingerprint holds
one chained checksum for each block of the request; two requests share their beginning as far as the
checksums agree, so the answer is exact to a block. 4 bytes a block: 100 KB make 3 KB.
"""

import zlib
from collections.abc import Sequence

import orjson

from apps.models.chat import Wire

TURN_BORDER, WINDOW_STEP, HANDOFF, SWITCH = "turn_border", "window_step", "handoff", "changed_switch"
UNNAMED = "unnamed"  # a mistake of ours: nothing else may break a prompt's beginning
BLOCK = 128
SUM = 4


def request_bytes(tools: Sequence[Wire], messages: Sequence[Wire]) -> bytes:
    """Return what a vendor reads, in its order: tools, system, messages."""
    return b"\n".join(orjson.dumps(part) for part in (*tools, *messages))


def fingerprint(data: bytes) -> bytes:
    """Return the chained checksums of the full blocks of ``data``."""
    sums = bytearray()
    running = 0
    for start in range(0, len(data) - BLOCK + 1, BLOCK):
        running = zlib.crc32(data[start : start + BLOCK], running)
        sums += running.to_bytes(SUM, "big")
    return bytes(sums)


def shared_length(before: bytes, now: bytes) -> int:
    """Return how many bytes two fingerprints' requests have in common from the start."""
    blocks = 0
    for start in range(0, min(len(before), len(now)), SUM):
        if before[start : start + SUM] != now[start : start + SUM]:
            break
        blocks += 1
    return blocks * BLOCK


def place_of_break(
    before: bytes, now: bytes, *, first_of_turn: bool, head_changed: bool, handoff_changed: bool, stepped: bool
) -> str:
    """Return where a request stopped to repeat the one before it; "" where it repeats all of it.

    Args:
        before: the fingerprint of the conversation's last request; empty where there was none.
        now: that of this one.
        first_of_turn: whether this is the turn's first request: the last one's turn context is gone.
        head_changed: whether tools or system message are others: a switch, the agent or the route.
        handoff_changed: whether other turns stand in the handoff.
        stepped: whether they left by a step of the window, behind an answer.
    """
    if not before or now.startswith(before):
        return ""
    if head_changed:
        return SWITCH
    if handoff_changed:
        return WINDOW_STEP if stepped else HANDOFF
    return TURN_BORDER if first_of_turn else UNNAMED
