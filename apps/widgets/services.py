"""Writes to widgets, and what visitors do."""

import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac

from apps.agents.models import Agent
from apps.common.fields import Secret
from apps.common.text import storable
from apps.conversations.models import Conversation, Turn
from apps.knowledge.models import KnowledgeBase
from apps.widgets import errors, origins, tokens
from apps.widgets.models import Use, Visitor, Widget, new_public_id
from apps.widgets.querysets import transcripts
from apps.workspaces import audit, permissions
from apps.workspaces.models import User, Workspace
from apps.workspaces.principals import Principal
from apps.workspaces.services import Subject, share, unshare
from apps.workspaces.services.sharing import forget_widget, share_model

READS_A_QUESTION = 20  # openings, changes of page and excerpts that a person may need to each question
LEAST_READS = 300  # an hour, however few questions may be asked
KEPT = timedelta(days=2)  # how long counts of past windows stay


def is_widget(workspace: Workspace, widget_id: UUID) -> bool:
    """Return whether a widget is of the workspace."""
    return Widget.objects.filter(workspace=workspace, pk=widget_id).exists()


@transaction.atomic
def create_widget(*, workspace: Workspace, actor: User, name: str, **values: Any) -> Widget:
    """Create a widget; it may stand on no site yet unless ``origins`` are given.

    Raises:
        NotFound, NotAllowed: the actor does not own or administer the workspace.
    """
    permissions.require("manage_widgets", actor=actor, workspace=workspace)
    widget = Widget.objects.create(workspace=workspace, created_by=actor, name=name, **values)
    _record("widget.made", widget, actor)
    return widget


@transaction.atomic
def change_widget(*, widget: Widget, actor: User, action: str = "widget.changed", **values: Any) -> None:
    """Change settings of a widget that came through ``editable_by``; sites and limits count from now on."""
    for field, value in values.items():
        setattr(widget, field, value)
    widget.save(update_fields=[*values, "changed_at"])
    _record(action, widget, actor, fields=sorted(values))


def _record(action: str, widget: Widget, actor: User, **details: Any) -> None:
    audit.record(action, who=actor, workspace_id=widget.workspace_id, target=widget, name=widget.name, **details)


@transaction.atomic
def set_reach(*, widget: Widget, agent: Agent | None, bases: Iterable[KnowledgeBase], actor: User) -> None:
    """Let a widget ask ``agent`` and read ``bases`` and nothing else; all came through the actor's ``editable_by``.

    What others shared with the widget and the actor may not manage stays.
    """
    change_widget(widget=widget, actor=actor, agent=agent)
    subject = Subject(widget_id=widget.pk)
    for kind, rows in ((Agent, [agent] if agent else []), (KnowledgeBase, list(bases))):
        wanted: Sequence[Any] = rows
        kept = {row.pk for row in wanted}
        editable = kind.objects.editable_by(actor).filter(workspace_id=widget.workspace_id)
        for old in share_model(kind).objects.filter(widget_id=widget.pk, content_object__in=editable):
            if old.content_object_id not in kept:
                unshare(share=old, actor=actor)
        for row in wanted:
            share(row=row, subject=subject, level="read", actor=actor)


def renew_public_id(*, widget: Widget, actor: User) -> None:
    """Give the widget another name on other sites: the old snippet and its visitors' sessions end."""
    change_widget(widget=widget, actor=actor, action="widget.renewed", public_id=new_public_id())


def renew_identity_secret(*, widget: Widget, actor: User) -> str:
    """Make the secret with which a site signs who its visitors are; returned once."""
    secret = secrets.token_urlsafe(32)
    change_widget(widget=widget, actor=actor, action="widget.secret_made", identity_secret=Secret(secret))
    return secret


@transaction.atomic
def delete_widget(*, widget: Widget, actor: User) -> None:
    """Delete a widget with its visitors; their conversations are hidden at once and erased soon."""
    _record("widget.deleted", widget, actor)
    hidden = transcripts(widget)
    Turn.objects.filter(conversation__in=hidden, status__in=Turn.ACTIVE).update(stop_requested=True)
    Conversation.objects.filter(widget_id=widget.pk).update(deleted_at=timezone.now())
    forget_widget(widget_id=widget.pk)
    widget.delete()


# Visitors


def find_published(public_id: str) -> Widget:
    """Return the widget that pages name so. Raises WidgetNotFound."""
    found = Widget.objects.published(storable(public_id)).select_related("agent", "workspace").first()
    if found is None or found.public_id != public_id:
        raise errors.WidgetNotFound
    return found


def admit_origin(widget: Widget, origin: str, *, preview: bool = False) -> str:
    """Return the origin as it is compared. Raises OriginNotAllowed."""
    if not origins.allows([*widget.origins, *([own_origin()] if preview else [])], origin):
        raise errors.OriginNotAllowed
    return origins.normalise(origin)


def own_origin() -> str:
    """Return this product's own origin."""
    return origins.normalise("/".join(settings.SITE_URL.split("/")[:3]))


