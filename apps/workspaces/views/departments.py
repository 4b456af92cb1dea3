"""Pages of departments."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.common.errors import InvalidInput
from apps.workspaces import permissions, services
from apps.workspaces.forms import DepartmentForm, DepartmentMembersForm, people_of
from apps.workspaces.models import Department, DepartmentMember, Membership
from apps.workspaces.pages import PersonRequest, enter


@require_safe
@login_required
def list_departments(request: PersonRequest, slug: str) -> HttpResponse:
    """Show the tree of departments, and who is in each."""
    return render(request, "workspaces/list_departments.html", _tree(request, enter(request, slug)))


@require_POST
@login_required
def create_department(request: PersonRequest, slug: str) -> HttpResponse:
    """Make a department."""
    frame = enter(request, slug)
    permissions.require("manage_people", actor=request.user, workspace=frame["workspace"])
    form = DepartmentForm(request.POST, departments=_all(request, frame))
    if not form.is_valid():
        return render(request, "workspaces/list_departments.html", _tree(request, frame, form=form), status=422)
    services.create_department(workspace=frame["workspace"], actor=request.user, **form.cleaned_data)
    return redirect("workspaces:list-departments", slug)


@require_safe
@login_required
def edit_department(request: PersonRequest, slug: str, department_id: UUID) -> HttpResponse:
    """Show a department's name, place and people, to change them."""
    frame = enter(request, slug)
    department = get_object_or_404(_editable(request, frame), pk=department_id)
    first = {"name": department.name, "parent": department.parent_id}
    form = DepartmentForm(initial=first, departments=_elsewhere(request, frame, department))
    inside = [str(pk) for pk in department.members.values_list("membership__user", flat=True)]
    people = DepartmentMembersForm(initial={"people": inside}, members=_people(request, frame))
    context = {"department": department, "form": form, "people": people, "section": "people"}
    return render(request, "workspaces/edit_department.html", {**frame, **context})


@require_POST
@login_required
def change_department(request: PersonRequest, slug: str, department_id: UUID) -> HttpResponse:
    """Rename a department, or hang it elsewhere."""
    frame = enter(request, slug)
    department = get_object_or_404(_editable(request, frame), pk=department_id)
    form = DepartmentForm(request.POST, departments=_elsewhere(request, frame, department))
    if not form.is_valid():
        raise InvalidInput(field="name", reason=_("choose another name or place"))
    parent = form.cleaned_data["parent"]
    if form.cleaned_data["name"] != department.name:
        services.rename_department(department=department, name=form.cleaned_data["name"], actor=request.user)
    if (parent.pk if parent else None) != department.parent_id:
        services.move_department(department=department, parent=parent, actor=request.user)
    return redirect("workspaces:list-departments", slug)


@require_POST
@login_required
def set_department_members(request: PersonRequest, slug: str, department_id: UUID) -> HttpResponse:
    """Say who is in a department."""
    frame = enter(request, slug)
    department = get_object_or_404(_editable(request, frame), pk=department_id)
    form = DepartmentMembersForm(request.POST, members=_people(request, frame))
    if not form.is_valid():
        raise InvalidInput(field="people", reason=_("choose people of this workspace"))
    ids = [UUID(pk) for pk in form.cleaned_data["people"]]
    services.set_department_members(department=department, user_ids=ids, actor=request.user)
    return redirect("workspaces:list-departments", slug)


@require_POST
@login_required
def delete_department(request: PersonRequest, slug: str, department_id: UUID) -> HttpResponse:
    """Delete a department with all below it; the people stay."""
    frame = enter(request, slug)
    department = get_object_or_404(_editable(request, frame), pk=department_id)
    services.delete_department(department=department, actor=request.user)
    return redirect("workspaces:list-departments", slug)


def _tree(request: PersonRequest, frame: dict[str, Any], form: DepartmentForm | None = None) -> dict[str, Any]:
    """Return the departments in the order of the tree, each with how deep it lies."""
    inside = DepartmentMember.objects.visible_to(request.user).select_related("membership__user")
    rows = list(_all(request, frame).prefetch_related(Prefetch("members", inside)))
    names = {row.pk: row.name.casefold() for row in rows}
    rows.sort(key=lambda row: [names[pk] for pk in reversed(row.lineage)])
    may_manage = permissions.allows("manage_people", frame["role"])
    form = form or (DepartmentForm(departments=_all(request, frame)) if may_manage else None)
    tree = [(row, len(row.lineage) - 1) for row in rows]
    return {**frame, "tree": tree, "form": form, "may_manage": may_manage, "section": "people"}


def _all(request: PersonRequest, frame: dict[str, Any]) -> Any:
    return Department.objects.visible_to(request.user).filter(workspace=frame["workspace"]).order_by("name")


def _elsewhere(request: PersonRequest, frame: dict[str, Any], department: Department) -> Any:
    return _all(request, frame).exclude(lineage__contains=[department.pk])


def _editable(request: PersonRequest, frame: dict[str, Any]) -> Any:
    return Department.objects.editable_by(request.user).filter(workspace=frame["workspace"])


def _people(request: PersonRequest, frame: dict[str, Any]) -> Any:
    return people_of(Membership.objects.visible_to(request.user).filter(workspace=frame["workspace"]))
