"""How much of a request repeats the one before."""

import random

import pytest

from apps.agents.prefix import BLOCK, fingerprint, place_of_break, shared_length
from tests.agents.test_run_turn import Talk, pools  # noqa: F401 (autouse)
from tests.vendor import Reply, call


def test_exact_to_a_block():
    rng = random.Random(3)
    data = rng.randbytes(20_000)
    for same in (0, 1, 127, 128, 5_000, 19_999, 20_000):
        other = data[:same] + bytes([data[same] ^ 1]) + data[same + 1 :] if same < len(data) else data + b"more"
        assert 0 <= same - shared_length(fingerprint(data), fingerprint(other)) < BLOCK


def test_nothing_before_repeats_nothing():
    assert shared_length(b"", fingerprint(b"x" * 1000)) == 0


def test_it_is_small():
    assert len(fingerprint(b"x" * 100_000)) < 3_200


def _mark(*parts):
    return fingerprint(b"".join(parts))


A, B, C = b"a" * 1_000, b"b" * 1_000, b"c" * 1_000
SAME = {"first_of_turn": True, "head_changed": False, "handoff_changed": False, "stepped": True}


@pytest.mark.parametrize(
    ("before", "now", "changes", "place"),
    [
        (b"", _mark(A), {}, ""),
        (_mark(A), _mark(A, B), {}, ""),
        (_mark(A, B), _mark(A, C), {}, "turn_border"),
        (_mark(A, B), _mark(A, C), {"handoff_changed": True}, "window_step"),
        (_mark(A, B), _mark(A, C), {"handoff_changed": True, "stepped": False}, "handoff"),
        (_mark(A, B), _mark(C, B), {"head_changed": True, "handoff_changed": True}, "changed_switch"),
        (_mark(A, B), _mark(A, C), {"first_of_turn": False}, "unnamed"),
    ],
)
def test_every_break_has_a_name(before, now, changes, place):
    assert place_of_break(before, now, **{**SAME, **changes}) == place


@pytest.mark.django_db(transaction=True)
async def test_each_request_of_a_turn_says_what_it_repeats_and_where_it_breaks(ann, acme, handbook, scripted_model):
    talk = Talk(ann, acme)
    search = call("doc_retrieval", {"query": "leave"}, "k1")
    scripted_model.script(
        [Reply(tool_calls=[search]), Reply("None.")] * 2 + [Reply(tool_calls=[search]), Reply("None.")]
    )
    first = await talk.ask("How long is annual leave?")
    assert [r["break"] for r in first.usage["requests"]] == ["", ""]
    assert first.usage["requests"][0]["reused"] == 0
    second = await talk.ask("How long is parental leave?")
    assert [r["break"] for r in second.usage["requests"]] == ["turn_border", ""]
    third = await talk.ask("How long is sick leave?", language="en")
    assert [r["break"] for r in third.usage["requests"]] == ["changed_switch", ""]
    share = sum(r["reused"] for r in second.usage["requests"]) / sum(r["bytes"] for r in second.usage["requests"])
    assert second.usage["prefix_reused"] == round(share, 4)
