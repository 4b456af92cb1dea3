"""A turn's events in memory: order, coalescing, watchers."""

import asyncio
import json
from uuid import uuid4

import pytest

from apps.conversations.log import TurnLog, encode


def parsed(log):
    return [json.loads(frame) for frame in log.frames]


async def collect(log, **options):
    return [json.loads(frame) async for batch in log.watch(**options) for frame in batch]


async def test_slow_texts_leave_one_by_one_and_at_once():
    log = TurnLog(uuid4())
    for i in range(5):
        log.delta("token", str(i))
        assert len(log.frames) == i + 1
        await asyncio.sleep(0.02)


async def test_fast_texts_join_and_nothing_is_lost():
    log = TurnLog(uuid4())
    watching = asyncio.create_task(collect(log))
    for i in range(300):
        log.delta("token", f"{i} ")
        if i % 10 == 0:
            await asyncio.sleep(0.001)
    log.close()
    frames = await watching
    assert "".join(frame["text"] for frame in frames) == "".join(f"{i} " for i in range(300))
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    assert len(frames) < 60


async def test_what_waits_is_sent_soon():
    log = TurnLog(uuid4())
    log.delta("token", "a")
    log.delta("token", "b")
    assert len(log.frames) == 1
    await asyncio.sleep(0.05)
    assert [frame["text"] for frame in parsed(log)] == ["a", "b"]


async def test_an_event_keeps_its_place_after_the_text_before_it():
    log = TurnLog(uuid4())
    for text in "abc":
        log.delta("token", text)
    log.delta("reasoning.delta", "hm")
    log.emit("step", {"name": "x"})
    assert [(frame["type"], frame.get("text")) for frame in parsed(log)] == [
        ("token", "a"), ("token", "bc"), ("reasoning.delta", "hm"), ("step", None),
    ]  # fmt: skip


async def test_all_watchers_see_the_same_from_where_they_ask():
    log = TurnLog(uuid4())
    log.emit("step", {"n": 1})
    watching = [asyncio.create_task(collect(log, after=after)) for after in (0, 0, 1, 7)]
    for n in range(2, 10):
        await asyncio.sleep(0.005)
        log.emit("step", {"n": n})
    log.close()
    first, second, third, late = await asyncio.gather(*watching)
    assert first == second == parsed(log)
    assert third == first[1:]
    assert late == first[7:]
    assert await collect(log, after=9) == []


async def test_a_cancelled_watcher_leaves_no_trace():
    log = TurnLog(uuid4())
    watching = asyncio.create_task(collect(log))
    await asyncio.sleep(0)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    log.emit("step", {})
    assert log._watchers == []


async def test_reserved_names_are_refused():
    log = TurnLog(uuid4())
    with pytest.raises(ValueError, match="seq"):
        log.emit("step", {"seq": 1})


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"a": "x\x00y"}, {"a": "xy"}),
        ({"a": ["\ud800", {"b\x00": "\udfffz"}]}, {"a": ["", {"b": "z"}]}),
        ({"a": "\\u0000"}, {"a": "\\u0000"}),
        ({1: 2.5, "n": None}, {"1": 2.5, "n": None}),
    ],
)
def test_json_is_what_the_database_takes(value, stored):
    assert json.loads(encode(value)) == stored
