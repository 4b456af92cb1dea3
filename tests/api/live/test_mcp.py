"""The MCP server, by the official client: over HTTP with a key, and as a command."""

import json
import os
import sys
from contextlib import asynccontextmanager

import httpx
import httpx2
import pytest
from django.core.files.base import ContentFile
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.conversations import scripted
from tests.knowledge.conftest import embedder  # noqa: F401


@asynccontextmanager
async def client(address, secret):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http)) as opened,
    ):
        yield opened


@pytest.fixture
def handbook(people, embedder):  # noqa: F811
    """A base of acme with one document in it."""
    from apps.knowledge import services

    base = services.create_knowledge_base(workspace=people.acme, name="Handbook", actor=people.ann)
    text = "# Travel\n\nEconomy class is booked for flights under six hours.\n"
    document = services.add_document(
        knowledge_base=base, file=ContentFile(text.encode()), name="travel.md", actor=people.ann
    )
    services.ingest_document(document.pk)
    yield base
    services.delete_knowledge_base(knowledge_base=base, actor=people.ann)


async def test_search_read_and_ask(address, secret, handbook):
    async with client(address, secret) as mcp:
        tools = (await mcp.list_tools()).tools
        assert [tool.name for tool in tools] == ["list_knowledge_bases", "search", "read", "ask"]
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
        bases = (await mcp.call_tool("list_knowledge_bases", {})).structured_content["knowledge_bases"]
        assert [base["name"] for base in bases] == ["Handbook"]
        found = await mcp.call_tool("search", {"query": "Which class on short flights?"})
        assert "Economy class" in found.content[0].text
        hit = found.structured_content["passages"][0]
        read = await mcp.call_tool("read", {"document_id": hit["document_id"]})
        assert "six hours" in read.content[0].text
        told = await mcp.call_tool("ask", {"question": "cite"})
        assert told.structured_content["answer"] == scripted.ANSWER
        assert "Sources:\n[[c1]] Travel policy.pdf, page 9" in told.content[0].text
        more = await mcp.call_tool(
            "ask", {"question": "say 2", "conversation": told.structured_content["conversation"]}
        )
        assert more.structured_content["conversation"] == told.structured_content["conversation"]


async def test_what_is_not_theirs_is_not_there(address, people, handbook):
    from apps.common.database import in_db
    from apps.knowledge.models import Document
    from apps.workspaces.services import create_api_key

    theirs = await in_db(lambda: people.mal.workspaces.get())
    scopes = ["knowledge:read", "conversations:write"]
    _key, secret = await in_db(create_api_key, workspace=theirs, name="k", scopes=scopes, actor=people.mal)
    document = await in_db(lambda: str(Document.objects.get(knowledge_base=handbook).pk))
    async with client(address, secret) as mcp:
        assert (await mcp.call_tool("list_knowledge_bases", {})).structured_content == {"knowledge_bases": []}
        for tool, arguments in [
            ("search", {"query": "class", "knowledge_bases": [str(handbook.pk)]}),
            ("read", {"document_id": document}),
            ("ask", {"question": "x", "knowledge_bases": [str(handbook.pk)]}),
            ("ask", {"question": "x", "conversation": document}),
        ]:
            refused = await mcp.call_tool(tool, arguments)
            assert refused.is_error, tool
            assert refused.structured_content["code"] == "not_found"
        everywhere = await mcp.call_tool("search", {"query": "Economy class"})
        assert "Economy" not in everywhere.content[0].text.replace("'Economy class'", "")
        wrong = await mcp.call_tool("search", {"query": ""})
        assert wrong.structured_content["code"] == "invalid_input"
    _key, narrow = await in_db(create_api_key, workspace=theirs, name="k", scopes=["knowledge:read"], actor=people.mal)
    async with client(address, narrow) as mcp:
        assert "ask" not in [tool.name for tool in (await mcp.list_tools()).tools]
        assert (await mcp.call_tool("ask", {"question": "x"})).structured_content["code"] == "scope_missing"


def test_without_a_key_there_is_nothing(address):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for headers in ({}, {"Authorization": "Bearer ks_no"}, {"Authorization": "Basic eA=="}):
        answer = httpx.post(f"{address}/mcp", json=body, headers=headers)
        assert (answer.status_code, set(answer.json())) == (401, {"code", "message", "retryable", "details"})
    assert httpx.get(f"{address}/mcp").status_code == 405


async def test_as_a_command_on_this_machine(people, tmp_path):
    from django.db import connection

    database = connection.settings_dict
    url = f"postgresql://postgres@/{database['NAME']}?host={database['OPTIONS'].get('host') or database['HOST']}"
    command = StdioServerParameters(
        command=sys.executable,
        args=["manage.py", "mcp", "--workspace", people.acme.slug, "--as", people.bea.email],
        env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "knowsphere.settings"},
    )
    async with Client(command) as mcp:
        names = [tool.name for tool in (await mcp.list_tools()).tools]
        assert names[0] == "list_knowledge_bases"
        found = await mcp.call_tool("list_knowledge_bases", {})
        assert json.dumps(found.structured_content)
