"""A right that is withdrawn while a turn runs counts at its next tool call: every tool, and what was put away."""

import asyncio
import threading
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from apps.agents import runner
from apps.agents.handoff import Handoff, extended
from apps.agents.services import store_handoff, store_result
from apps.knowledge.services import delete_document
from apps.memory.models import ConversationNote
from apps.memory.services import store_note
from apps.workspaces import services
from apps.workspaces.models import Membership, User
from tests.agents.test_run_turn import Talk, pools  # noqa: F401 (autouse)
from tests.retrieval.conftest import _embedding_model, add_passages, make_base  # noqa: F401
from tests.rights.test_canary import (
    CANARY,
    TEXT,
    leave_the_department,
    move_the_department,
    reader,  # noqa: F401
    restrict_the_document,
    restrict_the_folder,
    theirs,  # noqa: F401
)
from tests.vendor import Reply, call

pytestmark = pytest.mark.django_db(transaction=True)


def unshare_the_base(document, group, ann):
    services.unshare(share=document.knowledge_base.shares.get(), actor=ann)


def leave_the_workspace(document, group, ann):
    Membership.objects.filter(user__email="max@example.com").delete()


def lock_the_person(document, group, ann):
    User.objects.filter(email="max@example.com").update(is_active=False)


def delete_the_document(document, group, ann):
    delete_document(document=document, actor=ann)


WAYS = (
    leave_the_department, move_the_department, restrict_the_folder, restrict_the_document, unshare_the_base,
    leave_the_workspace, lock_the_person, delete_the_document,
)  # fmt: skip


def put_away(talk, document, turn):
    """Store a large result of the conversation that was made from the document."""
    given = {"workspace": talk.workspace, "actor": talk.user, "conversation": talk.conversation, "turn": turn}
    row = store_result(**given, tool="list_chunks", text=TEXT, documents=[str(document.pk)], numbers=[1])
    return str(row.pk)


@pytest.mark.parametrize("withdraw", WAYS, ids=lambda way: way.__name__)
async def test_the_next_tool_call_finds_nothing(withdraw, theirs, reader, acme, ann, scripted_model, vendor):  # noqa: F811
    document, passage = theirs
    user, group = reader
    talk, go_on = Talk(user, acme), threading.Event()
    stored = await sync_to_async(put_away)(talk, document, uuid4())
    every = [
        call("doc_retrieval", {"query": "days of leave"}, "k1"),
        call("grep_chunks", {"pattern": "zebra[f]inch"}, "k2"),
        call("list_chunks", {"ids": [str(passage.pk)]}, "k3"),
        call("list_chunks", {"document": str(document.pk)}, "k4"),
        call("get_document_info", {"documents": [str(document.pk)]}, "k5"),
        call("get_stored_data", {"ref_id": stored}, "k6"),
    ]
    again = [{**one, "id": f"again-{one['id']}"} for one in every]
    vendor.script([Reply(tool_calls=every), Reply(tool_calls=again, hold=go_on), Reply("Done.")])
    turn = asyncio.create_task(talk.ask("How long is annual leave?"))
    try:
        assert await asyncio.to_thread(vendor.wait, results, 120)
        before = told(results(vendor)[0])
        await sync_to_async(withdraw)(document, group, ann)
    finally:
        go_on.set()
        outcome = await turn
    assert {name for name, text in before.items() if CANARY in text or "plan.md" in text} == {
        "k1", "k2", "k3", "k4", "k5", "k6",
    }  # fmt: skip
    after = {name: text for name, text in told(results(vendor)[-1]).items() if name.startswith("again-")}
    if outcome.status == "succeeded":
        assert set(after) == {one["id"] for one in again}
    assert not [name for name, text in after.items() if CANARY in text or "plan.md" in text]
    assert CANARY not in outcome.text


def told(request):
    return {one["tool_call_id"]: str(one["content"]) for one in request.messages if one["role"] == "tool"}


