"""Pages of search: hits for readers; the funnel of two profiles for those who tune; synonyms."""

import json
import re
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.common.database import wait_for
from apps.common.errors import InvalidInput, KnowSphereError
from apps.knowledge import search_report, services
from apps.knowledge.filter_fields import searchable
from apps.knowledge.highlights import excerpt
from apps.knowledge.models import KnowledgeBase, Synonyms
from apps.knowledge.retrieval import reading
from apps.knowledge.retrieval.passages import Passage, SearchResult
from apps.knowledge.retrieval.profiles import Profile
from apps.knowledge.retrieval.search import search
from apps.knowledge.search_forms import ProfileForm, SearchForm
from apps.models.models import Kind, ModelConfig
from apps.workspaces import audit, permissions
from apps.workspaces.pages import PersonRequest, enter

HITS = 20  # of the readers' page


@require_safe
@login_required
def search_documents(request: PersonRequest, slug: str) -> HttpResponse:
    """Show the passages that answer a question, each with a link that opens its document at the paragraph."""
    frame = enter(request, slug)
    form = _search_form(request, frame)
    context: dict[str, Any] = {"form": form, "section": "search", "asked": False}
    status = 200
    if form.is_valid() and form.cleaned_data["q"].strip():
        query = form.cleaned_data["q"]
        context |= {"asked": True, "q": query}
        try:
            found = wait_for(
                search, request.user, query, knowledge_bases=form.selected(), top_k=HITS, filters=(form.filters(),)
            )
        except KnowSphereError as error:
            context["error"], status = error.message, error.status
        else:
            _asked(request, frame, found)
            context |= {
                "hits": _hits(found, query),
                "degraded": search_report.missing(found),
                "empty": search_report.empty_words(found.empty_reason) if not found.passages else "",
            }
    elif form.errors:
        status = 422
    return render(request, "knowledge/search_documents.html", {**frame, **context}, status=status)


@require_safe
@login_required
def try_search(request: PersonRequest, slug: str) -> HttpResponse:
    """Show how a question fares by one profile or two: the funnel, the hits, and why a passage is not one."""
    frame = enter(request, slug)
    form = _search_form(request, frame)
    rerankers = ModelConfig.objects.visible_to(request.user).usable_in(frame["workspace"].pk)
    rerankers = rerankers.filter(kind=Kind.RERANK, enabled=True)
    base = _tuned_base(request, form)
    saved = _saved_profile(base)
    asked = any(name.startswith(("a-", "b-")) for name in request.GET)
    data = request.GET if asked else None
    sides = [
        {"key": key, "form": ProfileForm(data, prefix=key, rerankers=rerankers, initial=ProfileForm.initial_of(saved))}
        for key in (("a", "b") if request.GET.get("compare") else ("a",))
    ]
    context: dict[str, Any] = {"form": form, "sides": sides, "base": base, "section": "search"}
    context |= {"compare": bool(request.GET.get("compare")), "watch": request.GET.get("watch", "")}
    status = 422 if form.errors else 200
    if form.is_valid() and form.cleaned_data["q"].strip():
        watched, unknown = _watched(request, form, context["watch"])
        context |= {"asked": True, "q": form.cleaned_data["q"], "watched": watched, "unknown_watch": unknown}
        for side in sides:
            status = max(status, _run(request, form, side, saved, watched, frame))
    editable = KnowledgeBase.objects.editable_by(request.user)
    context["may_save"] = base is not None and editable.filter(pk=base.pk).exists()
    return render(request, "knowledge/try_search.html", {**frame, **context}, status=status)


@require_POST
@login_required
def save_profile(request: PersonRequest, slug: str, base_id: UUID) -> HttpResponse:
    """Make settings that were tried out a base's own."""
    frame = enter(request, slug)
    bases = KnowledgeBase.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    base = get_object_or_404(bases, pk=base_id)
    try:
        settings = json.loads(request.POST.get("settings", "") or "{}")
    except ValueError:
        raise InvalidInput(field="settings", reason=_("it is not JSON")) from None
    services.save_search_profile(knowledge_base=base, settings=settings, actor=request.user)
    messages.success(request, _("Everybody who searches “%(name)s” now searches it this way.") % {"name": base.name})
    return redirect(f"{reverse('knowledge:try-search', args=[slug])}?kb={base.pk}")


@require_safe
@login_required
def list_synonyms(request: PersonRequest, slug: str) -> HttpResponse:
    """List the words that mean the same in this workspace."""
    frame = enter(request, slug)
    return render(request, "knowledge/list_synonyms.html", {**frame, **_synonyms(request, frame)})


