"""Models that do what models do wrong, and people who talk as people do, through the socket.

Calls written badly, doubled and beside each other; a model that only thinks; a result of two million characters; a
document that goes while a turn reads it; a long talk in Chinese that turns to English.
"""

import json
import threading

from django.core.files.base import ContentFile

from apps.agents import powers
from apps.agents.web.hits import WebPage
from apps.common.database import in_db
from apps.knowledge import services
from apps.knowledge.models import KnowledgeBase
from tests.conversations.live.test_agent_over_socket import QUESTION, SEARCH
from tests.conversations.live.test_clauses import labelled, with_agent
from tests.conversations.live.test_promises import CITED, talk, understanding  # noqa: F401 (a fixture)
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

WANTED = {"query": "annual leave"}
CALLS = [
    call("doc_retrieval", WANTED, "same"),
    call("grep_chunks", {"pattern": "ten days"}, "same"),  # the id of another
    call("Doc_Retrieval", WANTED, "k3"),
    call("doc_retrieval", "", "k4"),
    call("doc_retrieval", json.dumps({"query": "x" * 200_000}), "k5"),
    call("doc_retrieval", json.dumps(json.dumps(WANTED)), "k6"),  # its text as a text once more
    call("get_document_info", {}, "k7"),
    call("doc_retrieval", '{"query": "a"}{"query": "b"}', "k8"),
]
SAID = {
    "k3": "there is no tool 'Doc_Retrieval'",
    "k4": "the arguments are empty",
    "k5": "the arguments are longer than",
    "k7": "failed (RuntimeError)",
    "k8": "the arguments are not JSON",
}


async def test_calls_that_are_written_badly_go_back_and_their_siblings_run(talk, monkeypatch):  # noqa: F811
    """Eight beside each other: each has its own answer, in order, and what is sent on any vendor takes."""

    async def fails(*args, **options):
        raise RuntimeError("not today")

    monkeypatch.setattr(powers.reading, "document_info", fails)
    async with talk() as one:
        assert await one.ask(QUESTION, Reply(tool_calls=CALLS), Reply(CITED)) == CITED
        _system, _asked, made, *results = one.sent[-1]["messages"]
        ids = [c["id"] for c in made["tool_calls"]]
        assert [message["tool_call_id"] for message in results] == ids
        assert len(set(ids)) == len(CALLS)
        assert [c["function"]["name"] for c in made["tool_calls"]] == [c["function"]["name"] for c in CALLS]
        assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in made["tool_calls"])
        told = {message["tool_call_id"]: message["content"] for message in results}
        for name, said in SAID.items():
            assert said in told[name], (name, told[name][:200])
        assert "not today" not in told["k7"]
        for number in (0, 1, 5):
            assert "Annual leave is ten days" in results[number]["content"], number
        ok = {frame["call_id"]: frame["ok"] for frame in one.of("tool.finished")}
        assert ok == {**dict.fromkeys(ids, True), **dict.fromkeys(SAID, False)}
        assert all(len(json.dumps(frame)) < 10_000 for frame in one.one.frames)  # 200 KB are nobody's to see
        assert await one.ask("Hello", Reply("Hi.")) == "Hi."


