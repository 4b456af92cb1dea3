"""The pages of search, and that every way to search gives the same ids in the same order."""

import asyncio
import json
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.urls import reverse

from apps.agents.bindings import bind
from apps.agents.context import TurnRecord
from apps.agents.powers import context_for
from apps.agents.tools.doc_retrieval import Arguments as DocRetrieval
from apps.agents.turn import AskOptions, TurnRequest
from apps.common.database import wait_for
from apps.interop.mcp_tools import Search as McpSearch
from apps.knowledge.highlights import excerpt
from apps.knowledge.models import Chunk, Document, MetadataField, SearchProfile, Synonyms
from apps.knowledge.retrieval.outage import SearchUnavailable
from apps.knowledge.retrieval.search import search
from apps.knowledge.services import create_folder
from apps.workspaces.principals import Principal
from tests.agents.fakes import Sink
from tests.retrieval.conftest import embedded

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "paid leave"


@pytest.fixture
def base(acme, make_base, add_passages):
    base = make_base(acme, "Handbook")
    texts = [f"Rule {n}: {'paid leave' if n % 3 else 'travel'} of kind {n}." for n in range(14)]
    add_passages(base, *texts, name="Rules.md", embed=lambda inputs: embedded([text[-12:] for text in inputs]))
    return base


@pytest.fixture
def large(acme, make_base, add_passages):
    """A base of more passages than a leg looks at, in which the words and the vectors disagree."""
    base = make_base(acme, "Archive")
    for part in range(4):
        texts = [f"Rule {n}: {'paid ' * (n % 7)}{'leave ' * (n % 5)}of kind {n}." for n in range(part, 160, 4)]
        add_passages(base, *texts, name=f"Rules {part}.md")
    return base


@pytest.fixture
def show(client, ann, acme):
    def show(route, *, person=ann, **query):
        client.force_login(person)
        return client.get(reverse(f"knowledge:{route}", args=[acme.slug]), query)

    return show


def by_tool(ann, acme, base, top_k):
    request = TurnRequest(
        uuid4(), uuid4(), acme.pk, Principal.person(ann.pk), None, QUESTION, AskOptions((base.pk,)), list
    )
    bound = wait_for(bind, request)
    context = context_for(request, bound, events=Sink(), stop=asyncio.Event(), rebuilt=None, record=TurnRecord())
    found = wait_for(context.search, QUESTION, top_k)
    return [str(passage.chunk_id) for passage in found.passages]


@pytest.mark.parametrize("saved", [{}, {"fusion": "rrf", "weights": {"vector": 0.1, "lexical": 0.9}, "mmr": 0.6}])
def test_every_way_to_search_gives_the_same_ids_in_the_same_order(client, show, ann, acme, large, saved, capsys):
    base = large
    SearchProfile.objects.create(knowledge_base=base, chosen=saved)
    call_command("search", QUESTION, "--kb", base.name, "--top-k", "8", "--json", "--as", ann.email)
    command = [hit["chunk_id"] for hit in json.loads(capsys.readouterr().out)["hits"]]
    page = show("search-documents", q=QUESTION, kb=base.pk).context["hits"]
    tried = show("try-search", q=QUESTION, kb=base.pk).context["sides"][0]["hits"]
    answer = client.post(
        f"/api/v1/knowledge-bases/{base.pk}/search", {"query": QUESTION, "top_k": 8}, content_type="application/json"
    )
    assert len(command) == 8
    assert [str(hit["passage"].chunk_id) for hit in tried] == command
    assert [hit["chunk_id"] for hit in answer.json()["hits"]] == command
    assert by_tool(ann, acme, base, 8) == by_tool(ann, acme, base, None) == command
    assert [str(hit["passage"].chunk_id) for hit in page[:8]] == command
    longest = wait_for(search, ann, QUESTION, knowledge_bases=[base.pk], top_k=30)
    evaluated = [str(passage.chunk_id) for passage in longest.passages]
    assert [str(hit["passage"].chunk_id) for hit in page] == evaluated[:20]


def test_who_names_no_number_gets_the_saved_one(ann, acme, base):
    SearchProfile.objects.create(knowledge_base=base, chosen={"top_k": 3})
    assert len(by_tool(ann, acme, base, None)) == 3
    assert DocRetrieval(query=QUESTION).top_k is McpSearch(query=QUESTION).top_k is None


