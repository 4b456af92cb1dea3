"""A right that is withdrawn while a turn runs counts at its next tool call: every tool, and what was put away."""

import asyncio
import threading
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from apps.agents.services import store_result
from apps.knowledge.services import delete_document
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