@require_POST
@login_required
def add_synonyms(request: PersonRequest, slug: str) -> HttpResponse:
    """Add words that mean the same; what cannot be used comes back with 422."""
    frame = enter(request, slug)
    typed = request.POST.get("words", "")
    words = typed.replace("，", ",").replace("、", ",").replace("\n", ",").split(",")
    try:
        services.add_synonyms(workspace=frame["workspace"], words=words, actor=request.user)
    except InvalidInput as error:
        context = {**_synonyms(request, frame), "typed": typed, "error": error.message}
        return render(request, "knowledge/list_synonyms.html", {**frame, **context}, status=422)
    return redirect("knowledge:list-synonyms", slug)


@require_POST
@login_required
def delete_synonyms(request: PersonRequest, slug: str, synonyms_id: UUID) -> HttpResponse:
    """Let words no longer mean the same."""
    frame = enter(request, slug)
    rows = Synonyms.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    services.delete_synonyms(synonyms=get_object_or_404(rows, pk=synonyms_id), actor=request.user)
    return redirect("knowledge:list-synonyms", slug)


def _search_form(request: PersonRequest, frame: dict[str, Any]) -> SearchForm:
    bases = KnowledgeBase.objects.visible_to(request.user).filter(workspace=frame["workspace"]).order_by("name")
    return SearchForm(request.GET, bases=searchable(bases, request.user))


def _synonyms(request: PersonRequest, frame: dict[str, Any]) -> dict[str, Any]:
    rows = Synonyms.objects.visible_to(request.user).filter(workspace=frame["workspace"]).order_by("created_at")
    return {"rows": rows, "may_edit": permissions.allows("manage_synonyms", frame["role"]), "section": "search"}


def _asked(request: PersonRequest, frame: dict[str, Any], found: SearchResult) -> None:
    """Log that somebody searched, and the documents that they were shown; not the words that they looked for."""
    documents = sorted({str(passage.document_id) for passage in found.passages})
    audit.record("bases.searched", who=request.user, workspace_id=frame["workspace"].pk, documents=documents)


def _hits(found: SearchResult, query: str) -> list[dict[str, Any]]:
    return [
        {"passage": passage, "parts": excerpt(passage.text, query, focus=passage.focus)} for passage in found.passages
    ]


def _tuned_base(request: PersonRequest, form: SearchForm) -> KnowledgeBase | None:
    """Return the one base whose profile is tuned: the first that is chosen, else the only one there is."""
    chosen = (form.chosen() if form.is_valid() else [])[:1] or list(form.bases)
    readable = KnowledgeBase.objects.visible_to(request.user).select_related("search_profile")
    return readable.filter(pk=chosen[0].id).first() if len(chosen) == 1 else None


def _saved_profile(base: KnowledgeBase | None) -> Profile:
    saved = getattr(base, "search_profile", None) if base else None
    try:
        return Profile.of(saved.chosen if saved else {})
    except InvalidInput:
        return Profile.of({})


def _run(
    request: PersonRequest,
    form: SearchForm,
    side: dict[str, Any],
    saved: Profile,
    watched: Passage | None,
    frame: dict[str, Any],
) -> int:
    """Search by one side's profile and put what is shown into ``side``; return the status of the page."""
    typed: ProfileForm = side["form"]
    profile = saved if not typed.is_bound else typed.profile() if typed.is_valid() else None
    if profile is None:
        return 422
    try:
        found = wait_for(
            search,
            request.user,
            form.cleaned_data["q"],
            knowledge_bases=form.selected(),
            profile=profile if typed.is_bound else None,  # else each base's own counts
            filters=(form.filters(),),
            watched=watched.chunk_id if watched else None,
        )
    except KnowSphereError as error:
        side["error"] = error.message
        return error.status
    _asked(request, frame, found)
    side |= {
        "result": found,
        "degraded": search_report.missing(found),
        "funnel": search_report.funnel(found),
        "hits": _hits(found, form.cleaned_data["q"]),
        "empty": search_report.empty_words(found.empty_reason) if not found.passages else "",
        "settings": json.dumps(profile.stored()),
    }
    if watched:
        inside = watched.knowledge_base_id in form.selected()
        side["why"] = search_report.why(found, watched.chunk_id, selected=inside)
    return 200


def _watched(request: PersonRequest, form: SearchForm, asked: str) -> tuple[Passage | None, bool]:
    """Return the passage that somebody asks about, by its id or by words that stand in it; True where there is none."""
    asked = asked.strip()
    if not asked:
        return None, False
    everywhere = [base.id for base in form.bases]
    try:
        found = wait_for(reading.list_chunks, request.user, chunk_ids=[UUID(asked)])
    except ValueError:
        found = wait_for(reading.grep_chunks, request.user, re.escape(asked[:200]), knowledge_bases=everywhere, limit=1)
    inside = [passage for passage in found if passage.knowledge_base_id in everywhere]
    return (inside[0], False) if inside else (None, True)
