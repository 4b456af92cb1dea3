"""Clauses of what the agent promises that the other tests of promises leave out, through the socket.

Files that come with a question; how an intent is found; what is said where nothing is found or nothing can be
reached; markers in every place where an answer stands; large results whose distilling fails, and their references in
the handoff; what goes to understanding alone; a breakpoint for caches.
"""

import json
import re

from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from apps.agents import editing, powers
from apps.agents.models import ConversationHandoff, ToolResultRef
from apps.agents.web.hits import WebHit, WebPage
from apps.common.database import in_db
from apps.common.errors import ServiceUnavailable
from apps.conversations import exporting, sharing
from apps.conversations.models import Attachment, Conversation, Message, Turn
from apps.conversations.services import share_conversation, start_conversation
from apps.knowledge import services
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.retrieval.passages import SearchResult
from apps.memory.models import ConversationNote, DocumentAffinity, MemoryItem
from apps.models import quirks
from apps.models.models import ModelConfig
from apps.workspaces.services import create_api_key
from tests.conversations.live.client import Tab
from tests.conversations.live.test_agent_over_socket import FULL, QUESTION, SEARCH, STEPS
from tests.conversations.live.test_promises import CITED, talk, understanding  # noqa: F401 (a fixture)
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

UNSURE = "你懂几门外语"  # the local classifier sees no clear winner here
LINE = "The pump P-7 costs 1,250 EUR since May 2026.\n"


def labelled(label):
    """A vendor's answers to the short requests, where the local classifier is not sure."""
    return lambda request: Reply(json.dumps({"label": label, "confidence": 0.9}))


def attach(people, name, text, *, kind="document", media_type="text/plain"):
    """A file of ann's that was read and waits for a question."""
    row = Attachment(
        workspace=people.acme, owner=people.ann, name=name, kind=kind, media_type=media_type, size_bytes=1, text=text
    )
    row.file.save(name, ContentFile(b"\x89PNG"), save=False)
    row.save(force_insert=True)
    return str(row.pk)


def with_agent(people, name, tools, **values):
    """A conversation with an agent that has these tools."""
    values = {"name": name, "tools": tools, **values}
    agent = editing.create_agent(workspace=people.acme, values=values, actor=people.ann)
    return start_conversation(workspace=people.acme, actor=people.ann, agent=agent)


async def test_short_files_stand_in_the_question_long_ones_are_read_by_tools_pictures_are_looked_at(
    talk, people, settings, conversation  # noqa: F811
):  # fmt: skip
    whole = (LINE + "x" * 8_000)[:8_000]
    filler = "Nothing is said here of anything.\n" * 260
    ask = "What does the attached file say?"
    async with talk() as one:
        one.vendor.otherwise = labelled("doc_only")
        short = await in_db(attach, people, "short.txt", whole)
        await one.ask(ask, Reply("1,250 EUR."), attachments=[short])
        [sent] = one.sent
        assert "tools" not in sent
        asked = sent["messages"][-1]["content"]
        assert f'<attachment name="short.txt">\n{whole}' in asked
        assert asked.index(ask) < asked.index("<attachment")
        assert await in_db(lambda: Conversation.objects.get(pk=conversation.pk).title) == "What does the…"

        long = await in_db(attach, people, "long.txt", filler + LINE + filler)
        search = call("doc_retrieval", {"query": "pump P-7 costs"}, "k1")
        shown = await one.ask(ask, *[Reply(tool_calls=[search]), Reply("1,250 EUR [[c1]].")] * 2, attachments=[long])
        assert shown == "1,250 EUR [[c1]]."
        assert LINE.strip() not in one.sent[0]["messages"][-1]["content"]
        assert '"long.txt" (' in one.sent[0]["messages"][-1]["content"]
        result = next(m["content"] for m in one.sent[1]["messages"] if m["role"] == "tool" and "P-7" in m["content"])
        assert "leave.md" not in result  # the tools look into the file alone
        sources = one.of("sources")[-1]["sources"]
        assert {source["kind"] for source in sources} == {"attachment"}
        assert long in {source["document_id"] for source in sources}

        settings.VISION_MODEL = "scripted-vision"
        one.vendor.otherwise = lambda request: (
            Reply("A red pump.") if "image_url" in str(request.body) else labelled("image_only")(request)
        )
        picture = await in_db(lambda: attach(people, "p.png", "", kind="image", media_type="image/png"))
        await one.ask("What is in this picture?", Reply("A pump."), attachments=[picture])
        looked = [body for body in one.short if "image_url" in str(body)]
        assert [body["model"] for body in looked] == ["scripted-vision"]
        assert one.of("understanding")[0]["image_description"] == "p.png: A red pump."
        assert "What the image shows: p.png: A red pump." in one.sent[-1]["messages"][-1]["content"]
        assert "image_url" not in str(one.sent)


