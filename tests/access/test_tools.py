"""Every tool of an agent, and of the MCP server, by each persona: a tool shows what its asker may read, no more.

The document stands in a restricted base of acme that is shared with member (by name) and department (by theirs).
``READS`` is what each tool is called with to reach it; a tool without a row fails until someone decides.
"""

from typing import NamedTuple
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from apps.agents.tools.catalog import TOOLS
from apps.interop import mcp_tools
from apps.workspaces import services
from apps.workspaces.models import Role, User
from apps.workspaces.principals import NOBODY, Principal
from tests.agents.test_run_turn import Talk, pools  # noqa: F401 (autouse)
from tests.conftest import person
from tests.retrieval.conftest import _embedding_model, add_passages, make_base  # noqa: F401
from tests.vendor import Reply, call

CANARY = "zebrafinch-7731"
TEXT = f"The {CANARY} gets 42 days of leave."
READERS = {"member", "department", "admin", "owner", "key"}
READS = {
    "doc_retrieval": lambda document, passage: {"query": "days of leave"},
    "grep_chunks": lambda document, passage: {"pattern": "zebra[f]inch"},
    "list_chunks": lambda document, passage: {"ids": [str(passage.pk)]},
    "get_document_info": lambda document, passage: {"documents": [str(document.pk)]},
}
REACH_NO_DOCUMENT = {"web_fetch", "web_search", "write_plan"}
BY_CONVERSATION = {"get_stored_data"}  # what a turn of one's own put away: tests/agents/test_withdrawn.py
MCP = {
    "list_knowledge_bases": "knowledge:read",
    "search": "knowledge:read",
    "read": "knowledge:read",
    "ask": "conversations:write",
}


class Place(NamedTuple):
    document: object
    passage: object
    personas: dict  # name -> whom the doors are asked for


def test_every_tool_has_a_row():
    assert set(TOOLS) == set(READS) | REACH_NO_DOCUMENT | BY_CONVERSATION
    assert {name: tool.scope for name, tool in mcp_tools.TOOLS.items()} == MCP


def test_tools_that_reach_documents_say_so():
    assert {name for name in TOOLS if TOOLS.get(name).needs_knowledge} == set(READS)


@pytest.fixture
def place(acme, ann, bea, mal, make_base, add_passages):  # noqa: F811
    base = make_base(acme, "Shut")
    document, (passage,) = add_passages(base, (TEXT, [TEXT]), name=f"{CANARY}.md")
    services.set_restricted(row=base, restricted=True, actor=ann)
    people = {name: person(f"{name}@example.com") for name in ("member", "department", "admin", "operator")}
    User.objects.filter(pk=people["operator"].pk).update(is_staff=True, is_superuser=True)
    for name, role in (("member", Role.MEMBER), ("department", Role.VIEWER), ("admin", Role.ADMIN)):
        services.set_membership(workspace=acme, user=people[name], role=role)
    group = services.create_department(workspace=acme, name="Group", actor=ann)
    services.set_department_members(department=group, user_ids=[people["department"].pk], actor=ann)
    for subject in (services.Subject(department=group), services.Subject(user=people["member"])):
        services.share(row=base, subject=subject, level="read", actor=ann)
    scopes = ["knowledge:read", "conversations:write", "agents:read", "models:read"]
    key, _secret = services.create_api_key(workspace=acme, name="k", scopes=scopes, actor=ann)
    deaf, _secret = services.create_api_key(
        workspace=acme, name="d", scopes=["conversations:write", "agents:read", "models:read"], actor=ann
    )
    who = {name: user.principal for name, user in people.items()}
    who |= {"viewer": bea.principal, "owner": ann.principal, "other": mal.principal, "nobody": NOBODY}
    who |= {"key": key.principal, "key without the scope": deaf.principal}
    who["widget"] = Principal.widget(widget_id=uuid4(), workspace_id=acme.pk, visitor_id=uuid4())
    return Place(document, passage, who)


@pytest.mark.django_db(transaction=True)
async def test_a_tool_shows_what_its_asker_may_read(place, acme, scripted_model, vendor):
    calls = [call(name, given(place.document, place.passage), f"k-{name}") for name, given in READS.items()]
    wrong = []
    for persona, who in place.personas.items():
        vendor.requests.clear()
        vendor.script([Reply(tool_calls=calls), Reply("Done."), Reply("Done.")])
        talk = Talk(who, acme)
        outcome = await talk.ask("How long is leave?")
        told = [
            name
            for name in READS
            for request in vendor.requests[-1:]
            for message in request.messages
            if message.get("tool_call_id") == f"k-{name}" and CANARY in message["content"]
        ]
        if set(told) != (set(READS) if persona in READERS else set()):
            said = {m["tool_call_id"]: m["content"] for m in vendor.requests[-1].messages if m["role"] == "tool"}
            wrong.append((persona, told, outcome.status, outcome.error, said))
        if persona not in READERS and CANARY in str((outcome.text, outcome.sources, talk.sink.events)):
            wrong.append((persona, "events"))
    assert wrong == []


@pytest.mark.django_db(transaction=True)
async def test_a_tool_of_the_mcp_server_shows_what_its_caller_may_read(place, acme):
    wrong = []
    for persona, who in place.personas.items():
        caller = mcp_tools.Caller(who, acme.pk)
        said = []
        for name, arguments in (
            ("list_knowledge_bases", mcp_tools.Nothing()),
            ("search", mcp_tools.Search(query="days of leave")),
            ("read", mcp_tools.Read(document_id=place.document.pk)),
        ):
            try:
                found = await mcp_tools.TOOLS[name].run(caller, arguments)
            except Exception as error:  # a shut door
                said.append(getattr(error, "code", type(error).__name__))
            else:
                said.append("Shut" in found.text or CANARY in found.text)
        if said != ([True, True, True] if persona in READERS else [False, False, "not_found"]):
            wrong.append((persona, said))
    await sync_to_async(lambda: None)()
    assert wrong == []
