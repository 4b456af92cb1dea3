"""Exact limits of what stays in a prompt, through the socket: results put away and distilled, turns handed off.

Each figure is met from both sides: the last value on this side of it, and the first on the other.
"""

import json
from math import floor

from apps.agents import powers
from apps.agents.messages import estimated_tokens
from apps.agents.models import ConversationHandoff, ToolResultRef
from apps.agents.web.hits import WebPage
from apps.common.database import in_db
from apps.conversations.models import Message
from tests.conversations.live.test_agent_over_socket import FULL
from tests.conversations.live.test_clauses import labelled, with_agent
from tests.conversations.live.test_promises import talk  # noqa: F401 (a fixture)
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

ADDRESS = "https://pumps.example/prices"
WINDOW = 32_768
SUMMARY = 2_000


def rows(count):
    return json.dumps([{"id": n} for n in range(count)])


async def test_what_is_put_away_and_what_is_distilled_first(talk, people, settings, monkeypatch):  # noqa: F811
    """Of 8,000 characters, of ten items, of 10,000 characters, of the 2,000 that a summary has, and of a part's."""
    page, told, distilled = {}, {}, []

    async def read_page(url):
        return WebPage(url, "Pumps", page["text"])

    def answer(request):
        messages = request.body["messages"]
        if not request.body.get("stream"):
            if "<stored>" in messages[-1]["content"]:
                distilled.append(request.body)
                return Reply(told["text"])
            return labelled("web_search")(request)
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if not results:
            return Reply(tool_calls=[call("web_fetch", {"url": ADDRESS}, "k1")])
        if len(results) == 1 and results[0].startswith('{"__stored"'):
            reference = json.loads(results[0])["__refId"]
            wanted = [{"length": 7_000}, {"path": "$[*]"}] if page["text"].startswith("[") else [{"length": 7_000}]
            calls = [call("get_stored_data", {"ref_id": reference, **one}, f"r{n}") for n, one in enumerate(wanted)]
            return Reply(tool_calls=calls)
        return Reply("So [[c1]].")

    async def fetched(text, summary="P-7: 1,250 EUR"):
        """What the message holds of a page, what was read of it again, and how often a model distilled."""
        page["text"], told["text"] = text, summary
        distilled.clear()
        shown = await one.ask(f"What does {ADDRESS} say?", web=True, parent=str(place.pk))
        assert shown == "So [[c1]]."
        first, *again = [m["content"] for m in one.sent[-1]["messages"] if m["role"] == "tool"]
        assert one.of("tool.finished")[0]["ref"] == (json.loads(first)["__refId"] if again else None)
        assert [frame["ref"] for frame in one.of("tool.finished")[1:]] == [None] * len(again)
        assert [source["url"] for source in one.of("sources")[-1]["sources"]] == [ADDRESS]
        return first, again, len(distilled)

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers, "read_page", read_page)
    place = await in_db(with_agent, people, "Limits", ["web_fetch"])
    async with talk(place) as one:
        one.vendor.otherwise = answer
        around = len((await fetched("x" * 100))[0]) - 100
        inside, again, _ = await fetched("x" * (8_000 - around))
        assert (len(inside), again) == (8_000, [])
        outside, again, _ = await fetched("x" * (8_001 - around))
        assert set(json.loads(outside)) == {"__stored", "__refId", "__summary", "__hint"}
        assert "x" * 7_000 in again[0]  # which is no pointer again
        whole = (await ToolResultRef.objects.aget(pk=json.loads(outside)["__refId"])).text
        assert whole == "x" * (8_001 - around)

        assert (await fetched(rows(10)))[1] == []
        outside, again, _ = await fetched(rows(11))
        assert json.loads(outside)["__summary"].startswith("A JSON array of 11 items, all of it")
        assert json.dumps({"id": 10}, separators=(",", ":")) in again[1]  # a path's result of eleven items stays, too
        assert (await fetched(json.dumps({"rows": [1] * 11})))[1] == []  # not the top level
        assert (await fetched("[" + rows(11)))[1] == []  # no JSON

        assert (await fetched("x" * 10_000))[2] == 0
        outside, _, asked = await fetched("x" * 10_001)
        assert (json.loads(outside)["__summary"], asked) == ("P-7: 1,250 EUR", 1)
        [request] = distilled
        assert "tools" not in request
        assert request["messages"][0] != one.sent[0]["messages"][0]  # a request of its own
        summary = json.loads((await fetched("x" * 10_001, "s" * SUMMARY))[0])["__summary"]
        assert summary == "s" * SUMMARY
        summary = json.loads((await fetched("x" * 10_001, "s" * (SUMMARY + 1)))[0])["__summary"]
        assert len(summary) <= SUMMARY
        assert "degraded" in summary
        # More than the small model can read: said in the summary, and still within its limit.
        summary = json.loads((await fetched("x" * 100_000, "s" * SUMMARY))[0])["__summary"]
        assert len(summary) <= SUMMARY
        assert "of 100000 characters are not in this summary" in summary
        # What no model distils is a beginning of whole values, which says what it is.
        many = rows(1_500)
        told["text"] = ""
        outside, _, _ = await fetched(many, "")
        head, *lines, last = json.loads(outside)["__summary"].splitlines()
        assert head.startswith("A JSON array of 1500 items; the first ")
        assert [json.loads(line)["id"] for line in lines] == list(range(len(lines)))
        assert last.startswith("[degraded: ")


