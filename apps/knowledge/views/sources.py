"""Documents that are no files: web pages, texts and questions written here; the password of a locked file."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from apps.common.errors import KnowSphereError
from apps.common.middleware import is_scripted
from apps.common.text import whole
from apps.knowledge import originals, questions, services
from apps.knowledge.errors import OriginalMissing
from apps.knowledge.models import Document, Folder, KnowledgeBase
from apps.knowledge.questions import Pair
from apps.knowledge.services.documents import storing
from apps.knowledge.views.changes import ask_first
from apps.workspaces import audit
from apps.workspaces.pages import PersonRequest, enter

EMPTY = [Pair("", "")] * 3  # what somebody begins with


@require_POST
@login_required
def add_page(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Queue a web page."""
    base, folder = _place(request, slug, base_id)
    document = services.add_page(
        knowledge_base=base,
        url=request.POST.get("url", ""),
        actor=request.user,
        folder=folder,
        refresh_hours=whole(request.POST.get("refresh_hours", "")) or None,
    )
    messages.success(request, _("“%(name)s” will be fetched in a moment.") % {"name": document.name})
    return _base(slug, base, folder)


@require_POST
@login_required
def refresh_page(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Fetch a page again, and set how often that is done by itself."""
    document = _document(request, slug, document_id)
    if "refresh_hours" in request.POST:
        hours = whole(request.POST["refresh_hours"]) or None
        services.schedule_page(document=document, refresh_hours=hours, actor=request.user)
        messages.success(request, _("Saved."))
    else:
        documents = Document.objects.editable_by(request.user).filter(pk=document.pk)
        page = ask_first(request, enter(request, slug), document.knowledge_base, documents, act="fetch")
        if page:
            return page
        services.refresh_page(document=document, actor=request.user)
        messages.success(request, _("The page is fetched again. What was read of it before answers meanwhile."))
    return redirect("knowledge:show-document", slug, document.pk)


@require_POST
@login_required
def unlock_document(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Try a locked file with a password."""
    document = _document(request, slug, document_id)
    services.unlock_document(document=document, password=request.POST.get("password", ""), actor=request.user)
    messages.success(request, _("The file is read with this password now."))
    if request.htmx:
        return HttpResponseClientRedirect(request.htmx.current_url_abs_path or "/")
    return redirect("knowledge:show-document", slug, document.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def write_text(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Write a text, and take it in as a document."""
    base, folder = _place(request, slug, base_id)
    if request.method != "POST":
        return _page(request, slug, "write_text", base=base, folder=folder, name="", text="")
    name, text = request.POST.get("name", ""), request.POST.get("text", "")
    try:
        services.add_text(knowledge_base=base, name=name, text=text, actor=request.user, folder=folder)
    except KnowSphereError as error:
        return _again(request, slug, "write_text", error, base=base, folder=folder, name=name, text=text)
    return _base(slug, base, folder)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit_text(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Change a text that was written here."""
    document = _document(request, slug, document_id, Document.Kind.TEXT)
    if request.method != "POST":
        text = _original(document).decode()
        context = {"base": document.knowledge_base, "document": document, "name": document.name, "text": text}
        return _page(request, slug, "write_text", **context)
    name, text = request.POST.get("name", ""), request.POST.get("text", "")
    try:
        if services.is_other_text(document=document, text=text) and (page := _ask(request, document)):
            return page
        services.edit_text(document=document, name=name, text=text, actor=request.user)
    except KnowSphereError as error:
        context = {"base": document.knowledge_base, "document": document, "name": name, "text": text}
        return _again(request, slug, "write_text", error, **context)
    return redirect("knowledge:show-document", slug, document.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def write_questions(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Write questions with their answers, or take them from a table, as one document."""
    base, folder = _place(request, slug, base_id)
    if request.method != "POST":
        return _page(request, slug, "write_questions", base=base, folder=folder, name="", pairs=EMPTY)
    name, pairs = request.POST.get("name", ""), _pairs(request)
    try:
        services.add_questions(knowledge_base=base, name=name, pairs=pairs, actor=request.user, folder=folder)
    except KnowSphereError as error:
        context = {"base": base, "folder": folder, "name": name, "pairs": pairs or EMPTY}
        return _again(request, slug, "write_questions", error, **context)
    return _base(slug, base, folder)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit_questions(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Change questions and answers; a table that is given with them is added at the end."""
    document = _document(request, slug, document_id, Document.Kind.QA)
    if request.method != "POST":
        pairs = [*questions.read(_original(document)), Pair("", "")]
        context = {"base": document.knowledge_base, "document": document, "name": document.name, "pairs": pairs}
        return _page(request, slug, "write_questions", **context)
    name, pairs = request.POST.get("name", ""), _pairs(request)
    try:
        if services.are_other_questions(document=document, pairs=pairs):
            halves = [half for pair in pairs for half in (("question", pair.question), ("answer", pair.answer))]
            if page := _ask(request, document, [("name", name), *halves]):
                return page
        services.edit_questions(document=document, name=name, pairs=pairs, actor=request.user)
    except KnowSphereError as error:
        context = {"base": document.knowledge_base, "document": document, "name": name, "pairs": pairs or EMPTY}
        return _again(request, slug, "write_questions", error, **context)
    return redirect("knowledge:show-document", slug, document.pk)


@require_safe
@login_required
def export_questions(request: PersonRequest, slug: str, document_id: UUID) -> HttpResponse:
    """Send the pairs as a table for a spreadsheet program."""
    frame = enter(request, slug)
    documents = Document.objects.visible_to(request.user).filter(workspace=frame["workspace"], kind=Document.Kind.QA)
    document = get_object_or_404(documents, pk=document_id)
    table = questions.to_csv(questions.read(_original(document)))
    audit.opened(document, who=request.user, action="document.downloaded")
    return originals.table(table, f"{document.name}.csv")


def _ask(
    request: PersonRequest, document: Document, fields: Sequence[tuple[str, str]] | None = None
) -> HttpResponse | None:
    """Return the page that asks before another text takes the place of one in which people changed passages."""
    documents = Document.objects.editable_by(request.user).filter(pk=document.pk)
    frame = enter(request, document.workspace.slug)
    return ask_first(request, frame, document.knowledge_base, documents, act="write", fields=fields)


def _pairs(request: PersonRequest) -> list[Pair]:
    typed = zip(request.POST.getlist("question"), request.POST.getlist("answer"), strict=False)
    pairs = [Pair(question, answer) for question, answer in typed]
    table = request.FILES.get("table")
    return pairs if table is None else pairs + questions.from_csv(table.read())


def _place(request: PersonRequest, slug: str, base_id: UUID) -> tuple[KnowledgeBase, Folder | None]:
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(bases, pk=base_id)
    wanted = request.POST.get("folder", "") or request.GET.get("folder", "")
    folders = Folder.objects.editable_by(request.user).filter(knowledge_base=base)
    return base, get_object_or_404(folders.named_by(wanted)) if wanted else None


def _document(request: PersonRequest, slug: str, document_id: UUID, kind: str = "") -> Document:
    frame = enter(request, slug)
    documents = Document.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    if kind:
        documents = documents.filter(kind=kind)
    return get_object_or_404(documents.select_related("knowledge_base"), pk=document_id)


def _original(document: Document) -> bytes:
    try:
        with storing(), document.file.open("rb") as file:
            content: bytes = file.read()
            return content
    except FileNotFoundError as error:
        raise OriginalMissing from error


def _page(request: PersonRequest, slug: str, template: str, /, **context: Any) -> HttpResponse:
    return render(request, f"knowledge/{template}.html", {**enter(request, slug), **context, "section": "knowledge"})


def _again(request: PersonRequest, slug: str, template: str, error: KnowSphereError, /, **context: Any) -> HttpResponse:
    """Show a form once more, with what was typed and why it was not saved."""
    if is_scripted(request):
        raise error
    page = _page(request, slug, template, error=error, **context)
    page.status_code = error.status
    return page


def _base(slug: str, base: KnowledgeBase, folder: Folder | None) -> HttpResponse:
    where = redirect("knowledge:show-knowledge-base", slug, base.pk)
    if folder:
        where["Location"] += f"?folder={folder.pk}"
    return where
