"""What may be done with an answer: say whether it was good, see what to ask next."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.conversations import pages, services, suggesting
from apps.conversations.models import Feedback, Turn
from apps.workspaces.pages import PersonRequest, enter


@require_POST
@login_required
def rate_turn(request: PersonRequest, slug: str, turn_id: UUID) -> HttpResponse:
    """Take a thumb with its reason, or take it back; answer with the turn's foot, or lead to the turn."""
    frame = enter(request, slug)
    turns = Turn.objects.visible_to(request.user).filter(conversation__workspace=frame["workspace"])
    turn = get_object_or_404(turns, pk=turn_id)
    verdict = request.POST.get("verdict", "")
    if verdict == "none":
        services.withdraw_rating(turn=turn, actor=request.user)
    else:
        services.rate_turn(
            turn=turn,
            good=verdict != "bad",
            reason=request.POST.get("reason", ""),
            comment=request.POST.get("comment", ""),
            kept=bool(request.POST.get("kept")),
            actor=request.user,
        )
    if not request.htmx:
        return redirect("conversations:show-conversation", slug, turn.conversation_id)
    turn = get_object_or_404(pages.with_parts(turns), pk=turn_id)
    context = {**frame, "shown": pages.show_turn(turn), "saved": verdict != "none", "reasons": Feedback.Reason.choices}
    return render(request, "conversations/partials/_feedback.html", context)


@require_safe
@never_cache
@login_required
def suggest_questions(request: PersonRequest, slug: str, turn_id: UUID) -> HttpResponse:
    """Return chips with what may be asked next; made when the page first asks for them."""
    frame = enter(request, slug)
    turns = Turn.objects.visible_to(request.user).filter(conversation__workspace=frame["workspace"])
    turn = get_object_or_404(turns.select_related("conversation"), pk=turn_id)
    found = suggesting.suggest(turn, reader=request.user)
    return render(request, "conversations/partials/_suggestions.html", {"suggestions": found})
