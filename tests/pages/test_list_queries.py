"""Lists of 1,000 rows run the queries of lists of 10, and at most eight; what each page runs stands in a file.

Every page and every address of the API that is read is visited, so a new one fails until somebody decides. What is
written into ``list_queries.json`` is all that a visit may run; to write it anew set ``WRITE_BASELINE=1``.
"""

import json
import os
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from tests.access.tables import EXPECTED
from tests.access.world import World
from tests.api.test_access import addresses
from tests.pages.filling import fill

pytestmark = pytest.mark.django_db

BASELINE = Path(__file__).parent / "list_queries.json"
MOST = 8
# of any page behind a session, of the test itself, and what pages know for half a minute
FRAME = ("django_session", "SAVEPOINT", "RELEASE", "workspaces_notice")
# Pages that list rows, as many as there are. Of the API these are the operations that answer in pages.
LISTS = {
    "agents:edit-agent",  # its versions, the bases and models to choose from
    "agents:list-agents",
    "conversations:jump",
    "conversations:list-agent-questions",
    "conversations:list-conversations",
    "evals:list-datasets",
    "evals:show-dataset",
    "knowledge:check-quality",
    "knowledge:list-chunks",
    "knowledge:list-fields",
    "knowledge:list-jobs",
    "knowledge:list-knowledge-bases",
    "knowledge:list-synonyms",
    "knowledge:search-documents",
    "knowledge:show-facts",
    "knowledge:show-knowledge-base",
    "knowledge:show-progress",
    "knowledge:tell-ends",
    "knowledge:try-search",
    "memory:list-items",
    "models:list-models",
    "widgets:list-transcripts",
    "widgets:list-widgets",
    "workspaces:edit-department",
    "workspaces:home",
    "workspaces:list-api-keys",
    "workspaces:list-departments",
    "workspaces:list-members",
    "workspaces:show-audit-log",
    "workspaces:show-limits",
    "workspaces:show-sharing",
}
# Pages of one thing, forms, files and reports: they run what their baseline says, whatever lies beside them.
OTHERS = {
    "agents:create-agent", "agents:show-version", "conversations:download-attachment",
    "conversations:export-conversation", "conversations:new-question", "conversations:show-citation",
    "conversations:show-conversation", "conversations:show-source", "conversations:show-turn", "healthz",
    "knowledge:configure-chunker", "knowledge:download-original", "knowledge:edit-questions", "knowledge:edit-text",
    "knowledge:export-questions", "knowledge:show-document", "knowledge:show-page", "knowledge:show-picture",
    "knowledge:write-questions", "knowledge:write-text", "models:export-usage", "models:find-ollama",
    "models:show-model", "models:show-usage", "readyz", "show-health", "show-shared", "widgets:show-transcript",
    "widgets:show-widget", "workspaces:export-audit-log", "workspaces:export-workspace", "workspaces:show-account",
    "workspaces:show-invitation", "workspaces:show-settings",
}  # fmt: skip
ONCE = {"conversations:suggest-questions"}  # asks a model, and keeps what it says
ASKS = {"usage", "export-audit-events"}  # addresses that must be told of which workspace


def operations():
    """Every address of the API that is read: its name, the names of its arguments, and whether it is a list."""
    found = {name: arguments for name, arguments, methods in addresses() if "GET" in methods}
    patterns = next(one for one in get_resolver().url_patterns if getattr(one, "namespace", "") == "api").url_patterns
    return {
        name: (arguments, one.callback.cls.operations["GET"].many)
        for one in patterns
        if (name := one.name) in found
        for arguments in [found[name]]
    }


def visits(world):
    """Every page and address that is read: what the baseline calls it, its path, and whether it is a list."""
    for route in sorted(LISTS | OTHERS):
        yield route, world.path(route), route in LISTS
    for name, (arguments, many) in operations().items():
        path = reverse(f"api:{name}", kwargs={one: getattr(world.things, one) for one in arguments})
        yield f"api:{name}", f"{path}?workspace={world.acme.pk}" if name in ASKS else path, many


def statements(client, path):
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
    assert answer.status_code < 400 or answer.status_code == 404, (path, answer.status_code)
    return [query["sql"] for query in queries if not any(word in query["sql"] for word in FRAME)]


def test_every_page_is_a_list_or_is_not():
    assert LISTS.isdisjoint(OTHERS)
    assert {route for method, route in EXPECTED if method == "get"} == LISTS | OTHERS | ONCE


def test_lists_cost_the_same_however_long_they_are(client, acme, ann, bea, mal, handbook):
    world = World(acme, ann, bea, mal, handbook)
    client.force_login(ann)
    counts, wrong = [], []
    for rows in (10, 990):
        fill(world, rows)
        counts.append({})
        for name, path, is_list in visits(world):
            ran = statements(client, path)
            counts[-1][name] = len(ran)
            if is_list and len(ran) > MOST:
                wrong.append((name, rows, "\n".join(sql[:160] for sql in ran)))
    few, many = counts
    wrong += [(name, "grows", few[name], many[name]) for name in few if few[name] != many[name]]
    if os.environ.get("WRITE_BASELINE"):
        BASELINE.write_text(json.dumps(many, indent=1) + "\n")
    known = json.loads(BASELINE.read_text())
    wrong += [
        (name, "baseline", known.get(name), many.get(name))
        for name in known | many
        if known.get(name) != many.get(name)
    ]
    assert wrong == []
