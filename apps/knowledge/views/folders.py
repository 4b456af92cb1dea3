"""Folders of a base: made, renamed, moved, deleted."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.knowledge import services
from apps.knowledge.models import Folder, KnowledgeBase
from apps.workspaces.pages import PersonRequest, enter


@require_POST
@login_required
def create_folder(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Make a folder in the one that is shown, and go into it."""
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(bases, pk=base_id)
    parent = request.POST.get("folder", "")
    folders = Folder.objects.editable_by(request.user).filter(knowledge_base=base)
    above = get_object_or_404(folders.named_by(parent)) if parent else None
    folder = services.create_folder(
        knowledge_base=base, name=request.POST.get("name", ""), actor=request.user, parent=above
    )
    return _shown(slug, folder)


@require_POST
@login_required
def change_folder(request: PersonRequest, slug: str, folder_id: UUID) -> HttpResponse:
    """Rename a folder, or put it into another one."""
    folder = _folder(request, slug, folder_id)
    name = request.POST.get("name", "")
    if name and name != folder.name:
        services.rename_folder(folder=folder, name=name, actor=request.user)
    if "parent" in request.POST:
        wanted = request.POST["parent"]
        folders = Folder.objects.editable_by(request.user).filter(knowledge_base=folder.knowledge_base_id)
        parent = get_object_or_404(folders.named_by(wanted)) if wanted else None
        if (parent.pk if parent else None) != folder.parent_id:
            services.move_folder(folder=folder, parent=parent, actor=request.user)
    return _shown(slug, folder)


@require_POST
@login_required
def delete_folder(request: PersonRequest, slug: str, folder_id: UUID) -> HttpResponse:
    """Delete a folder with all that is in it; the page offers Undo."""
    folder = _folder(request, slug, folder_id)
    job = services.delete_folder(folder=folder, actor=request.user)
    undo = reverse("knowledge:restore-deleted", args=[slug, job.pk])
    messages.success(request, _("“%(name)s” was deleted.") % {"name": folder.name}, extra_tags=undo)
    return redirect("knowledge:show-knowledge-base", slug, folder.knowledge_base_id)


def _folder(request: PersonRequest, slug: str, folder_id: UUID) -> Folder:
    frame = enter(request, slug)
    folders = Folder.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    return get_object_or_404(folders.select_related("knowledge_base"), pk=folder_id)


def _shown(slug: str, folder: Folder) -> HttpResponse:
    where = redirect("knowledge:show-knowledge-base", slug, folder.knowledge_base_id)
    where["Location"] += f"?folder={folder.pk}"
    return where
