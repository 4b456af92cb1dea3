"""A text of tenant A is in nothing that a full run as tenant B receives: requests to models, events, answers, pages.

And a right that is withdrawn counts no more at the next step, whichever kind of right it was.
"""

import json

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.knowledge.models import Chunk, Document, Folder
from apps.workspaces import services
from apps.workspaces.models import Role
from apps.workspaces.services import Subject
from tests.agents.test_run_turn import Talk, pools  # noqa: F401
from tests.conftest import person
from tests.retrieval.conftest import _embedding_model, add_passages, make_base  # noqa: F401
from tests.vendor import Reply, call

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "zebrafinch-7731"
TEXT = f"The {CANARY} gets 42 days of leave."


@pytest.fixture
def theirs(acme, make_base, add_passages):  # noqa: F811
    """A document of tenant A, in a base open to all of A."""
    document, passages = add_passages(make_base(acme, "Open"), (TEXT, [TEXT]), name="plan.md")
    return document, passages[0]


@pytest.fixture
def every_call(theirs):
    """Tool calls that ask for what is A's by words, by pattern and by id."""
    document, passage = theirs
    return [
        call("doc_retrieval", {"query": "days of leave"}, "k1"),
        call("grep_chunks", {"pattern": "zebra[f]inch"}, "k2"),
        call("list_chunks", {"ids": [str(passage.pk)]}, "k3"),
        call("list_chunks", {"document": str(document.pk)}, "k4"),
        call("get_document_info", {"documents": [str(document.pk)]}, "k5"),
        call("get_document_info", {}, "k6"),
    ]


@pytest.fixture
def own(mal, make_base, add_passages):  # noqa: F811
    """The workspace of tenant B, with a document of its own."""
    workspace = mal.workspaces.get()
    add_passages(make_base(workspace, "Own"), "Here it is ten days of leave.", name="own.md")
    return workspace


async def test_nothing_of_one_tenant_reaches_another(own, theirs, every_call, mal, scripted_model, vendor):
    workspace = own
    talk = Talk(mal, workspace)
    vendor.script([Reply(tool_calls=every_call), Reply(tool_calls=every_call[:2]), Reply("Nothing [[c1]].")])
    outcome = await talk.ask("How long is annual leave?")
    received = [request.raw.decode(errors="replace") for request in vendor.requests]
    received += [outcome.text, json.dumps(talk.sink.events, default=str), str(outcome.sources)]
    received.append(str(await talk.state()))
    everything = "\n".join(received)
    assert "ten days of leave" in everything  # what is B's own is there
    assert "wrong arguments" not in everything  # each call was one that the tool carries out
    assert CANARY not in everything
    assert "42 days" not in everything
    assert "plan.md" not in everything
    assert {source.document for source in outcome.sources} == {"own.md"}


def test_no_page_shows_a_text_of_another_tenant(theirs, mal, ann, client):
    document, passage = theirs
    workspace = mal.workspaces.get()
    talk = Conversation.objects.create(workspace=document.workspace, owner=ann)
    turn = Turn.objects.create(conversation=talk, number=1, client_id="x", status="succeeded", question=CANARY)
    answer = Message.objects.create(conversation=talk, turn=turn, role="assistant", text=TEXT)
    cited = Citation.objects.create(message=answer, n=1, document="plan.md", document_id=document.pk, text=TEXT)
    client.force_login(mal)
    for slug in ("acme", workspace.slug):
        for route, given in (
            ("knowledge:show-document", [document.pk]),
            ("knowledge:download-original", [document.pk]),
            ("knowledge:show-knowledge-base", [document.knowledge_base_id]),
            ("knowledge:list-knowledge-bases", []),
            ("conversations:show-conversation", [talk.pk]),
            ("conversations:show-turn", [turn.pk]),
            ("conversations:show-source", [turn.pk, 1]),
            ("conversations:show-citation", [cited.pk]),
            ("workspaces:show-sharing", ["document", document.pk]),
            ("workspaces:show-audit-log", []),
            ("workspaces:list-members", []),
        ):
            page = client.get(reverse(route, args=[slug, *given]), {"q": "zebrafinch", "chunk": str(passage.pk)})
            page = page.content.decode()
            assert CANARY not in page
            assert "plan.md" not in page


@pytest.fixture
def reader(acme, ann, theirs):
    """A member who reads the canary's base by their department."""
    user = person("max@example.com")
    services.set_membership(workspace=acme, user=user, role=Role.MEMBER)
    top = services.create_department(workspace=acme, name="Top", actor=ann)
    group = services.create_department(workspace=acme, name="Group", parent=top, actor=ann)
    services.set_department_members(department=group, user_ids=[user.pk], actor=ann)
    base = theirs[0].knowledge_base
    services.set_restricted(row=base, restricted=True, actor=ann)
    services.share(row=base, subject=Subject(department=top), level="read", actor=ann)
    return user, group


def leave_the_department(document, group, ann):
    services.set_department_members(department=group, user_ids=[], actor=ann)


def move_the_department(document, group, ann):
    services.move_department(department=group, parent=None, actor=ann)


def restrict_the_folder(document, group, ann):
    folder = Folder(workspace=document.workspace, knowledge_base=document.knowledge_base, name="F", restricted=True)
    folder.lineage = [folder.pk]
    folder.save()
    Document.objects.filter(pk=document.pk).update(folder=folder)


def restrict_the_document(document, group, ann):
    services.set_restricted(row=document, restricted=True, actor=ann)


@pytest.mark.parametrize(
    "withdraw", [leave_the_department, move_the_department, restrict_the_folder, restrict_the_document]
)
async def test_a_right_withdrawn_in_the_middle_counts_at_the_next_step(
    withdraw, theirs, reader, acme, ann, scripted_model, vendor
):
    document, passage = theirs
    user, group = reader
    talk = Talk(user, acme)

    vendor.script([Reply(tool_calls=[call("doc_retrieval", {"query": "days of leave"}, "k1")]), Reply("Found [[c1]].")])
    await talk.ask("How long is annual leave?")
    assert CANARY in vendor.requests[-1].raw.decode()
    await sync_to_async(withdraw)(document, group, ann)
    vendor.requests.clear()
    again = call("list_chunks", {"ids": [str(passage.pk)]}, "k2")
    vendor.script([Reply(tool_calls=[again]), Reply("No more.")])
    outcome = await talk.ask("Read it again.")
    assert all(CANARY not in request.raw.decode() for request in vendor.requests)
    assert CANARY not in outcome.text
    assert not await sync_to_async(Chunk.objects.visible_to(user).exists)()