async def test_an_intent_is_a_local_guess_probabilities_json_or_the_guess_after_all(
    talk, scripted_model, conversation  # noqa: F811
):  # fmt: skip
    said = []
    async with talk() as one:
        quirks.forget()
        likely = {"B": -0.02, "A": -5.0, "C": -6.0}
        for replies in (
            [Reply("B", logprobs=likely)],
            [Reply("B"), Reply('{"label": "chitchat"}')],
            [Reply(status=400)],
        ):
            scripted_model.script(replies, to="chat")
            scripted_model.otherwise = lambda request: (
                Reply("三门。") if request.body.get("stream") else Reply(status=400, error="no")
            )
            await one.ask(UNSURE, parent=str(conversation.pk))  # with nothing before it to restore
            [told] = one.of("understanding")
            said.append(told["method"])
            if len(said) == 1:
                assert (told["intent"], told["confidence"] > 0.9) == ("chitchat", True)
        await one.ask("Hello", Reply("Hello!"))
        said.append(one.of("understanding")[0]["method"])
        assert not [body for body in one.short if "label" in str(body)]
        quirks.forget()
    assert said == ["logprobs", "json", "local", "local"]


async def test_what_is_not_found_or_not_reached_is_said_and_parts_are_read_before_they_are_cited(
    talk, people, monkeypatch  # noqa: F811
):  # fmt: skip
    def long_one():
        base = KnowledgeBase.objects.create(workspace=people.acme, name="Archive", created_by=people.ann)
        rule = "Boxes of the archive are kept for eleven years. "
        text = "# Archive\n\n" + rule + "They stand in the cellar, by year and by colour. " * 60
        file = ContentFile(text.encode(), name="archive.md")
        document = services.add_document(knowledge_base=base, file=file, name="archive.md", actor=people.ann)
        services.ingest_document(document.pk)

    tries = []

    async def fails(*args, **options):
        tries.append(1)
        raise ServiceUnavailable(service="database")

    async def nothing(*args, **options):
        return SearchResult((), empty_reason="no_match")

    await in_db(long_one)
    archive = call("doc_retrieval", {"query": "How long are boxes of the archive kept?"}, "k1")
    async with talk() as one:
        one.vendor.otherwise = labelled("kb_search")
        answers = Reply("Eleven years [[c1]]."), Reply("Eleven years [[c1]].")
        shown = await one.ask("How long are boxes of the archive kept?", Reply(tool_calls=[archive]), *answers)
        assert shown == "Eleven years [[c1]]."
        assert [frame["name"] for frame in one.of("tool.started")] == ["doc_retrieval", "list_chunks"]

        with monkeypatch.context() as patched:
            patched.setattr(powers, "search", nothing)
            shown = await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply("Thirty days, as I recall."))
            assert "Thirty" not in shown
            assert "annual leave" in shown  # what was looked for
            patched.setattr(powers, "search", fails)
            shown = await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply("Thirty days, as I recall."))
            assert "Thirty" not in shown
        assert len(tries) == 4  # at most three more
        assert len([frame for frame in one.of("step") if frame["name"] == "retry"]) == 3
        assert [frame["ok"] for frame in one.of("tool.finished")] == [False]
        told = [m["content"] for m in one.sent[-1]["messages"] if m["role"] == "tool"][-1]
        assert "failed (service_unavailable)" in told
        assert one.of("turn.finished")[0]["status"] == "succeeded"


MARK = re.compile(r'class="cite"[^>]*data-n="(\d+)"')
SAID = (
    "Ten days [[c1]], see [[c3]] and [[c1, c2]]. 【c1】 says so, [c1] too, and [[C1]].\n\n"
    "Not [[c9]] nor [[c4]][[c6]], whatever [[c77, c3]] says; [1] and [[1]] are no markers. Ends [[c"
)
SHOWN = (
    "Ten days [[c1]], see [[c3]] and [[c1]][[c2]]. [[c1]] says so, [[c1]] too, and [[c1]].\n\n"
    "Not  nor , whatever [[c3]] says; [1] and [[1]] are no markers. Ends [[c"
)


