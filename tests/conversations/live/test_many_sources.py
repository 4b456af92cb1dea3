"""Numbers of several passages of one document, of documents of one name, and of pages without ids, wherever seen."""

import re

from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from apps.agents import powers
from apps.agents.web.hits import WebHit
from apps.common.database import in_db
from apps.conversations.models import Citation
from apps.knowledge import services
from apps.knowledge.models import Document, KnowledgeBase
from tests.conversations.live.test_clauses import labelled, with_agent
from tests.conversations.live.test_promises import talk  # noqa: F401 (a fixture)
from tests.conversations.live.test_whole_turn import tab  # noqa: F401 (a fixture)
from tests.vendor import Reply, call

BLOCK = re.compile(r'<result id="c(\d+)" [^\n]*>\n(.*?)\n</result>', re.DOTALL)
COSTS = re.compile(r"[A-Z]{2}-\d+ costs")
CITED = re.compile(
    r'([A-Z]{2}-\d+ costs) so <span class="nowrap">much<a class="cite" href="#[\w-]+c(\d+)" data-n="(\d+)"'
)
PADDING = "It is delivered in a box of wood, with papers in four languages and a seal of the maker. " * 14


def written(*names):
    return "\n\n".join(f"# {name}\n\n{name} costs {n + 10} EUR. {PADDING}" for n, name in enumerate(names))


async def test_each_marker_leads_to_the_passage_that_was_read(talk, people, settings, monkeypatch):  # noqa: F811
    """Three passages of one document, two documents that are both called report.md, two pages of the web."""

    def bases():
        texts = {"Old": ("report.md", written("OL-1")), "New": ("report.md", written("NE-1"))}
        texts["Pumps"] = ("pumps.md", written("PU-1", "PU-2", "PU-3"))
        made = {}
        for base_name, (name, text) in texts.items():
            base = KnowledgeBase.objects.create(workspace=people.acme, name=base_name, created_by=people.ann)
            file = ContentFile(text.encode(), name=name)
            document = services.add_document(knowledge_base=base, file=file, name=name, actor=people.ann)
            services.ingest_document(document.pk)
            made[str(base.pk)] = document.pk
        return made

    async def find(query, limit):
        return [WebHit("Prices", f"https://{n}.example/", f"WE-{n} costs {n} EUR.") for n in (1, 2)]

    settings.WEB_SEARCH_PROVIDER = "duckduckgo"
    monkeypatch.setattr(powers.providers, "search_web", find)
    place = await in_db(with_agent, people, "Prices", ["doc_retrieval", "list_chunks", "web_search"])
    made = await in_db(bases)
    told = {}  # what costs how much, by the number under which the model read it

    def answer(request):
        if not request.body.get("stream"):
            return labelled("kb_search")(request)
        results = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
        if not results:
            searches = [call("doc_retrieval", {"query": f"{name} costs EUR", "top_k": 5}, name) for name in NAMES]
            return Reply(tool_calls=[*searches, call("web_search", {"query": "prices"}, "k9")])
        for n, text in BLOCK.findall("\n".join(results)):
            told.setdefault(int(n), set()).update(COSTS.findall(text))
        if len(results) == len(NAMES) + 1:
            return Reply(tool_calls=[call("list_chunks", {"ids": [f"c{n}" for n in sorted(told)][:10]}, "k10")])
        numbers = {fact: n for n, facts in told.items() for fact in facts}
        facts = [f"{fact} so much [[c{n}]]" for fact, n in sorted(numbers.items())]
        return Reply("- " + "\n- ".join([*facts, f"NO-1 costs nothing [[c{max(told) + 1}]]"]))

    async with talk(place) as one:
        one.vendor.otherwise = answer
        shown = await one.ask("What do they cost?", web=True, knowledge_bases=list(made))
        facts = dict(re.findall(r"- ([A-Z]{2}-\d+ costs) so much \[\[c(\d+)\]\]", shown))
        assert len(facts) == 7, (facts, told)
        assert len(set(facts.values())) == 7  # each its own
        assert shown.endswith("NO-1 costs nothing ")
        sources = {str(source["n"]): source for source in one.of("sources")[-1]["sources"]}
        live = "".join(frame["html"] for frame in one.of("block"))
        [end] = one.of("turn.finished")

    def again():
        client = Client()
        client.force_login(people.ann, "allauth.account.auth_backends.AuthenticationBackend")
        page = client.get(reverse("conversations:show-conversation", args=[people.acme.slug, place.pk]))
        assert page.status_code == 200
        rows = Citation.objects.filter(message=end["message"])
        opened = {}
        for row in rows:
            got = client.get(reverse("conversations:show-citation", args=[people.acme.slug, row.pk]), follow=True)
            opened[str(row.n)] = (row, got.content.decode() if got.status_code == 200 else got.status_code)
        return page.content.decode(), opened

    page, opened = await in_db(again)
    for fact, n in facts.items():
        assert (fact, n, n) in CITED.findall(live), fact
        assert (fact, n, n) in CITED.findall(page), fact
        row, view = opened[n]
        assert fact in row.text
        assert fact in view
        assert row.cited
        assert sources[n]["chunk_id"] == (str(row.chunk_id) if row.chunk_id else None)
        name = fact[:2]
        if name == "WE":
            assert sources[n]["url"] == f"https://{fact[3]}.example/"
        else:
            text = await in_db(lambda row=row: Document.objects.get(pk=row.document_id).name)
            assert sources[n]["document"] == text == ("pumps.md" if name == "PU" else "report.md")
    of = {fact: opened[n][0] for fact, n in facts.items()}
    pumps = [of[f"PU-{n} costs"] for n in (1, 2, 3)]
    assert len({row.document_id for row in pumps}) == 1
    assert len({row.chunk_id for row in pumps}) == 3
    assert of["OL-1 costs"].document_id != of["NE-1 costs"].document_id
    assert {of["OL-1 costs"].document_id, of["NE-1 costs"].document_id, pumps[0].document_id} == set(made.values())


NAMES = ("OL-1", "NE-1", "PU-1", "PU-2", "PU-3")