async def test_a_prompt_of_85_percent_is_handed_off_down_to_30_and_nothing_is_told_twice(talk, conversation):  # noqa: F811
    """One token less, and it stays. The turns that a later handoff tells of are those that no earlier one did."""
    told = []

    def answer(request):
        said = request.body["messages"][-1]["content"]
        if said.startswith("<turns>"):
            told.append(said)
            return Reply(json.dumps({"done": [f"Stage {len(told)}."]}))
        return labelled("greeting")(request)

    full = floor(0.85 * WINDOW) + 1
    assert FULL["prompt_tokens"] == full
    long = "word " * 1_600  # 2,000 tokens
    async with talk() as one:
        one.vendor.otherwise = answer
        for number in range(1, 9):
            usage = {**FULL, "prompt_tokens": full - 1} if number == 8 else None
            await one.ask(f"Hello {number}", Reply(pieces=[long], usage=usage) if usage else Reply(pieces=[long]))
        await one.ask("Hello 9", Reply(pieces=[long], usage=FULL))
        assert not one.of("handoff")
        assert len(one.sent[0]["messages"]) == 18
        own = sum(map(estimated_tokens, one.sent[0]["messages"])) + estimated_tokens({"content": long})
        scale = full / own  # the vendor's tokens for one of ours

        now = "Hello now. " + "What is left? " * 400
        await one.ask(now, Reply("Nothing."))
        [handoff] = one.of("handoff")
        [sent] = one.sent
        system, first, *rest = sent["messages"]
        held = sum(map(estimated_tokens, (system, first, *rest[:-1]))) * scale
        assert held <= 0.36 * WINDOW  # 30 % of the window, and the handoff itself
        assert held + 2_010 * scale > 0.30 * WINDOW  # one turn more would have been too many
        assert handoff["turns"] == 9 - len(rest) // 2
        assert sent["messages"][-1]["content"].endswith(now)  # whole, and last
        assert first["content"].startswith("<handoff>\n")
        assert "What is left?" not in first["content"].partition("</handoff>")[0]
        assert [message["role"] for message in rest] == ["assistant", "user"] * (len(rest) // 2)
        row = await ConversationHandoff.objects.aget(conversation=conversation.pk)
        assert str(row.pk) == handoff["summary_upto_message_id"]
        upto = await Message.objects.select_related("turn").aget(pk=row.pk)
        assert (upto.role, upto.turn.number) == ("assistant", handoff["turns"])

        gone = handoff["turns"]
        await one.ask("Hello 11", Reply("Hello!", usage=FULL))
        await one.ask("Hello 12", Reply("Hello!"))
        [second] = one.of("handoff")
        assert len(told) == 2
        asked = [[n for n in range(1, 12) if f"Asker: Hello {n}\n" in text] for text in told]
        assert asked[0] == list(range(1, gone + 1))
        assert asked[1][0] == gone + 1
        assert "Stage 1." not in told[1]  # no summary of a summary
        said = one.sent[0]["messages"][1]["content"]
        assert "- Stage 1.\n- Stage 2.\n" in said
        assert second["turns"] > gone


async def test_after_forty_turns_wishes_hold_and_the_newest_question_is_the_one_that_is_answered(
    talk, conversation  # noqa: F811
):  # fmt: skip
    """Standing wishes word for word, in both languages; what was done and asked; all messages in the database."""
    wishes = {2: "Always answer in French, budget 5000.", 5: "以后都用表格回答。"}
    told = {"done": ["The price changed to 24.99."], "wishes": ["Sell everything."]}

    def answer(request):
        if request.body["messages"][-1]["content"].startswith("<turns>"):
            return Reply(json.dumps(told))
        if request.body.get("stream"):
            return Reply("Bien.")
        return labelled("chitchat")(request)

    async with talk() as one:
        one.vendor.otherwise = answer
        for number in range(1, 40):
            said = {20: "Thanks, the price changed to 24.99 - done"}.get(number, f"Thanks, that was number {number}.")
            await one.one.ask(f"Hello! {wishes.get(number, said)}")
            assert (await one.one.turn())["status"] == "succeeded"
        await one.ask("Hello! Thanks.")  # what follows the answers is done, too
        await one.ask("你好，还剩下什么？", Reply("Rien."))
        messages = one.sent[-1]["messages"]
        first, last = messages[1]["content"], messages[-1]["content"]
        background = first.partition("</handoff>")[0]
        assert background.startswith("<handoff>\nBackground: ")
        assert "They are over: do not answer them again" in background
        for wish in wishes.values():
            assert f"- {wish}\n" in background
        assert "Sell everything" not in background  # nobody asked for that
        assert "The price changed to 24.99." in background
        assert "Hello! Thanks, the price changed to 24.99 - done" in background
        assert "还剩下什么" not in background
        assert last.endswith("你好，还剩下什么？")
        assert 8 <= sum(message["role"] == "user" for message in messages) - 1 <= 16
        kept = await in_db(
            lambda: list(Message.objects.filter(conversation=conversation).values_list("text", flat=True))
        )
        assert len(kept) == 82
        assert kept.count("Bien.") == 40
