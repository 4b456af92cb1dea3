"""More of what the agent promises, through the socket: exact words, the window, the note, what is remembered."""

import json

from apps.common.database import in_db
from apps.conversations.models import Turn
from apps.memory import services
from apps.memory.errors import MemoryOff
from apps.memory.models import ConversationNote, DocumentAffinity, MemoryItem
from tests.conversations.live.test_agent_over_socket import QUESTION, SEARCH
from tests.conversations.live.test_promises import CITED, talk  # noqa: F401 (a fixture)
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call


async def test_tools_side_by_side_answer_in_the_order_of_the_calls_behind_the_same_beginning(talk):  # noqa: F811
    """Exact words and descriptions beside each other; tools, system and messages repeat what was sent before."""
    calls = [call("get_document_info", {}, "k1"), call("grep_chunks", {"pattern": "ten days"}, "k2")]
    async with talk() as one:
        assert await one.ask(QUESTION, Reply(tool_calls=calls), Reply(CITED), Reply(CITED)) == CITED
        assert sorted((frame["name"], frame["ok"]) for frame in one.of("tool.finished")) == [
            ("get_document_info", True), ("grep_chunks", True)
        ]  # fmt: skip
        first, *_, last = one.sent
        results = [message for message in last["messages"] if message["role"] == "tool"][:2]
        assert [message["tool_call_id"] for message in results] == ["k1", "k2"]
        assert "leave.md" in results[0]["content"]
        assert "Annual leave is ten days" in results[1]["content"]
        names = [tool["function"]["name"] for tool in first["tools"]]
        assert names == sorted(names)
        assert last["tools"] == first["tools"]
        assert last["messages"][: len(first["messages"])] == first["messages"]
        assert {request["break"] for request in one.of("usage")[0]["requests"]} == {""}


async def test_a_model_that_looks_things_up_and_never_answers_ends_in_a_sentence(talk):  # noqa: F811
    async with talk() as one:
        one.vendor.otherwise = lambda request: Reply(tool_calls=[SEARCH])
        assert "looked things up but wrote no answer" in await one.ask(QUESTION)
        assert one.of("turn.finished")[0]["status"] == "succeeded"
        assert one.sent[-1].get("tools") is None  # it was asked once more, with nothing to call


async def test_the_window_steps_and_the_note_tells_of_the_conversation(talk, conversation, settings):  # noqa: F811
    """With two turns that stay: the fourth answer's step leaves two, behind a handoff that is shown once."""
    settings.STM_KEEP_TURNS = 2
    async with talk() as one:
        one.vendor.otherwise = lambda request: Reply('{"done": ["They greeted."]}')
        for number in range(1, 5):
            assert not await in_db(lambda: ConversationNote.objects.filter(conversation=conversation.pk).exists())
            await one.ask(f"Hello {number}", Reply("Hi."))
            assert not one.of("handoff")
        note = await in_db(lambda: ConversationNote.objects.get(conversation=conversation.pk).text)
        assert note == '{"done": ["They greeted."]}'
        await one.ask("Hello 5", Reply("Hi."))
        assert [frame["turns"] for frame in one.of("handoff")] == [2]
        [sent] = one.sent
        asked = [message["content"] for message in sent["messages"] if message["role"] == "user"]
        assert len(asked) == 3
        assert asked[0].startswith("<handoff>")
        assert asked[0].endswith("Hello 3")
        assert "They greeted." not in json.dumps(sent["messages"][-1:])  # the note is for understanding alone
        assert [request["break"] for request in one.of("usage")[0]["requests"]] == ["window_step"]
        await one.ask("Hello 6", Reply("Hi."))
        assert not one.of("handoff")


async def test_statements_to_remember_in_both_languages(talk, people):  # noqa: F811
    """Each is kept at once, said back and shown as a step; what asks, or is quoted, is none."""
    kept = [
        ("Remember: I work in finance", "I work in finance"),
        ("Please remember that the budget is 5,000", "the budget is 5,000"),
        ("Keep in mind that we use SAP", "we use SAP"),
        ("记住：我在财务部工作", "我在财务部工作"),
        ("请帮我记一下：周五开会", "周五开会"),
    ]
    none = ["Do you remember my name?", "请记住我的名字了吗", "Sum this up:\nRemember: call Bob\nYours, Al"]
    items = MemoryItem.objects.filter(user=people.ann)
    async with talk() as one:
        for said, item in kept:
            await one.ask(said)
            assert one.sent == [], said  # no model is asked
            assert [s["detail"] for s in one.of("step") if s["name"] == "remembered"] == [item]
            assert item in await in_db(lambda: list(items.values_list("text", flat=True)))
        before = await in_db(items.count)
        for said in none:
            one.vendor.otherwise = lambda request: Reply("I see.")
            await one.ask(said)
            assert await in_db(items.count) == before, said
        await in_db(lambda: items.delete())


async def test_a_memory_that_is_switched_off_is_neither_read_nor_written(talk, people):  # noqa: F811
    def switch(on):
        return in_db(lambda: services.switch(workspace=people.acme, actor=people.ann, on=on))

    items, often = MemoryItem.objects.filter(user=people.ann), DocumentAffinity.objects.filter(user=people.ann)
    async with talk() as one:
        await one.ask("Remember: I work in finance")
        counted = await in_db(lambda: [row.citations for row in often])
        await switch(False)
        try:
            one.vendor.otherwise = lambda request: Reply("Hm.")
            await one.ask("Remember: my code is 42")
            [warned] = [step["detail"] for step in one.of("step") if step["name"] == "memory"]
            assert warned == MemoryOff().message
            assert await in_db(items.count) == 1
            await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
            assert "finance" not in json.dumps([body["messages"][-1] for body in one.sent + one.short])
            assert await in_db(lambda: [row.citations for row in often]) == counted
        finally:
            await switch(True)
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        assert "I work in finance" in json.dumps(one.sent[0]["messages"])
        await in_db(lambda: items.delete())


async def test_what_was_read_ahead_for_a_question_that_is_not_begun_is_dropped(talk, conversation, caplog):  # noqa: F811
    """The same client id again shows its turn; a parent that is not there is refused; the next question works."""
    async with talk() as one:
        await one.ask("Hello", Reply("Hi."), client_id="once")
        one.one.frames.clear()
        await one.one.ask("Hello", client_id="once")
        assert (await one.one.turn())["status"] == "succeeded"
        await one.one.ask("Hello", parent="00000000-0000-4000-8000-000000000000")
        assert (await one.one.next())["code"] == "not_found"
        await one.ask("Hello again", Reply("Hi."))
        assert await in_db(lambda: Turn.objects.filter(conversation=conversation).count()) == 2
    assert not [record for record in caplog.records if "never retrieved" in record.getMessage()]