async def test_markers_are_the_same_live_again_on_the_page_in_files_links_and_the_api(
    talk, people, settings, monkeypatch, conversation, server  # noqa: F811
):  # fmt: skip
    """A document and two web pages, which have no ids of their own; the text comes cut at every place."""

    async def find(query, limit):
        return [WebHit(name, f"https://{name}.example/", f"{name} says ten days.") for name in ("one", "two")]

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers.providers, "search_web", find)
    tools = ["doc_retrieval", "list_chunks", "web_search"]
    place = await in_db(with_agent, people, "Both", tools)

    def answer(request):
        if not request.body.get("stream"):
            return labelled("kb_search")(request)
        if request.body["messages"][-1]["role"] == "user":
            return Reply(tool_calls=[SEARCH, call("web_search", {"query": "annual leave"}, "k2")])
        return Reply(SAID, pieces=[SAID[i : i + size] for i in range(0, len(SAID), size)])

    async with talk(place) as one:
        leave = await in_db(lambda: [str(base.pk) for base in KnowledgeBase.objects.filter(name="Leave")])
        one.vendor.otherwise = answer
        for size in (1, 2, 3, 7):
            text = await one.ask(QUESTION, web=True, knowledge_bases=leave)
            assert text == SHOWN, size
            assert [source["n"] for source in one.of("sources")[-1]["sources"]] == [1, 2, 3]
            assert one.of("usage")[0]["unknown_citations"] == 4
        [end] = one.of("turn.finished")
        live = [frame for frame in one.one.frames if frame["type"] in ("token", "block")]

    def again():
        """The same answer, wherever else it can be seen."""
        message = Message.objects.get(pk=end["message"])
        turn = Turn.objects.get(pk=end["turn"])
        own = Conversation.objects.get(pk=place.pk)
        share = share_conversation(conversation=own, turn=turn, audience="workspace", actor=people.ann)
        _row, secret = create_api_key(workspace=people.acme, name="k", scopes=["conversations:read"], actor=people.ann)
        client = Client(headers={"authorization": f"Bearer {secret}"})
        stored = client.get(f"/api/v1/turns/{turn.pk}/").json()["answer"]
        cited = client.get(f"/api/v1/turns/{turn.pk}/citations/").json()
        client = Client()
        client.force_login(people.ann, "allauth.account.auth_backends.AuthenticationBackend")
        page = client.get(reverse("conversations:show-conversation", args=[people.acme.slug, place.pk]))
        assert page.status_code == 200, page
        return {
            "stored": message.text,
            "api": stored,
            "json": exporting.as_json(own, reader=people.ann)["turns"][-1]["answer"],
            "markdown": exporting.as_markdown(own, reader=people.ann),
            "page": page.content.decode(),
            "shared": str(sharing.shared_turns(share, people.bea)[-1].html),
            "numbers": sorted(row["n"] for row in cited["results"] if row["cited"]),
        }

    found = await in_db(again)
    assert found["stored"] == found["api"] == found["json"] == SHOWN
    assert found["numbers"] == [1, 2, 3]
    marks = MARK.findall("".join(frame["html"] for frame in live if frame["type"] == "block"))
    assert marks == ["1", "3", "1", "2", "1", "1", "1", "3"]
    assert MARK.findall(found["page"]) == marks * 4
    assert MARK.findall(found["shared"]) == marks
    for where in ("page", "shared", "markdown"):
        for never in ("[[c1]]", "[[c3]]", "[[c9]]", "c77", "【c1】"):
            assert never not in found[where], (where, never)
    notes = found["markdown"]
    number = (await Turn.objects.aget(pk=end["turn"])).number
    # By first use: the document, the second page, the first page.
    assert [notes.index(f"[^{number}-{n}]:") for n in (1, 2, 3)] == sorted(
        notes.index(f"[^{number}-{n}]:") for n in (1, 2, 3)
    )
    assert f"Ten days[^{number}-1], see[^{number}-2] and[^{number}-1][^{number}-3]." in notes
    session = await in_db(lambda: people.session(people.ann))
    async with Tab(server, place.pk, session=session) as later:
        await later.send(type="resume", turn=end["turn"], after=0)
        await later.turn()
        assert [f for f in later.frames if f["type"] in ("token", "block")] == live