def test_settings_that_nobody_changed_leave_each_base_its_own(show, base, make_base, acme, add_passages):
    other = make_base(acme, "Other")
    add_passages(other, "Rule 99: paid leave elsewhere.")
    SearchProfile.objects.create(knowledge_base=other, chosen={"thresholds": {"vector": 2}})
    hits = show("try-search", q=QUESTION, kb=[base.pk, other.pk]).context["sides"][0]["hits"]
    assert {hit["passage"].knowledge_base_id for hit in hits} == {base.pk}
    hits = show("try-search", q=QUESTION, kb=[other.pk, base.pk], **{"a-top_k": 50}).context["sides"][0]["hits"]
    assert {hit["passage"].knowledge_base_id for hit in hits} == {base.pk, other.pk}


def test_a_hit_opens_its_document_at_the_passage(show, base):
    page = show("search-documents", q=QUESTION)
    hit = page.context["hits"][0]["passage"]
    link = reverse("knowledge:show-document", args=[base.workspace.slug, hit.document_id])
    assert f'href="{link}?chunk={hit.chunk_id}"' in page.content.decode()
    assert "<b>paid leave</b>" in page.content.decode()


def test_an_empty_page_says_why(show, base, mal):
    filtered = show("search-documents", q=QUESTION, name="Nowhere")
    assert "No document fits the filters" in filtered.content.decode()
    SearchProfile.objects.create(knowledge_base=base, chosen={"thresholds": {"vector": 2}})
    assert "none reaches the threshold" in show("search-documents", q=QUESTION).content.decode()
    assert show("search-documents", person=mal, q=QUESTION).status_code == 404


def test_a_foreign_base_is_no_choice(show, mal, make_base, add_passages):
    theirs = make_base(mal.workspaces.get(), "Secret")
    add_passages(theirs, "paid leave of theirs")
    page = show("search-documents", q=QUESTION, kb=theirs.pk)
    assert page.status_code == 422
    assert "of theirs" not in page.content.decode()


def test_an_outage_is_not_an_empty_page(show, base, monkeypatch):
    async def fail(*args, **kwargs):
        raise SearchUnavailable({"vector": "timeout", "lexical": "timeout"})

    monkeypatch.setattr("apps.knowledge.views.search.search", fail)
    page = show("search-documents", q=QUESTION)
    assert page.status_code == 503
    assert "cannot be searched at the moment: the database took too long." in page.content.decode()


def test_asking_why_not_changes_nothing(ann, large):
    async def tried(watched):
        return await search(ann, QUESTION, knowledge_bases=[large.pk], top_k=50, watched=watched)

    plain = wait_for(tried, None)
    traced = {trace.chunk_id for trace in plain.traces}
    beyond = Chunk.objects.exclude(pk__in=traced).first()
    watched = wait_for(tried, beyond.pk)
    assert [(hit.chunk_id, hit.score) for hit in watched.passages] == [
        (hit.chunk_id, hit.score) for hit in plain.passages
    ]
    (trace,) = [trace for trace in watched.traces if trace.chunk_id == beyond.pk]
    assert trace.lost_at == "legs"
    assert trace.ranks["vector"] > 100


def test_a_search_is_narrowed_by_folders_and_facts_of_its_bases(show, ann, base, add_passages):
    MetadataField.objects.create(knowledge_base=base, key="year", type="number")
    folder = create_folder(knowledge_base=base, name="Archive of rules", actor=ann)
    document, _ = add_passages(base, "Rule 99: paid leave of old.", name="Old.md")
    Document.objects.filter(pk=document.pk).update(attributes={"year": 1999}, folder=folder)
    whole = show("search-documents", q=QUESTION)
    page = whole.content.decode()
    assert "Handbook / Archive of rules" in page
    assert f"knowledge base {base.pk}" not in page
    assert len(whole.context["hits"]) > 1
    fact = {"fact_1_0": "year", "fact_1_1": "lte", "fact_1_2": "2000"}
    for narrow in (fact, {"folder": folder.pk}, {**fact, "folder": folder.pk}):
        for route in ("search-documents", "try-search"):
            found = show(route, q=QUESTION, **narrow)
            hits = found.context["hits"] if route == "search-documents" else found.context["sides"][0]["hits"]
            assert [hit["passage"].document for hit in hits] == ["Old.md"], (route, narrow)
            assert "<details open>" in found.content.decode()
    wrong = show("search-documents", q=QUESTION, **{**fact, "fact_1_2": "long ago"})
    assert wrong.status_code == 422
    assert "must be a number" in wrong.content.decode()


