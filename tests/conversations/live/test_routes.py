"""Where each intent goes with and without a base and the web, and which vendors get a key for their cache."""

from itertools import product

from apps.agents import editing, powers
from apps.common.database import in_db
from apps.conversations.services import start_conversation
from apps.models import providers
from tests.agents.test_routing import GENERATE, NO_BASE, TABLE, WEB_OFF
from tests.conversations.live.test_agent_over_socket import QUESTION, SEARCH
from tests.conversations.live.test_clauses import UNSURE, labelled, with_agent
from tests.conversations.live.test_promises import CITED, talk  # noqa: F401 (a fixture)
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply

TOOLS = ["doc_retrieval", "list_chunks", "web_search"]
KNOWLEDGE, WEB = {"doc_retrieval", "list_chunks"}, {"web_search"}


async def test_every_intent_with_and_without_a_base_and_the_web(talk, people, settings, monkeypatch):  # noqa: F811
    """A fixed sentence costs no call of the main model; what goes to the agent gets the tools that can work."""

    def bare():
        values = {"name": "No base", "tools": TOOLS, "all_knowledge_bases": False}
        agent = editing.create_agent(workspace=people.acme, values=values, actor=people.ann)
        return start_conversation(workspace=people.acme, actor=people.ann, agent=agent)

    async def nothing(query, limit):
        return []

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers.providers, "search_web", nothing)
    seen, without_files = {}, sorted(set(TABLE) - {"image_only", "doc_only"})
    asked = {
        False: list(product(without_files, (False, True))),
        True: [*product(without_files, [False]), ("web_search", True), ("greeting", True)],
    }
    for base in (False, True):
        place = await in_db(lambda base=base: with_agent(people, "Base", TOOLS) if base else bare())
        async with talk(place) as one:
            for intent, web in asked[base]:
                one.vendor.otherwise = lambda request, intent=intent: (
                    Reply("Three.") if request.body.get("stream") else labelled(intent)(request)
                )
                shown = await one.ask(UNSURE, web=web, language="en", parent=str(place.pk))
                [told] = one.of("understanding")
                assert told["intent"] == intent
                offered = {t["function"]["name"] for body in one.sent for t in body.get("tools") or ()}
                seen[intent, base, web] = (len(one.sent), offered & (KNOWLEDGE | WEB), shown)
    wrong = []
    for (intent, base, web), (calls, offered, shown) in seen.items():
        goes = TABLE[intent][2 * base + web]
        usable = (KNOWLEDGE if base else set()) | (WEB if web else set())
        said = {NO_BASE: "No knowledge base is selected", WEB_OFF: "This needs the web"}.get(goes)
        if said:
            fits = calls == 0 and shown.startswith(said)
        elif goes == GENERATE:
            fits = (calls, offered, shown) == (1, set(), "Three.")
        else:
            fits = calls >= 1 and offered == usable
        if not fits:
            wrong.append((intent, base, web, goes, calls, offered, shown))
    assert len(seen) == 20
    assert wrong == []


async def test_a_vendor_that_routes_by_a_key_gets_the_conversations_with_main_requests_alone(
    talk, people, conversation, monkeypatch  # noqa: F811
):  # fmt: skip
    """The same key in each request of a conversation, another one in another; where there is no field, none is sent."""
    other = await in_db(lambda: start_conversation(workspace=people.acme, actor=people.ann))
    keys, openai = [], providers.VENDORS["openai"]
    assert openai.cache_key == "prompt_cache_key"
    for known in (False, True):
        if known:
            monkeypatch.setattr("apps.models.requests.vendor_at", lambda address: openai.key)
        for place in (conversation, other):
            async with talk(place) as one:
                one.vendor.otherwise = labelled("kb_search")
                await one.ask(QUESTION, Reply(tool_calls=[SEARCH]), Reply(CITED))
                await one.ask(UNSURE, Reply(tool_calls=[SEARCH]), Reply(CITED))
                assert one.short
                assert not [body for body in one.short if "prompt_cache_key" in body]
                keys.append({body.get("prompt_cache_key") for body in one.sent})
    assert keys == [{None}, {None}, {str(conversation.pk)}, {str(other.pk)}]
