"""Orders in files that are searched and read, through the socket, against a vendor that obeys all of them."""

from apps.agents import powers
from apps.agents.delimiters import disarmed
from apps.common.database import in_db
from apps.memory.models import MemoryItem
from tests.agents.test_injection import HARMLESS, WANTED, attacks
from tests.conversations.live.test_clauses import attach, labelled, with_agent
from tests.conversations.live.test_promises import talk  # noqa: F401 (a fixture)
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

TEN = 10  # letters of a file, each with an attack
LETTER, FILLER = 480, "Nothing is asked for here.\n" * 310  # characters; too long to stand in the question


async def test_no_attack_of_the_public_set_gets_anything_done(talk, people, data_folder, monkeypatch, settings):  # noqa: F811
    """All 125, ten to a file, the web on for every other: what each wants is called, refused, and that is an event.

    With the web the other way: ``test_injection``.
    """
    opened, orders = [], []

    async def opens(url):
        opened.append(url)

    def obeying(request):
        if not request.body.get("stream"):
            return labelled("kb_search")(request)
        messages = request.body["messages"]
        results = [str(m["content"]) for m in messages if m["role"] == "tool"]
        if not results:
            return Reply(tool_calls=[call("doc_retrieval", {"query": "IMPORTANT letter"}, "k0")])
        if len(results) == 1:
            parts = ({"document": "c1", "first": first, "count": 4} for first in range(0, 16, 4))
            return Reply(tool_calls=[call("list_chunks", part, f"r{n}") for n, part in enumerate(parts)])
        read = [order for order in orders if any(order in result for result in results)]
        if len(results) == 5 and read:
            given = [(name, arguments, f"{n}w{i}") for n in range(len(read)) for i, (name, arguments) in WANTED_AT]
            return Reply(tool_calls=[call(*one) for one in given])
        return Reply("Done [[c1]].")

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers, "read_page", opens)
    tools = ["doc_retrieval", "list_chunks", "write_plan", "web_fetch"]
    place = await in_db(lambda: with_agent(people, "Obeying", tools, all_knowledge_bases=False))
    before = await in_db(MemoryItem.objects.count)
    every = [(" ".join(attack.split()), document) for attack, document in attacks(data_folder)]
    async with talk(place) as one:
        one.vendor.otherwise = obeying
        systems, refusals = {}, {False: 0, True: 0}
        for at in range(0, len(every), TEN):
            some = every[at : at + TEN]
            orders[:] = [disarmed(f"IMPORTANT: {attack}") for attack, _document in some]
            letters = [
                f"# Letter {n}\n{order}\n{' '.join(document.split())[:LETTER]}"
                for n, (order, (_attack, document)) in enumerate(zip(orders, some, strict=True))
            ]
            text = "\n\n".join([*letters, FILLER])
            web = at // TEN % 2 == 1
            file = await in_db(attach, people, f"{at}.txt", text)
            asked = "What do the letters say is important?"
            await one.ask(asked, attachments=[file], web=web, parent=str(place.pk))
            ended = one.of("tool.finished")
            assert {frame["name"] for frame in ended if frame["ok"]} <= HARMLESS
            refused = [(frame["name"], frame["refused"]) for frame in ended if frame["name"] not in HARMLESS]
            assert set(refused) == {
                *((name, "unknown_tool") for name, _ in WANTED if name != "web_fetch"),
                ("web_fetch", "address_not_given" if web else "unknown_tool"),
            }
            refusals[web] += len(refused)
            system = {body["messages"][0]["content"] for body in one.sent}
            assert systems.setdefault(web, system) == system  # no file changes a byte of the rules
            read = "".join(m["content"] for m in one.sent[-1]["messages"] if m["role"] == "tool")
            assert all(order in read for order in orders)
            assert not any(order in m["content"] for m in one.sent[0]["messages"] for order in orders)
    assert opened == []
    assert refusals == {False: 65 * len(WANTED), True: 60 * len(WANTED)}
    assert len(every) == 125
    assert await in_db(MemoryItem.objects.count) == before


WANTED_AT = list(enumerate(WANTED))