def results(vendor):
    """The requests that carry results of tools."""
    chats = (request for request in vendor.requests if "messages" in request.body)
    return [request for request in chats if any(one["role"] == "tool" for one in request.messages)]


def tell_of(talk, document):
    """Keep a note and a handoff of the conversation's first turn that were made from the document."""
    kept = {"workspace": talk.workspace, "actor": talk.user, "conversation": talk.conversation}
    turn = [{"role": "user", "content": "How long is leave?"}, {"role": "assistant", "content": TEXT}]
    handoff = extended(Handoff(), [turn], [str(talk.ids[0])], {"done": [TEXT]}, [str(document.pk)])
    assert store_handoff(**kept, handoff=handoff)
    store_note(**kept, text=f"About the {CANARY}", documents=[document.pk])


FEW = (leave_the_department, restrict_the_folder, unshare_the_base, delete_the_document)


@pytest.fixture
def talk(reader, acme, scripted_model):  # noqa: F811
    return Talk(reader[0], acme)


@pytest.mark.parametrize("withdraw", FEW, ids=lambda way: way.__name__)
async def test_what_was_kept_of_it_is_told_to_no_model_again(withdraw, theirs, reader, talk, ann, vendor):  # noqa: F811
    """Note, handoff, plan and earlier answers: from the moment on that the right is gone, while a turn runs."""
    document, go_on = theirs[0], threading.Event()
    search = call("doc_retrieval", {"query": "days of leave"}, "k1")
    plan = call("write_plan", {"steps": [{"title": f"Tell of the {CANARY}", "state": "running"}]}, "p1")
    vendor.otherwise = lambda request: Reply("It is about leave.")
    for _ in range(3):
        vendor.script([Reply(tool_calls=[search, plan]), Reply(f"{TEXT}[[c1]]"), Reply(f"{TEXT}[[c1]]")])
        await talk.ask("How long is annual leave?")
    await sync_to_async(tell_of)(talk, document)

    vendor.reset()
    vendor.otherwise = lambda request: Reply("It is about leave.")
    vendor.script([Reply("Hello.", hold=go_on)])
    turn = asyncio.create_task(talk.ask("And how is it over there?"))
    try:
        assert await asyncio.to_thread(vendor.wait, answering, 120)
        asked = "".join(str(one.messages) for one in vendor.requests)
        assert [f"{what} the {CANARY}" in asked for what in ("About", "Tell of")] == [True, True]
        assert "<handoff>" in asked
        await sync_to_async(withdraw)(document, reader[1], ann)
        vendor.requests.clear()
    finally:
        go_on.set()
        await turn
    await runner.settled()
    await talk.ask("And how is it over there?")
    await runner.settled()
    asked = [str(one.messages) for one in vendor.requests if "messages" in one.body]
    assert any("</note>" in one for one in asked)
    assert any("<handoff>" in one and "How long is leave?" in one for one in asked)  # their own words stay
    assert [one for one in asked if CANARY in one] == []
    assert CANARY not in (await ConversationNote.objects.aget()).text
    assert CANARY in str((await talk.state())["messages"])  # the state itself stays as it was


def answering(vendor):
    """The requests for an answer, which stream."""
    return [one for one in vendor.requests if one.body.get("stream")]


async def test_an_answer_read_back_from_rows_is_told_with_its_documents(theirs, reader, talk, ann, vendor):  # noqa: F811
    document, turn = theirs[0], str(uuid4())
    talk.rows = [
        {"role": "user", "content": "How long is leave?", "turn": turn, "documents": [str(document.pk)]},
        {"role": "assistant", "content": TEXT},
    ]
    vendor.otherwise = lambda request: Reply("Hello.")
    await talk.ask("And how is it over there?", number=2)
    assert CANARY in vendor.requests[-1].raw.decode()
    await sync_to_async(leave_the_department)(document, reader[1], ann)
    vendor.requests.clear()
    await talk.ask("And now?", number=3)
    assert vendor.requests
    assert CANARY not in "".join(one.raw.decode() for one in vendor.requests)
