"""Sockets that break at random while answers stream: what all of them got, in order, is the stored answer."""

import asyncio
import os
import random

import pytest

from apps.common.database import in_db
from tests.conversations.live.client import Tab, numbered
from tests.conversations.live.test_socket import stored_answer
from tests.conversations.scripted import words

pytestmark = [pytest.mark.xdist_group("live-socket")]

BREAKS = int(os.environ.get("DISCONNECTS", "100"))
AT_ONCE = 5
WORDS = 300


async def test_random_disconnects_lose_and_double_nothing(server, people, session):
    from apps.conversations.services import start_conversation

    rng = random.Random(11)
    left = BREAKS
    while left > 0:
        talks = await in_db(
            lambda: [start_conversation(workspace=people.acme, actor=people.ann) for _ in range(AT_ONCE)]
        )
        results = await asyncio.gather(*(read(server, talk, session, rng) for talk in talks))
        for turn, frames, breaks in results:
            assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
            text = "".join(frame["text"] for frame in frames if frame["type"] == "token")
            assert text == "".join(words(WORDS)) == await stored_answer(turn)
            left -= breaks
    assert left <= 0


async def read(server, talk, session, rng):
    """Ask, then read on over sockets that break: closed in order, cut off, or before the resume is answered."""
    async with Tab(server, talk.pk, session=session) as tab:
        await tab.ask(f"say {WORDS} 250")
        while not tab.text:
            await tab.next()
    frames, breaks = numbered(tab.frames), 1
    turn = frames[-1]["turn"]
    while frames[-1]["type"] != "turn.finished":
        async with Tab(server, talk.pk, session=session) as tab:
            tab.socket.close_timeout = 0.2  # what was not read stands before the answer to a close
            await tab.send(type="resume", turn=turn, after=frames[-1]["seq"])
            for _ in range(rng.randint(0, 12)):
                if (await tab.next())["type"] == "turn.finished":
                    break
            if rng.random() < 0.5:
                tab.socket.transport.abort()
        frames += numbered(tab.frames)
        breaks += 1
    return turn, frames, breaks