async def test_a_model_that_only_thinks_leaves_a_failed_turn_and_the_next_one_works(talk):  # noqa: F811
    async with talk() as one:
        one.vendor.script([Reply(tool_calls=[SEARCH]), Reply(reasoning="Ten days, it seems.")])
        await one.one.ask(QUESTION)
        end = await one.one.turn()
        assert (end["status"], end["error"]["code"]) == ("failed", "empty_answer")
        assert "Ten days, it seems." in "".join(frame["text"] for frame in one.of("reasoning.delta"))
        assert not one.of("token")
        assert await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED)) == CITED
        roles = [message["role"] for message in one.sent[0]["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


async def test_two_million_characters_are_put_away_and_read_at_their_end(talk, people, settings, monkeypatch):  # noqa: F811
    line = "The pump P-7 costs 1,250 EUR since May 2026.\n"
    whole = line * (1_900_000 // len(line))

    async def read_page(url):
        return WebPage(url, "Pumps", whole)

    def answer(request):
        if not request.body.get("stream"):
            asked = request.body["messages"][-1]["content"]
            return Reply("P-7: 1,250 EUR") if "<stored>" in asked else labelled("web_search")(request)
        results = [message["content"] for message in request.body["messages"] if message["role"] == "tool"]
        if not results:
            return Reply(tool_calls=[call("web_fetch", {"url": "https://pumps.example/"}, "k1")])
        if len(results) == 1:
            wanted = {"ref_id": json.loads(results[0])["__refId"], "start": len(whole) - 100}
            return Reply(tool_calls=[call("get_stored_data", wanted, "k2")])
        return Reply("1,250 EUR [[c1]].")

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers, "read_page", read_page)
    async with talk(await in_db(with_agent, people, "Large", ["web_fetch"])) as one:
        one.vendor.otherwise = answer
        assert await one.ask("What does https://pumps.example/ say?", web=True) == "1,250 EUR [[c1]]."
        last = [message["content"] for message in one.sent[-1]["messages"] if message["role"] == "tool"][-1]
        assert whole[-100:] in last
        assert f'of="{len(whole)}"' in last
        assert sum(len(json.dumps(body)) for body in one.sent) < 60_000
        assert sum(len(json.dumps(frame)) for frame in one.one.frames) < 60_000


async def test_a_document_that_goes_while_a_turn_reads_it_is_read_no_more(talk, people):  # noqa: F811
    """What was found before stays what was found; a second look says that it is gone; later turns are told nothing."""
    text = b"# Canteen\n\nThe canteen is open from seven to nine.\n"

    def add():
        base = KnowledgeBase.objects.create(workspace=people.acme, name="Canteen", created_by=people.ann)
        file = ContentFile(text, name="canteen.md")
        document = services.add_document(knowledge_base=base, file=file, name="canteen.md", actor=people.ann)
        services.ingest_document(document.pk)
        return document

    document, deleted = await in_db(add), threading.Event()
    look = [call("list_chunks", {"ids": ["c1"]}, "k2"), SEARCH]
    async with talk() as one:
        one.vendor.otherwise = labelled("kb_search")
        one.vendor.script(
            [
                Reply(tool_calls=[call("doc_retrieval", {"query": "canteen open"}, "k0")]),
                Reply(tool_calls=look, hold=deleted),
                Reply("It is open from seven to nine [[c1]]."),
            ]
        )
        await one.one.ask("When is the canteen open?")
        assert (await one.one.until("tool.finished"))["ok"]
        await in_db(lambda: services.delete_document(document=document, actor=people.ann))
        deleted.set()
        assert (await one.one.turn())["status"] == "succeeded"
        found, again, _other = [m["content"] for m in one.sent[-1]["messages"] if m["role"] == "tool"]
        assert "seven to nine" in found
        assert "seven to nine" not in again
        await one.ask("And who runs it?", Reply(tool_calls=[SEARCH]), Reply(CITED))
        assert "seven to nine" not in json.dumps(one.sent + one.short, ensure_ascii=False)


async def test_a_long_talk_in_chinese_that_turns_to_english(talk, conversation):  # noqa: F811
    """Pronouns are restored, "go on" takes the question before along where nobody can; corrections pass as they are."""
    restored = {
        "它可以结转吗？": "年假可以结转吗？",
        "继续": "请继续介绍年假的规定",  # an order: it is not taken
        "不对，我问的是病假": "病假有几天？",  # drops what was said: it is not taken
        "And in English?": "And annual leave in English?",  # words that nobody said: it is not taken
    }
    passed, searched = {}, {}

    def answer(request):
        said = request.body["messages"][-1]["content"]
        if "<question>" in said:
            return Reply(restored[said.partition("<question>\n")[2].partition("\n</question>")[0]])
        if not request.body.get("stream"):
            return labelled("kb_search")(request)
        if request.body["messages"][-1]["role"] == "tool":
            return Reply("十天 [[c1]]。")
        return Reply("十天。")  # from memory: the search is made in its stead

    async with talk() as one:
        one.vendor.otherwise = answer
        for question in ("年假有几天？", *restored):
            await one.ask(question)
            passed[question] = one.of("understanding")[0]["rewrite_query"]
            [search] = [frame for frame in one.of("tool.started") if frame["name"] == "doc_retrieval"]
            searched[question] = search["arguments"]["query"]
            assert one.of("turn.finished")[0]["status"] == "succeeded"
            assert {request["break"] for request in one.of("usage")[0]["requests"]} <= {"", "turn_border"}
        assert passed == {
            "年假有几天？": "年假有几天？",
            "它可以结转吗？": "年假可以结转吗？",
            "继续": "继续",
            "不对，我问的是病假": "不对，我问的是病假",
            "And in English?": "And in English?",
        }
        assert searched == {
            **passed,
            "继续": "它可以结转吗？ 继续",
            "不对，我问的是病假": "继续 不对，我问的是病假",
            "And in English?": "不对，我问的是病假 And in English?",
        }
