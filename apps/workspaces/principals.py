"""Who asks: the one type that every door takes.

A Principal holds no rights. It names whose rights count and what narrows them; the doors read the
rights in SQL at the moment of use (``rights``). An API key is its person ∩ its scopes ∩ its
workspace, a widget is what was shared with it, a command is the person that ``--as`` names.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, Union
from uuid import UUID, uuid4

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from apps.workspaces.models.people import User

Kind = Literal["nobody", "person", "key", "widget", "command"]

# What a key may be limited to. "write" includes "read" of the same area.
SCOPES = {
    "knowledge:read": _("Search and read knowledge bases and documents"),
    "knowledge:write": _("Upload, change and delete documents and knowledge bases"),
    "conversations:read": _("Read your conversations"),
    "conversations:write": _("Ask questions and keep conversations"),
    "agents:read": _("See agents"),
    "agents:write": _("Create and change agents"),
    "models:read": _("See models"),
    "models:write": _("Add and change models"),
    "memory:read": _("Read what is remembered about you"),
    "memory:write": _("Change what is remembered about you"),
    "evaluations:read": _("Read data sets and results of evaluations"),
    "evaluations:write": _("Change data sets and run evaluations"),
    "workspace:read": _("See people, usage and the audit log, as far as your role allows"),
    "workspace:write": _("Manage people, departments and settings, as far as your role allows"),
}
OF_A_WIDGET = frozenset({"knowledge:read", "agents:read", "conversations:write"})


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, compared by value.

    ``workspace_id`` narrows to one workspace, ``scopes`` to areas (None: all); both never widen.
    ``visitor_id`` tells the visitors of one widget apart.
    """

    kind: Kind
    user_id: UUID | None = None
    workspace_id: UUID | None = None
    key_id: UUID | None = None
    widget_id: UUID | None = None
    visitor_id: UUID | None = None
    scopes: frozenset[str] | None = None

    @classmethod
    def person(cls, user_id: UUID) -> "Principal":
        """Return a person, in all their workspaces."""
        return cls("person", user_id=user_id)

    @classmethod
    def widget(cls, *, widget_id: UUID, workspace_id: UUID, visitor_id: UUID) -> "Principal":
        """Return a visitor of a widget: reads what was shared with the widget, and their own conversation."""
        return cls("widget", workspace_id=workspace_id, widget_id=widget_id, visitor_id=visitor_id, scopes=OF_A_WIDGET)

    @classmethod
    def of(cls, who: "Who | None") -> "Principal":
        """Return the Principal that a request's ``user``, or another Principal, stands for; None: a schedule."""
        if who is None:
            return NOBODY
        if isinstance(who, Principal):
            return who
        return who.principal if who.is_authenticated else NOBODY

    @property
    def is_authenticated(self) -> bool:
        """Whether anybody is there at all."""
        return self.kind != "nobody"

    @property
    def pk(self) -> UUID | None:
        """The person's id, as a user object has it."""
        return self.user_id

    @property
    def asker_id(self) -> UUID | None:
        """Whose turns and requests are counted together: the person's, or the visitor's."""
        return self.visitor_id or self.user_id

    def may(self, scope: str) -> bool:
        """Whether the scopes include this one. What the person may do is another question: the doors'."""
        if self.kind == "nobody":
            return False
        return self.scopes is None or bool({scope, scope.replace(":read", ":write")} & self.scopes)

    def stand_in(self) -> "Principal":
        """Return one of the same shape with ids that stand for any others: SQL compiled for it fits all of them."""
        fresh = {name: uuid4() for name in IDS if getattr(self, name) is not None}
        return replace(self, **fresh)  # type: ignore[arg-type]

    def shape(self) -> "Principal":
        """Return what the SQL of a door depends on besides ids."""
        return replace(self, **{name: ANY for name in IDS if getattr(self, name) is not None})  # type: ignore[arg-type]


Who: TypeAlias = Union["User", AnonymousUser, Principal]

IDS = ("user_id", "workspace_id", "key_id", "widget_id", "visitor_id")
ANY = UUID(int=0)
NOBODY = Principal("nobody")
