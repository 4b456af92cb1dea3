"""What an earlier turn read and the asker may not read any more does not reach a model again."""

import pytest
from asgiref.sync import sync_to_async

from apps.knowledge.services import delete_document
from apps.workspaces.models import Membership, Role
from apps.workspaces.services import set_membership
from tests.agents.test_run_turn import Talk, pools  # noqa: F401
from tests.conftest import person
from tests.retrieval.conftest import _embedding_model, add_passages, make_base  # noqa: F401
from tests.vendor import Reply, call

pytestmark = pytest.mark.django_db(transaction=True)

SEARCH = call("doc_retrieval", {"query": "canary leave"}, "same-id")
CANARY = "The canary gets 42 days of leave."


@pytest.fixture
def world(acme, handbook, request, scripted_model):
    """A member of acme who talks, and a document in a base that is open to them."""
    base = request.getfixturevalue("make_base")(acme, "Open")
    document, _ = request.getfixturevalue("add_passages")(base, (CANARY, [CANARY]))
    max_ = person("max@example.com")
    set_membership(workspace=acme, user=max_, role=Role.MEMBER)
    return Talk(max_, acme), base, document


def sent(vendor):
    return vendor.requests[-1].raw.decode()


async def test_history_keeps_what_may_still_be_read(world, vendor):
    talk, _, _ = world
    vendor.script([Reply(tool_calls=[SEARCH]), Reply("See [[c1]]."), Reply("As I said.")])
    await talk.ask("How long is annual leave?")
    await talk.ask("And again?")
    assert CANARY in sent(vendor)


@pytest.mark.parametrize("how", ["deleted", "restricted", "viewer of nothing"])
async def test_history_hides_what_was_withdrawn(world, vendor, ann, how):
    talk, base, document = world
    vendor.script([Reply(tool_calls=[SEARCH]), Reply("See [[c1]].")])
    await talk.ask("How long is annual leave?")
    assert CANARY in sent(vendor)
    if how == "deleted":
        await sync_to_async(delete_document)(document=document, actor=ann)
    else:
        base.restricted = True
        await base.asave()
        if how != "restricted":
            await Membership.objects.filter(user=talk.user).aupdate(role=Role.VIEWER)
    # The vendor gives the same call id again: this turn's own result is not the earlier one's.
    vendor.script([Reply(tool_calls=[SEARCH]), Reply("Nothing.")])
    await talk.ask("And again?")
    said = [str(message["content"]) for message in vendor.requests[-1].messages]
    assert [text.startswith("[not available any more") for text in said].count(True) == 1
    assert said[1] == "How long is annual leave?"
    assert [message["role"] for message in vendor.requests[-1].messages].count("tool") == 1
    assert CANARY not in sent(vendor)
    assert CANARY in str((await talk.state())["messages"])  # the state itself stays as it was