def test_two_profiles_side_by_side_and_one_saved(client, show, ann, base):
    page = show("try-search", **{"q": QUESTION, "kb": base.pk, "compare": 1, "a-top_k": 2, "b-top_k": 4})
    first, second = page.context["sides"]
    assert (len(first["hits"]), len(second["hits"])) == (2, 4)
    assert [line.left for line in second["funnel"]][-1] == 4
    url = reverse("knowledge:save-profile", args=[base.workspace.slug, base.pk])
    assert client.post(url, {"settings": second["settings"]}).status_code == 302
    assert SearchProfile.objects.get().chosen == {"top_k": 4}
    assert len(show("try-search", q=QUESTION, kb=base.pk).context["sides"][0]["hits"]) == 4
    assert client.post(url, {"settings": "{"}).status_code == 422
    assert client.post(url, {"settings": '{"top_k": 0}'}).status_code == 422


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"a-top_k": 50}, "It is hit number"),
        ({"a-top_k": 1}, "Read, but others were better"),
        ({"a-top_k": 1, "a-candidates": 1}, "Too far down in every leg"),
        ({"a-threshold_vector": 2, "a-top_k": 50}, "below the threshold"),
    ],
)
def test_the_page_says_why_a_passage_is_not_a_hit(show, base, typed, said):
    passage = Chunk.objects.get(text__contains="Rule 9:")
    for watch in (passage.pk, "rule 9: travel"):
        page = show("try-search", q=QUESTION, kb=base.pk, watch=watch, **typed)
        assert said in page.context["sides"][0]["why"]


def test_a_passage_of_others_cannot_be_followed(show, mal, make_base, add_passages, base):
    theirs = make_base(mal.workspaces.get(), "Secret")
    _, (passage,) = add_passages(theirs, "A canary of theirs.")
    page = show("try-search", q=QUESTION, kb=base.pk, watch=passage.pk)
    assert page.context["unknown_watch"]
    assert "canary" not in page.content.decode()


def test_synonyms_are_the_managers_to_keep(client, show, ann, bea, acme):
    url = reverse("knowledge:add-synonyms", args=[acme.slug])
    client.force_login(ann)
    assert client.post(url, {"words": "notebook，laptop、手提"}).status_code == 302
    assert Synonyms.objects.get().words == ["notebook", "laptop", "手提"]
    assert client.post(url, {"words": "one"}).status_code == 422
    page = show("list-synonyms", person=bea)
    assert "laptop" in page.content.decode()
    assert url not in page.content.decode()


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Employees are leaving; leave is paid.", "leaves", ["leaving", "leave"]),
        ("员工每年享有十五天带薪年假。", "年假几天", ["年假"]),
        ("The ５Ｇ site, built in C++.", "5g c++", ["５Ｇ", "C++"]),
        ("Nothing of it <script>", "else", []),
    ],
)
def test_the_words_of_the_question_are_marked(text, query, marked):
    parts = excerpt(text, query)
    assert [part.text for part in parts if part.marked] == marked
    assert "".join(part.text for part in parts) == text


def test_where_no_word_stands_the_best_child_is_shown():
    text = "出差住宿标准。" * 60 + "员工年假十五天。" + "会议室预订。" * 60
    shown = "".join(part.text for part in excerpt(text, "paid leave", focus=7 * 60))
    assert "年假十五天" in shown
    assert "年假" not in "".join(part.text for part in excerpt(text, "paid leave"))


def test_a_table_is_shown_as_plain_text():
    parts = excerpt("# Leave\n| Kind | Days |\n|---|---:|\n| sick | 15 |\n\na | b", "days")
    assert "".join(part.text for part in parts) == "Leave Kind · Days sick · 15 a | b"


def test_of_a_long_passage_the_stretch_with_the_words_is_shown():
    parts = excerpt("word " * 300 + "the refund takes five days " + "word " * 300, "refund")
    shown = "".join(part.text for part in parts)
    assert "refund takes" in shown
    assert shown.startswith("… ")
    assert len(shown) < 380
