"""Sharing of single rows, whatever their kind, and withdrawing it."""

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import models, transaction
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, NotFound
from apps.workspaces import audit
from apps.workspaces.models import Department, Membership, Role, Share, User

Level = Literal["read", "manage"]


@dataclass(frozen=True, slots=True)
class Subject:
    """With whom something is shared: exactly one of these is given. The role "viewer" is everybody."""

    user: User | None = None
    department: Department | None = None
    role: str = ""
    widget_id: UUID | None = None


def share_model(kind: type[models.Model]) -> type[Share]:
    """Return the Share model of a kind of row.

    Raises:
        LookupError: rows of this kind cannot be shared.
    """
    for model in share_models():
        if shared_kind(model) is kind:
            return model
    raise LookupError(f"{kind.__name__} has no Share model")


def share_models() -> list[type[Share]]:
    """Return the Share models of all kinds."""
    return [model for model in apps.get_models() if issubclass(model, Share)]


def shared_kind(model: type[Share]) -> type[models.Model]:
    """Return what a Share model shares."""
    kind: type[models.Model] = model._meta.get_field("content_object").related_model  # type: ignore[misc]
    return kind


@transaction.atomic
def share(*, row: Any, subject: Subject, level: Level, actor: User) -> Share:
    """Share a row that came through ``editable_by``; a new level replaces the old one.

    Raises:
        InvalidInput: rows of this kind cannot be shared on that level.
        NotFound: the person or department is not in the row's workspace, or the role has nothing to gain.
    """
    if subject.user and not Membership.objects.filter(workspace_id=row.workspace_id, user=subject.user).exists():
        raise NotFound
    if subject.department and subject.department.workspace_id != row.workspace_id:
        raise NotFound
    if subject.role and subject.role not in (Role.VIEWER, Role.MEMBER):
        raise NotFound
    if level not in levels_of(type(row)):
        raise InvalidInput(field="level", reason=_("choose one of those offered"))
    model = share_model(type(row))
    share: Share
    share, _created = model.objects.update_or_create(
        content_object=row,
        user=subject.user,
        department=subject.department,
        role=subject.role,
        widget_id=subject.widget_id,
        defaults={"permission": _permission(type(row), level), "granted_by": actor},
    )
    audit.record(
        "share.given", who=actor, workspace_id=row.workspace_id, target=row, name=row.name, level=level, to=_to(share)
    )
    return share


@transaction.atomic
def unshare(*, share: Share, actor: User) -> None:
    """Withdraw a share that came through ``editable_by``. It counts no more from the next statement on."""
    row: Any = share.content_object  # type: ignore[attr-defined]
    audit.record("share.withdrawn", who=actor, workspace_id=row.workspace_id, target=row, name=row.name, to=_to(share))
    share.delete()


@transaction.atomic
def set_restricted(*, row: Any, restricted: bool, actor: User) -> None:
    """Shut a row to all but those it is shared with, or open it again."""
    type(row).objects.filter(pk=row.pk).update(restricted=restricted)
    row.restricted = restricted
    action = "access.restricted" if restricted else "access.opened"
    audit.record(action, who=actor, workspace_id=row.workspace_id, target=row, name=row.name)


def levels_of(kind: type[models.Model]) -> list[Level]:
    """Return the levels that rows of a kind can be shared on: within a base, only "read"."""
    names = {codename for codename, _words in kind._meta.permissions}
    return [level for level in ("read", "manage") if f"{level}_{kind._meta.model_name}" in names]


def forget_person(*, user_id: UUID, workspace_id: UUID) -> None:
    """Withdraw all that was shared with a person in a workspace, so that nothing revives if they come back."""
    for model in share_models():
        model.objects.filter(user=user_id, content_object__workspace=workspace_id).delete()


def forget_widget(*, widget_id: UUID) -> None:
    """Withdraw all that was shared with a widget; whoever deletes one calls it."""
    for model in share_models():
        model.objects.filter(widget_id=widget_id).delete()


def _to(share: Share) -> dict[str, str]:
    """Return with whom something is shared, for the log."""
    subjects = {"person": share.user_id, "department": share.department_id, "widget": share.widget_id}
    return {"role": share.role} if share.role else {kind: str(pk) for kind, pk in subjects.items() if pk}


def _permission(kind: type[models.Model], level: Level) -> Permission:
    name = kind._meta.model_name
    label = kind._meta.app_label
    return Permission.objects.get(codename=f"{level}_{name}", content_type__app_label=label, content_type__model=name)
