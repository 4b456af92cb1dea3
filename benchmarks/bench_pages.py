"""What a page costs the server, in CPU, against 30 ms: each with the sample guide and its lists full.

Rendered by Django's own client in one thread, so the figure has views, templates, queries as the process sees
them (PostgreSQL's own time is not in it), and none of the network.
"""

import asyncio
import statistics
import time

from benchmarks.report import Ratio
from benchmarks.search_world import scratch_database

LIMIT_MS = 30.0
TIMES = 30
PAGES = (
    "conversations:new-question",
    "conversations:list-conversations",
    "conversations:jump",
    "knowledge:list-knowledge-bases",
    "agents:list-agents",
    "memory:list-items",
    "models:list-models",
    "models:show-usage",
    "workspaces:list-members",
    "workspaces:show-audit-log",
    "workspaces:show-limits",
    "evals:list-datasets",
    "widgets:list-widgets",
    "knowledge:search-documents",
)
A_LIST = 50  # rows; no page of a list shows more


def run() -> list[Ratio]:
    """Measure and return the ratio of each page."""
    with scratch_database("bench_pages"):
        return [Ratio(f"page {name}", ms, LIMIT_MS, "ms CPU", 1.0) for name, ms in measure().items()]


def measure() -> dict[str, float]:
    """Return name → median CPU of a page in milliseconds."""
    from django.conf import settings
    from django.test import Client
    from django.urls import reverse

    from apps.conversations.services import start_conversation
    from apps.knowledge.services.sample import create_sample_base
    from apps.workspaces.models import Role, User
    from apps.workspaces.services import create_workspace, set_membership
    from knowsphere.asgi import Collector

    asyncio.run(Collector().start())  # as it is set in the server's process
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    person = User.objects.create_user("pages@example.com")
    workspace = create_workspace(name="Pages", owner=person)
    base = create_sample_base(workspace=workspace, actor=person)
    talks = [start_conversation(workspace=workspace, actor=person) for _ in range(A_LIST)]
    for number in range(A_LIST):
        other = User.objects.create_user(f"member-{number}@example.com", name=f"Member {number}")
        set_membership(workspace=workspace, user=other, role=Role.MEMBER)
    document = base.documents.first()
    addresses = {name: reverse(name, args=[workspace.slug]) for name in PAGES}
    addresses["workspaces:show-account"] = reverse("workspaces:show-account")
    addresses["knowledge:show-knowledge-base"] = reverse(
        "knowledge:show-knowledge-base", args=[workspace.slug, base.pk]
    )
    for name, row in (("knowledge:show-document", document), ("conversations:show-conversation", talks[0])):
        assert row is not None
        addresses[name] = reverse(name, args=[workspace.slug, row.pk])
    client = Client()
    client.force_login(person)
    return {name: _median(client, address) for name, address in addresses.items()}


def _median(client: object, address: str) -> float:
    spent = []
    for _ in range(TIMES):
        began = time.thread_time()
        answer = client.get(address)  # type: ignore[attr-defined]
        spent.append(1000 * (time.thread_time() - began))
        assert answer.status_code == 200, address
    return statistics.median(spent[5:])
