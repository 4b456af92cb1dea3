"""Departments: made, moved, filled, deleted."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from apps.common.errors import InvalidInput, NotFound
from apps.common.text import display_name, legible
from apps.workspaces import audit
from apps.workspaces.errors import DepartmentInItself, DepartmentNameTaken
from apps.workspaces.models import Department, DepartmentMember, Membership, User, Workspace
from apps.workspaces.permissions import require


@transaction.atomic
def create_department(*, workspace: Workspace, name: str, actor: User, parent: Department | None = None) -> Department:
    """Make a department, below another or at the top.

    Raises:
        NotFound, NotAllowed: by the actor's role, or the parent is another workspace's.
        DepartmentNameTaken: its neighbour has the name.
        InvalidInput: no name.
    """
    require("manage_people", actor=actor, workspace=workspace)
    if parent is not None and parent.workspace_id != workspace.pk:
        raise NotFound
    _lock(workspace.pk)
    above = Department.objects.get(pk=parent.pk).lineage if parent else []
    department = Department(workspace=workspace, name=_named(name), parent=parent)
    department.lineage = [department.pk, *above]
    _save(department)
    _record("department.made", department, actor)
    return department


@transaction.atomic
def rename_department(*, department: Department, name: str, actor: User) -> None:
    """Give a department another name. Raises DepartmentNameTaken, InvalidInput, NotFound."""
    department.name = _named(name)
    try:
        with transaction.atomic():
            renamed = Department.objects.filter(pk=department.pk).update(name=department.name)
    except IntegrityError as error:
        raise DepartmentNameTaken(name=department.name) from error
    if not renamed:
        raise NotFound
    _record("department.renamed", department, actor)


@transaction.atomic
def move_department(*, department: Department, parent: Department | None, actor: User) -> None:
    """Hang a department, with all below it, under another or at the top.

    One move at a time in a workspace, or two could tie a knot.

    Raises:
        DepartmentInItself: the new place lies below the department.
        DepartmentNameTaken: its new neighbour has the name.
    """
    _lock(department.workspace_id)
    above: list[UUID] = []
    if parent is not None:
        if parent.workspace_id != department.workspace_id:
            raise NotFound
        above = Department.objects.get(pk=parent.pk).lineage
    if department.pk in above:
        raise DepartmentInItself
    department.parent = parent
    _save(department)
    for below in Department.objects.filter(lineage__contains=[department.pk]):
        kept = below.lineage[: below.lineage.index(department.pk) + 1]
        Department.objects.filter(pk=below.pk).update(lineage=[*kept, *above])
    department.refresh_from_db(fields=["lineage"])
    _record("department.moved", department, actor, parent=str(parent.pk) if parent else None)


@transaction.atomic
def delete_department(*, department: Department, actor: User) -> None:
    """Delete a department, all below it, and what was shared with them. The people stay in the workspace."""
    _lock(department.workspace_id)
    _record("department.deleted", department, actor)
    department.delete()


@transaction.atomic
def set_department_members(*, department: Department, user_ids: Collection[UUID], actor: User) -> None:
    """Let exactly these people be in a department.

    Raises:
        NotFound: one of them is not in the workspace.
    """
    wanted = set(user_ids)
    memberships = Membership.objects.filter(workspace_id=department.workspace_id, user__in=wanted)
    found = {membership.user_id: membership for membership in memberships}
    if set(found) != wanted:
        raise NotFound
    DepartmentMember.objects.filter(department=department).exclude(membership__user__in=wanted).delete()
    DepartmentMember.objects.bulk_create(
        [DepartmentMember(department=department, membership=membership) for membership in found.values()],
        ignore_conflicts=True,
    )
    _record("department.members_set", department, actor, people=sorted(map(str, wanted)))


def _record(action: str, department: Department, actor: User, **details: Any) -> None:
    place = department.workspace_id
    audit.record(action, who=actor, workspace_id=place, target=department, name=department.name, **details)


def _named(name: str) -> str:
    if not legible(name).strip():
        raise InvalidInput(field="name", reason="it is empty")
    return display_name(name, limit=100)


def _lock(workspace_id: UUID) -> None:
    Workspace.objects.select_for_update().get(pk=workspace_id)


def _save(department: Department) -> None:
    try:
        with transaction.atomic():
            department.save()
    except IntegrityError as error:
        raise DepartmentNameTaken(name=department.name) from error
