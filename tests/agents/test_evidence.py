"""What an answer may stand on: searched, read, or said to be missing; enforced against any model."""

from dataclasses import replace

import pytest

from apps.agents.context import Budget, Switches
from apps.agents.evidence import owes_search
from apps.common.errors import ServiceUnavailable
from apps.knowledge.retrieval.passages import SearchResult
from tests.agents.fakes import calling, make_context, passage, text
from tests.agents.test_graph import READ, SEARCH, drive, intent
from tests.vendor import call

LONG = passage("Annual leave is ten days, but twelve from the third year on. " * 30)
SHORT = passage("Sick leave is paid for six weeks.")


def called(state):
    return [c["function"]["name"] for m in state["messages"] for c in m.get("tool_calls") or ()]


async def test_an_answer_without_a_search_becomes_a_search_and_nobody_hears_it():
    context, sink, requests = make_context(
        passages=[SHORT], replies=[text("Ten days, as I remember."), text("Six weeks [[c1]].")]
    )
    state = await drive(context)
    assert called(state) == ["doc_retrieval"]
    assert sink.text == "Six weeks [[c1]]."
    assert "as I remember" not in str(state["messages"])
    assert sink.of("tool.started")[0]["arguments"] == {"query": "How long is annual leave?"}
    assert len(requests) == 2


async def test_what_was_seen_in_part_is_read_before_it_is_cited():
    context, sink, requests = make_context(
        passages=[LONG, SHORT], replies=[calling(SEARCH), text("Ten days [[c1]]."), text("Ten or twelve [[c1]].")]
    )
    state = await drive(context)
    assert called(state) == ["doc_retrieval", "list_chunks"]
    assert sink.text == "Ten or twelve [[c1]]."
    assert [e["arguments"] for e in sink.of("tool.started")][1] == {"ids": ["c1"]}
    assert LONG.text in requests[-1].messages[-1]["content"]


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([calling(SEARCH), text("Six weeks [[c2]].")], "Six weeks [[c2]]."),  # that passage was shown whole
        ([calling(SEARCH), text("The documents do not say.")], "The documents do not say."),
        ([calling(SEARCH), calling(READ), text("Ten [[c1]], six [[c2]].")], "Ten [[c1]], six [[c2]]."),
    ],
)
async def test_an_answer_that_stands_is_not_asked_for_again(replies, said):
    context, sink, requests = make_context(passages=[LONG, SHORT], replies=replies)
    await drive(context)
    assert sink.text == said
    assert len(requests) == len(replies)


async def test_after_reading_the_answer_comes_as_it_is_written():
    """Held back is only what may have to be taken back."""
    context, sink, _ = make_context(
        passages=[LONG], replies=[calling(SEARCH), calling(READ), text("Ten or twelve days [[c1]].")]
    )
    await drive(context)
    assert len(sink.tokens) > 1


@pytest.mark.parametrize("reply", ["It is ten days.", "Ten days [[c1]]."])
async def test_nothing_found_is_said_whatever_the_model_says(reply):
    context, sink, _ = make_context(passages=[], replies=[calling(SEARCH), text(reply)])
    state = await drive(context)
    assert sink.text == "Nothing was found for this. Looked for: “leave”"
    assert state["messages"][-1]["content"] == sink.text


async def test_an_outage_is_not_nothing_found():
    async def search(query, top_k):
        raise ServiceUnavailable(service="database")

    context, sink, _ = make_context(search=search, replies=[calling(SEARCH), text("Ten days.")])
    await drive(context)
    assert sink.text.startswith("What was to be looked up could not be reached")


async def test_names_of_documents_are_found_but_are_no_search():
    info = calling(call("get_document_info", {}))
    context, sink, _ = make_context(passages=[], replies=[info, text("One."), text("One.")])
    context = replace(context, info=one_document)
    state = await drive(context)
    assert called(state) == ["get_document_info", "doc_retrieval"]
    assert sink.text == "One."  # not "nothing was found": there is a name


async def one_document(*, document_ids=()):
    return [{"document_id": str(SHORT.document_id), "name": SHORT.document}]


async def test_a_refused_call_is_neither_a_search_nor_a_reading():
    wrong = call("doc_retrieval", {"query": "leave", "top_k": 99}, "w1")
    unread = call("list_chunks", {"ids": ["c1"], "count": 99}, "w2")
    replies = [calling(wrong), text("Ten."), calling(unread), text("Ten [[c1]]."), text("Ten or twelve [[c1]].")]
    context, sink, _ = make_context(passages=[LONG], replies=replies)
    state = await drive(context)
    assert called(state) == ["doc_retrieval", "doc_retrieval", "list_chunks", "list_chunks"]
    assert sink.text == "Ten or twelve [[c1]]."


def test_a_file_that_is_only_named_owes_a_search():
    context, _, _ = make_context()
    for attached, owes in (("", True), ('[Attached: "a.md" …]', True), ('<attachment name="a.md">', False)):
        assert owes_search({"route": "agent", "attached": attached}, context) is owes


async def test_small_talk_needs_no_search():
    context, sink, requests = make_context(passages=[SHORT], decide=intent("greeting"), replies=[text("Hello!")])
    await drive(context)
    assert (sink.text, len(requests)) == ("Hello!", 1)


async def test_a_question_for_the_web_is_searched_there():
    context, sink, _ = make_context(
        switches=Switches(knowledge=False, web=True), decide=intent("web_search"), bases=(),
        replies=[text("Rain."), text("12 EUR [[c1]].")],
    )  # fmt: skip
    state = await drive(context)
    assert called(state) == ["web_search"]
    assert sink.text == "12 EUR [[c1]]."
    [source] = context.record.sources.all()
    assert (source.kind, source.url, source.document) == ("web", "https://pumps.example/prices", "Pumps")


async def test_rounds_that_bring_nothing_new_end_in_an_answer():
    searches = [calling(call("doc_retrieval", {"query": f"leave {n}"}, f"k{n}")) for n in range(9)]
    context, sink, requests = make_context(passages=[SHORT], replies=[*searches[:4], text("Six weeks [[c1]].")])
    await drive(context)
    assert len(requests) == 5  # the first brought something, three more did not
    assert requests[-1].tool_choice == "none"
    assert sink.text == "Six weeks [[c1]]."


@pytest.mark.parametrize(
    "budget", [Budget(rounds=1), Budget(calls=1), Budget(wall_s=0.0), Budget(tokens=10), Budget(prompt_tokens=1)]
)
async def test_each_budget_ends_in_an_answer(budget):
    context, sink, requests = make_context(
        passages=[SHORT], budget=budget, replies=[calling(SEARCH), text("Six weeks [[c1]].")]
    )
    if budget.wall_s == 0.0 or budget.prompt_tokens == 1:
        context, sink, requests = make_context(passages=[SHORT], budget=budget, replies=[text("I could not look.")])
    await drive(context)
    assert requests[-1].tool_choice == "none"
    assert sink.text


async def test_a_search_that_finds_only_later_is_answered(monkeypatch):
    found = iter([SearchResult((), empty_reason="no_match"), SearchResult((SHORT,), empty_reason="")])

    async def search(query, top_k):
        return next(found)

    again = call("doc_retrieval", {"query": "sickness"}, "k9")
    context, sink, _ = make_context(
        passages=[SHORT], search=search, replies=[calling(SEARCH), calling(again), text("Six weeks [[c1]].")]
    )
    await drive(context)
    assert sink.text == "Six weeks [[c1]]."