@transaction.atomic
def open_session(*, widget: Widget, ticket: str, token: str = "", address: str = "") -> tuple[Visitor, str]:
    """Exchange a ticket for a visitor's session; ``token``, of an earlier one, makes it the same visitor.

    Raises:
        VisitorExpired: the ticket is none, or too old.
        OriginNotAllowed: the site was taken off the list meanwhile.
        TooManyQuestions: the address opens more sessions than a person would.
    """
    said = tokens.read_ticket(widget, ticket)
    admit_origin(widget, said["o"], preview=said["p"])
    visitor = _earlier(widget, token, said)
    if visitor is None:
        count(widget, f"sessions:{_of(address)}", most=max(60, widget.per_address_hour), window="hour")
        visitor = Visitor.objects.create(widget=widget, origin=said["o"], preview=said["p"], identity=said["i"] or None)
    elif said["i"] and visitor.identity != said["i"]:
        visitor.identity = said["i"]
        visitor.save(update_fields=["identity", "seen_at"])
    return visitor, tokens.make_session(visitor)


def _earlier(widget: Widget, token: str, said: dict[str, Any]) -> Visitor | None:
    """Return the visitor of an earlier session from the same site, unless somebody else, or nobody, signed in."""
    try:
        session = tokens.read_session(widget.pk, token, ended=True)
    except errors.VisitorExpired:
        return None
    found = Visitor.objects.filter(pk=session.visitor_id, widget=widget, origin=said["o"]).first()
    if found and found.identity and found.identity.get("id") != (said["i"] or {}).get("id"):
        return None
    return found


def admit_visitor(public_id: str, token: str) -> tuple[Widget, Visitor, Principal]:
    """Return whose session a token is, and on whose behalf it may read.

    Raises:
        WidgetNotFound, VisitorExpired, OriginNotAllowed: it ended, or its site may not ask any more.
    """
    widget = find_published(public_id)
    session = tokens.read_session(widget.pk, token)
    visitor = Visitor.objects.filter(pk=session.visitor_id, widget=widget).first()
    if visitor is None:
        raise errors.VisitorExpired
    admit_origin(widget, visitor.origin, preview=visitor.preview)
    return widget, visitor, principal_of(widget, visitor)


def principal_of(widget: Widget, visitor: Visitor) -> Principal:
    """Return the visitor as every door takes them."""
    return Principal.widget(widget_id=widget.pk, workspace_id=widget.workspace_id, visitor_id=visitor.pk)


def conversation_of(widget: Widget, visitor: Visitor) -> Conversation:
    """Return the visitor's newest conversation with the widget's agent, or begin one."""
    mine = Conversation.objects.visible_to(principal_of(widget, visitor)).filter(agent=widget.agent)
    found = mine.order_by("-created_at").first()
    return found or new_conversation(widget=widget, visitor=visitor)


def new_conversation(*, widget: Widget, visitor: Visitor) -> Conversation:
    """Begin a conversation; the visitor's earlier ones stay in the owner's transcripts."""
    return Conversation.objects.create(
        workspace_id=widget.workspace_id, agent_id=widget.agent_id, widget_id=widget.pk, visitor_id=visitor.pk
    )


@transaction.atomic
def count_question(*, widget: Widget, visitor: Visitor, address: str) -> None:
    """Take one question off the limits of the visitor, of the address and of the day.

    Raises:
        TooManyQuestions: one of them is reached; none is counted.
    """
    count(widget, f"visitor:{visitor.pk}", most=widget.per_visitor_hour, window="hour")
    count(widget, f"address:{_of(address)}", most=widget.per_address_hour, window="hour")
    count(widget, "day", most=widget.per_day, window="day")
    Visitor.objects.filter(pk=visitor.pk).update(seen_at=timezone.now())


@transaction.atomic
def count_read(*, widget: Widget, visitor: Visitor, address: str) -> None:
    """Take one look at what is there off the visitor's and the address's limits: many to each of their questions.

    Raises:
        TooManyQuestions: one of them is reached; none is counted.
    """
    most = max(LEAST_READS, READS_A_QUESTION * widget.per_visitor_hour)
    count(widget, f"reads:{visitor.pk}", most=most, window="hour")
    most = max(LEAST_READS, READS_A_QUESTION * widget.per_address_hour)
    count(widget, f"reads:{_of(address)}", most=most, window="hour")


def count(widget: Widget, subject: str, *, most: int, window: str) -> None:
    """Count one use in this hour or day (UTC), if there is room. Raises TooManyQuestions."""
    now = datetime.now(UTC)
    since = now.replace(minute=0, second=0, microsecond=0)
    since = since.replace(hour=0) if window == "day" else since
    row, made = Use.objects.get_or_create(widget=widget, subject=subject, since=since)
    if not Use.objects.filter(pk=row.pk, count__lt=most).update(count=F("count") + 1):
        raise errors.TooManyQuestions(limit=most)
    if made:
        Use.objects.filter(since__lt=now - KEPT).delete()


def _of(address: str) -> str:
    """Return an address as it is counted: no one can be read off it."""
    return salted_hmac("knowsphere.widget.address", place_of(address), algorithm="sha256").hexdigest()[:32]


def place_of(address: str) -> str:
    """Return what is one place in the net: an IPv4 address, or the /64 that one IPv6 line has to itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(IPv6Network((found, 64), strict=False))
