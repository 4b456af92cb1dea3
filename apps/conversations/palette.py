"""What the command palette leads to: pages, bases, documents, agents and conversations, by a part of their name."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from apps.agents.models import Agent
from apps.conversations.models import Conversation
from apps.knowledge.capability import knowledge_capability_enabled
from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces.models import Role, User, Workspace

MOST = 6  # of each kind
LONGEST = 200  # characters of what is asked

# Route, icon, name: for everybody, where there are documents, and for those who run the workspace.
EVERYBODY = [
    ("conversations:new-question", "plus", gettext_lazy("New question")),
    ("conversations:list-conversations", "ask", gettext_lazy("All conversations")),
    ("agents:list-agents", "agent", gettext_lazy("Agents")),
    ("memory:list-items", "quote", gettext_lazy("Memory")),
    ("workspaces:list-members", "users", gettext_lazy("Members")),
    ("workspaces:list-departments", "users", gettext_lazy("Departments")),
    ("workspaces:list-api-keys", "key", gettext_lazy("API keys")),
    ("workspaces:show-limits", "gauge", gettext_lazy("Limits")),
]
OF_DOCUMENTS = [
    ("knowledge:search-documents", "search", gettext_lazy("Search")),
    ("knowledge:list-knowledge-bases", "library", gettext_lazy("Knowledge")),
    ("knowledge:try-search", "filter", gettext_lazy("Search test")),
    ("knowledge:list-synonyms", "quote", gettext_lazy("Synonyms")),
]
OF_RUNNING = [
    ("widgets:list-widgets", "bolt", gettext_lazy("Widgets")),
    ("models:list-models", "cpu", gettext_lazy("Models")),
    ("models:show-usage", "chart", gettext_lazy("Usage")),
    ("workspaces:show-audit-log", "clock", gettext_lazy("Audit log")),
    ("workspaces:show-settings", "users", gettext_lazy("Settings")),
]


@dataclass(frozen=True, slots=True)
class Place:
    """Something to jump to; ``near`` says where it is, where its name alone does not."""

    name: str
    icon: str
    address: str
    near: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Places of one kind."""

    label: str
    places: list[Place]


def find(text: str, *, workspace: Workspace, user: User, role: Role) -> list[Group]:
    """Return what has ``text`` in its name and ``user`` may see; without a text, what is used most."""
    text = text.strip()[:LONGEST]
    pages = Group(_("Pages of this workspace"), list(_pages(text, workspace.slug, role)))
    rows = _rows(text, workspace, user)
    return [group for group in ([*rows, pages] if text else [pages, *rows]) if group.places]


def _pages(text: str, slug: str, role: Role) -> Iterator[Place]:
    known = EVERYBODY + (OF_DOCUMENTS if knowledge_capability_enabled() else [])
    known = known + (OF_RUNNING if role in (Role.OWNER, Role.ADMIN) else [])
    for route, icon, name in known:
        if text.casefold() in f"{name}\n{_in_english(name)}".casefold():
            yield Place(str(name), icon, reverse(route, args=[slug]))
    account = gettext_lazy("Your account")
    if text.casefold() in f"{account}\n{_in_english(account)}".casefold():
        yield Place(str(account), "key", reverse("workspaces:show-account"))


def _in_english(name: str | Promise) -> str:
    """Return a page's English name too, since many type it whatever language the page is in."""
    with override("en"):
        return str(name)


def _rows(text: str, workspace: Workspace, user: User) -> list[Group]:
    """Ask each kind through its own door, one statement each."""

    def to(route: str, *given: Any) -> str:
        return reverse(route, args=[workspace.slug, *given])

    talks = Conversation.objects.visible_to(user).filter(workspace=workspace, archived_at__isnull=True)
    found = [
        Group(_("Conversations"), [
            Place(row.title or _("Untitled"), "ask", to("conversations:show-conversation", row.pk))
            for row in talks.filter(title__icontains=text).only("pk", "title").order_by("-changed_at")[:MOST]
        ])
    ]  # fmt: skip
    agents = Agent.objects.visible_to(user).filter(workspace=workspace, name__icontains=text)
    asked = reverse("conversations:new-question", args=[workspace.slug])
    found.append(Group(_("Agents"), [
        Place(row.name, "agent", f"{asked}?agent={row.pk}") for row in agents.order_by("name")[:MOST]
    ]))  # fmt: skip
    if not knowledge_capability_enabled():
        return found
    bases = KnowledgeBase.objects.visible_to(user).filter(workspace=workspace, name__icontains=text)
    found.insert(0, Group(_("Knowledge bases"), [
        Place(row.name, "library", to("knowledge:show-knowledge-base", row.pk)) for row in bases.order_by("name")[:MOST]
    ]))  # fmt: skip
    if text:
        documents = Document.objects.visible_to(user).filter(workspace=workspace, name__icontains=text)
        shown = documents.select_related("knowledge_base").order_by("-changed_at")[:MOST]
        found.insert(1, Group(_("Documents"), [
            Place(row.name, "file", to("knowledge:show-document", row.pk), row.knowledge_base.name) for row in shown
        ]))  # fmt: skip
    return found