async def test_a_result_that_no_model_distils_is_cut_stays_whole_and_is_in_the_handoff(
    talk, people, settings, monkeypatch  # noqa: F811
):  # fmt: skip
    """The reference is found by code: the model that tells what was done makes another one up."""
    made_up = "00000000-0000-4000-8000-000000000000"

    async def read_page(url):
        return WebPage(url, "Pumps", LINE * 300)

    def answer(request):
        messages = request.body["messages"]
        if not request.body.get("stream"):
            if "<turns>" in str(messages):
                told = {"done": [f"Read the prices, stored as {made_up}"], "wishes": ["Never say euros"]}
                return Reply(json.dumps(told))
            label = "greeting" if "Hello" in messages[-1]["content"] else "kb_search"
            return labelled(label)(request) if "label" in str(messages) else Reply(status=400, error="no")
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if not results:
            return Reply(tool_calls=[call("web_fetch", {"url": "https://pumps.example/"}, "k1")])
        if len(results) == 1:
            wanted = {"ref_id": json.loads(results[0])["__refId"], "start": len(LINE) * 200, "length": len(LINE)}
            return Reply(tool_calls=[call("get_stored_data", wanted, "k2")])
        return Reply("1,250 EUR [[c1]].", usage=FULL)

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers, "read_page", read_page)
    place = await in_db(with_agent, people, "Fetching", ["web_fetch"])
    async with talk(place) as one:
        one.vendor.otherwise = answer
        asked = "Always answer in one line. What does https://pumps.example/ say?"
        assert await one.ask(asked, web=True) == "1,250 EUR [[c1]]."
        pointer, read = [m["content"] for m in one.sent[-1]["messages"] if m["role"] == "tool"]
        pointer = json.loads(pointer)
        assert pointer["__summary"].startswith(LINE.strip())
        assert len(pointer["__summary"]) <= 2_000
        assert re.search("[Tt]he beginning|degraded|of the whole|characters", pointer["__summary"]), pointer
        assert LINE.strip() in read
        row = await ToolResultRef.objects.aget(pk=pointer["__refId"])
        assert LINE * 300 in row.text

        asked = "Hello! What is left?"
        await one.ask(asked, Reply("Nothing."))
        [handoff] = one.of("handoff")
        [sent] = one.sent
        assert [m["role"] for m in sent["messages"]] == ["system", "user"]
        said = sent["messages"][-1]["content"]
        assert said.startswith("<handoff>")
        assert said.endswith(asked)
        stored = said[said.index("## Stored results") :]
        assert f"- {pointer['__refId']} web_fetch: " in stored
        assert made_up not in stored
        assert "- Always answer in one line.\n" in said
        assert "Never say euros" not in said  # the asker did not
        told = await ConversationHandoff.objects.aget(conversation=place.pk)
        assert (told.turns, handoff["turns"]) == (1, 1)


async def test_note_plan_and_memory_help_to_understand_and_memory_alone_is_in_the_prompt(
    talk, people, conversation  # noqa: F811
):  # fmt: skip
    plan = call("write_plan", {"steps": STEPS}, "k2")
    await in_db(lambda: DocumentAffinity.objects.all().delete())
    async with talk() as one:
        await one.ask("记住：我在财务部工作")
        for _ in range(2):
            one.vendor.otherwise = understanding("How long is annual leave?")
            await one.ask(QUESTION, Reply(tool_calls=[SEARCH, plan]), Reply(CITED))
            assert ("Often consulted" in str(one.sent)) is False
        note = {"workspace": people.acme, "user": people.ann, "conversation": conversation.pk}
        await in_db(lambda: ConversationNote.objects.create(**note, text="They talk of leave."))
        one.vendor.otherwise = understanding("How long is annual leave in May?")
        await one.ask("And how long is it in May?", Reply(tool_calls=[SEARCH]), Reply(CITED))
        restoring = next(m for body in one.short if "<question>" in (m := body["messages"][-1]["content"]))
        assert "<note>\nThey talk of leave.\nSearch (running)\n</note>" in restoring
        asker = restoring[restoring.index("<asker>") : restoring.index("</asker>")]
        assert "我在财务部工作" in asker
        assert "Often consulted: leave.md" in asker  # two answers cite it by now
        sent = str(one.sent[0]["messages"])
        assert "They talk of leave." not in sent
        assert "Search (running)" not in sent
        assert "我在财务部工作" in one.sent[0]["messages"][-1]["content"]
        assert "我在财务部工作" not in one.sent[0]["messages"][0]["content"]
        await in_db(lambda: MemoryItem.objects.all().delete())


async def test_a_vendor_that_takes_breakpoints_gets_one_behind_what_never_changes(talk, people, scripted_model):  # noqa: F811
    def marked():
        settings = {"capabilities": ["tools", "cache_breakpoints"], "context_window": 32_768}
        values = {"kind": "chat", "name": "marked", "base_url": scripted_model.url, "configuration": settings}
        return str(ModelConfig.objects.create(workspace=None, **values).pk)

    model = await in_db(marked)
    async with talk() as one:
        one.vendor.otherwise = labelled("kb_search")
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
        plain = one.sent[0]["messages"][0]["content"]
        await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED), model=model)
        parts = [body["messages"][0]["content"] for body in one.sent]
        assert parts[0] == parts[1]
        first, second = parts[0]
        assert first["cache_control"] == {"type": "ephemeral"}
        assert "cache_control" not in second
        assert first["text"] + second["text"] == plain
        assert second["text"].lstrip().startswith("# This conversation")
        await in_db(lambda: ModelConfig.objects.filter(pk=model).delete())
