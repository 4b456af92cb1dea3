"""Acts on many documents from a base's table, and the jobs that they leave."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from apps.common.errors import InvalidInput
from apps.knowledge import services
from apps.knowledge.models import Document, Folder, Job, KnowledgeBase
from apps.knowledge.querysets import DocumentQuerySet
from apps.knowledge.services import jobs
from apps.knowledge.views.changes import ask_first
from apps.workspaces.pages import PersonRequest, enter

ROWS = 25
IN_BACKGROUND = {"parse": Job.Kind.PARSE, "index": Job.Kind.INDEX, "retry": Job.Kind.RETRY}


@require_POST
@login_required
def act_on_documents(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Do to the chosen documents what the button says; lead back to where they were chosen."""
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(bases, pk=base_id)
    documents = Document.objects.editable_by(request.user).filter(knowledge_base=base)
    documents = (
        _all_shown(request, base, documents)
        if request.POST.get("all")
        else documents.among(request.POST.getlist("documents"))
    )
    common: dict[str, Any] = {"knowledge_base": base, "documents": documents, "actor": request.user}
    act = request.POST.get("act", "")
    undo = ""
    if act in IN_BACKGROUND:
        touched = documents.in_state("failed") if act == "retry" else documents
        if page := ask_first(request, frame, base, touched, act=act):
            return page
        job = services.start_job(kind=IN_BACKGROUND[act], **common)
        text = _("%(count)s in the queue. You can leave this page.") % {"count": job.total}
    else:
        job = _at_once(act, base, request, common)
        text = ngettext("Done for %(count)s document.", "Done for %(count)s documents.", job.total)
        text %= {"count": job.total}
        if act == "delete":
            text = ngettext("%(count)s document was deleted.", "%(count)s documents were deleted.", job.total)
            text %= {"count": job.total}
            undo = reverse("knowledge:restore-deleted", args=[slug, job.pk])
    messages.success(request, text, extra_tags=undo)
    if from_document := documents.among([request.POST.get("from_document", "")]).first():
        return redirect("knowledge:show-document", slug, from_document.pk)
    back = redirect("knowledge:show-knowledge-base", slug, base.pk)
    folder = request.POST.get("in_folder", "")
    if act != "move" and Folder.objects.visible_to(request.user).named_by(folder).exists():
        back["Location"] += f"?folder={folder}"
    return back


def _all_shown(request: PersonRequest, base: KnowledgeBase, documents: DocumentQuerySet) -> DocumentQuerySet:
    """Return all that the filter of the table lets through, on whichever of its pages.

    A folder that is not there any more is an error: without it the filter would let the whole base through.
    """
    posted = request.POST
    wanted = posted.get("in_folder", "")
    folders = Folder.objects.visible_to(request.user).filter(knowledge_base=base)
    folder = get_object_or_404(folders.named_by(wanted)) if wanted else None
    return documents.shown(
        name=posted.get("q", "").strip(), state=posted.get("state", ""), tag=posted.get("with_tag", ""), folder=folder
    )


def _at_once(act: str, base: KnowledgeBase, request: PersonRequest, common: dict[str, Any]) -> Job:
    tag = [request.POST.get("tag", "")]
    acts: dict[str, Callable[[], Job]] = {
        "delete": lambda: services.delete_documents(**common),
        "cancel": lambda: services.cancel_documents(**common),
        "tag": lambda: services.tag_documents(add=tag, **common),
        "untag": lambda: services.tag_documents(remove=tag, **common),
        "move": lambda: services.move_documents(folder=_folder(request, base), **common),
    }
    if act not in acts:
        raise InvalidInput(field="act", reason=_("this is none"))
    return acts[act]()


def _folder(request: PersonRequest, base: KnowledgeBase) -> Folder | None:
    wanted = request.POST.get("folder", "")
    folders = Folder.objects.editable_by(request.user).filter(knowledge_base=base)
    return get_object_or_404(folders.named_by(wanted)) if wanted else None


@require_safe
@login_required
def list_jobs(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """List what was done to many documents of a base, the newest first."""
    frame = enter(request, slug)
    visible = KnowledgeBase.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(visible.with_rights(request.user), pk=base_id)
    found = Job.objects.visible_to(request.user).filter(knowledge_base=base).select_related("created_by")
    page = Paginator(found.order_by("-created_at"), ROWS).get_page(request.GET.get("page"))
    states = jobs.documents_by_state([job.pk for job in page.object_list if job.active])
    rows = [(job, jobs.shares(job, states.get(job.pk, {}))) for job in page.object_list]
    context = {"base": base, "page": page, "rows": rows, "section": "knowledge"}
    part = "partials/_jobs" if request.htmx else "list_jobs"
    return render(request, f"knowledge/{part}.html", {**frame, **context})


@require_POST
@login_required
def cancel_job(request: PersonRequest, slug: str, job_id: UUID) -> HttpResponse:
    """Stop a job and what it has scheduled."""
    job = _job(request, slug, job_id)
    services.cancel_job(job=job, actor=request.user)
    return redirect("knowledge:list-jobs", slug, job.knowledge_base_id)


@require_POST
@login_required
def retry_job(request: PersonRequest, slug: str, job_id: UUID) -> HttpResponse:
    """Try again the documents of a job that failed."""
    job = _job(request, slug, job_id)
    failed = Document.objects.editable_by(request.user).filter(job=job).in_state("failed")
    page = ask_first(request, enter(request, slug), job.knowledge_base, failed, act="retry")
    if page:
        return page
    services.retry_job(job=job, actor=request.user)
    return redirect("knowledge:list-jobs", slug, job.knowledge_base_id)


@require_POST
@login_required
def restore_deleted(request: PersonRequest, slug: str, job_id: UUID) -> HttpResponse:
    """Undo a deletion that is not carried out yet."""
    job = _job(request, slug, job_id)
    count = services.restore_deleted(job=job, actor=request.user)
    text = ngettext("%(count)s document is back.", "%(count)s documents are back.", count) % {"count": count}
    messages.success(request, text)
    return redirect("knowledge:show-knowledge-base", slug, job.knowledge_base_id)


@require_safe
@login_required
def tell_ends(request: PersonRequest, slug: str) -> HttpResponse:
    """Tell the person of jobs of theirs that have ended since, once; the page shows it at its foot."""
    enter(request, slug)
    mine = Job.objects.visible_to(request.user).filter(
        workspace__slug=slug, created_by=request.user, finished_at__isnull=False, seen_at__isnull=True
    )
    ended = list(mine.select_related("knowledge_base").order_by("finished_at")[:3])
    response = HttpResponse(status=204 if not ended else 200)
    if ended:
        mine.filter(pk__in=[job.pk for job in ended]).update(seen_at=timezone.now())
        texts = [{"text": jobs.told(job)} for job in ended]
        response = trigger_client_event(response, "toasts", {"toasts": texts})
    return response


def _job(request: PersonRequest, slug: str, job_id: UUID) -> Job:
    frame = enter(request, slug)
    return get_object_or_404(Job.objects.editable_by(request.user).filter(workspace=frame["workspace"]), pk=job_id)
