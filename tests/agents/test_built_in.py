"""Turns with the built-in models alone: no key, no network, the same graph."""

import pytest
from django.core.files.base import ContentFile

from apps.knowledge import services
from apps.knowledge.models import KnowledgeBase
from tests.agents.test_run_turn import Talk, pools  # noqa: F401 (autouse)

pytestmark = pytest.mark.django_db(transaction=True)

LEAVE = """# Leave

## Annual leave

Every employee has twenty-five days of annual leave a year. Unused days move to the next year until 31 March.
Requests go to the team lead at least two weeks before.

## Parental leave

Parents may take up to fourteen weeks of paid leave after a birth. Form K-77 is needed.

| Country | Public holidays |
|---|---|
| Germany | 11 |
| Japan | 16 |
"""
EXPENSES = """# 报销制度

## 差旅

出差住宿每晚最高报销六百元，需要提供发票。机票应当提前七天预订。

## 餐费

午餐补贴为每天三十元，每月随工资发放。
"""


@pytest.fixture
def base(handbook, ann):
    for name, text in (("Leave.md", LEAVE), ("报销制度.md", EXPENSES)):
        document = services.add_document(
            knowledge_base=handbook, file=ContentFile(text.encode(), name=name), name=name, actor=ann
        )
        assert services.ingest_document(document.pk) == "indexed"
    return handbook


@pytest.fixture
def talk(ann, acme, base):
    return Talk(ann, acme)


QUOTED = [
    ("How many days of annual leave does every employee have?", "twenty-five days", "Leave.md", "From your documents:"),
    ("How long can parents take paid leave after a birth?", "fourteen weeks", "Leave.md", "From your documents:"),
    ("出差住宿每晚最高可以报销多少钱？", "六百元", "报销制度.md", "文档中的相关内容："),
    ("午餐补贴每天是多少？", "三十元", "报销制度.md", "文档中的相关内容："),
]
SAID = [
    ("Which parasite used antigenic variation to evade destruction?", "Not in your documents."),
    ("忽必烈政府的三大部分是什么？", "文档中没有相关内容。"),
]
GREETED = [("Hello!", "Hello!"), ("你好", "你好！"), ("谢谢", "不客气！")]


async def test_it_quotes_the_fact_with_the_marker_of_its_document(ann, acme, base):
    for question, fact, document, lead in QUOTED:
        talk = Talk(ann, acme)
        outcome = await talk.ask(question)
        assert outcome.status == "succeeded"
        assert outcome.text.startswith(lead), question
        [line] = [line for line in outcome.text.splitlines() if fact in line]
        number = int(line.rpartition("[[c")[2].rstrip("]"))
        assert next(source for source in outcome.sources if source.n == number).document == document
        assert talk.sink.of("understanding")[0]["method"] == "local"
        assert outcome.model.startswith("builtin:")
        assert talk.sink.of("tool.started")[0]["name"] == "doc_retrieval"


async def test_it_says_when_nothing_fits_and_greets_who_greets(ann, acme, base):
    for question, said in SAID:
        outcome = await Talk(ann, acme).ask(question)
        assert (outcome.status, outcome.text) == ("succeeded", said)
    for question, said in GREETED:
        talk = Talk(ann, acme)
        assert (await talk.ask(question)).text.startswith(said)
        assert talk.sink.of("tool.started") == []


async def test_a_question_that_goes_on_takes_the_one_before_along(talk):
    outcome = await talk.ask("How many public holidays are there in Japan?")
    assert "Country: Japan; Public holidays: 16" in outcome.text
    outcome = await talk.ask("And in Germany?")
    assert "Country: Germany; Public holidays: 11" in outcome.text
    for question in ("住宿每晚最高报销多少？", "它需要什么？"):
        outcome = await talk.ask(question)
    assert "需要提供发票" in outcome.text


async def test_an_excerpt_is_read_in_full_before_it_is_quoted(talk, ann):
    filler = "\n\n".join(f"Point {n} of the travel policy says nothing of interest to anybody here." for n in range(12))
    text = f"# Travel\n\nThe travel policy covers trains and trams.\n\n{filler}\n\nThe office dog is called Bruno."
    handbook = await KnowledgeBase.objects.aget(name="Handbook")
    from asgiref.sync import sync_to_async

    document = await sync_to_async(services.add_document)(
        knowledge_base=handbook, file=ContentFile(text.encode(), name="t.md"), name="Travel.md", actor=ann
    )
    await sync_to_async(services.ingest_document)(document.pk)
    outcome = await talk.ask("What is the office dog called?")
    assert "Bruno" in outcome.text
    assert [event["name"] for event in talk.sink.of("tool.started")] == ["doc_retrieval", "list_chunks"]


async def test_a_right_that_is_withdrawn_within_the_turn_counts_at_the_next_call(talk, bea, acme, base, monkeypatch):
    """bea reads by a grant; it goes between the search and the reading."""
    from asgiref.sync import sync_to_async

    from apps.agents import powers

    await KnowledgeBase.objects.filter(pk=base.pk).aupdate(restricted=False)
    talk = Talk(bea, acme)
    found = powers.search

    async def search(user, query, **kwargs):
        result = await found(user, query, **kwargs)
        assert result.passages
        await KnowledgeBase.objects.filter(pk=base.pk).aupdate(restricted=True)
        return result

    monkeypatch.setattr(powers, "search", search)
    monkeypatch.setattr("apps.agents.tools.doc_retrieval.EXCERPT", 20)
    outcome = await talk.ask("How many days of annual leave does every employee have?")
    read = [event for event in talk.sink.of("tool.finished") if event["name"] == "list_chunks"]
    assert [event["ok"] for event in read] == [False]
    assert "twenty-five" not in outcome.text
    assert await sync_to_async(KnowledgeBase.objects.visible_to(bea).count)() == 0
