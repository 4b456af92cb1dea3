"""Share links: made and taken back by their owner, followed by whom they are for."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.common import logs
from apps.common.errors import NotFound
from apps.common.text import identifier, storable
from apps.conversations import services, sharing
from apps.conversations.models import Conversation, Share, Turn
from apps.workspaces import audit
from apps.workspaces.models import User, Workspace
from apps.workspaces.pages import PersonRequest, enter

LOGGED_EVERY_S = 3600


@require_POST
@login_required
def share_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Make a link to a conversation as it is now, or change whom the link is for."""
    frame = enter(request, slug)
    mine = Conversation.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    conversation = get_object_or_404(mine, pk=conversation_id)
    turns = Turn.objects.visible_to(request.user).filter(conversation=conversation).order_by("-number")
    wanted = identifier(request.POST.get("turn", ""))
    turn = turns.filter(pk=wanted).first() if wanted else turns.first()
    if turn is None:
        raise NotFound
    outside = bool(request.POST.get("outside"))
    audience = Share.Audience.ANYONE if outside else Share.Audience.WORKSPACE
    services.share_conversation(conversation=conversation, turn=turn, audience=audience, actor=request.user)
    if not request.htmx:
        messages.success(request, _("The link is ready."))
        return redirect("conversations:show-conversation", slug, conversation_id)
    return _dialog(request, frame, conversation, turn.pk)


@require_POST
@login_required
def unshare_conversation(request: PersonRequest, slug: str, conversation_id: UUID) -> HttpResponse:
    """Take a link back."""
    frame = enter(request, slug)
    mine = Conversation.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    conversation = get_object_or_404(mine, pk=conversation_id)
    services.unshare_conversation(conversation=conversation, actor=request.user)
    if not request.htmx:
        messages.success(request, _("The link leads nowhere any more."))
        return redirect("conversations:show-conversation", slug, conversation_id)
    return _dialog(request, frame, conversation, identifier(request.POST.get("turn", "")))


def _dialog(
    request: PersonRequest, frame: dict[str, Any], conversation: Conversation, leaf: UUID | None
) -> HttpResponse:
    share = Share.objects.visible_to(request.user).filter(conversation=conversation).first()
    context = {**frame, "conversation": conversation, "share": share, "leaf": leaf}
    return render(request, "conversations/partials/_share.html", context)


@require_safe
@never_cache
def show_shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show a shared conversation to whom the link is for; to anybody else there is none.

    Somebody signed out may be of the workspace, so they are asked to sign in; that the link exists is
    not said by it, for any other token asks the same.
    """
    links = Share.objects.visible_to(request.user).filter(token=storable(token))
    share = links.select_related("conversation__owner", "conversation__workspace", "turn").first()
    if share is None:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        raise NotFound
    reader = _reader(request, share.conversation.workspace)
    _log(share, reader)
    context = {"share": share, "turns": sharing.shared_turns(share, reader), "inside": reader is not None}
    response = render(request, "conversations/show_shared.html", context)
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Referrer-Policy"] = "no-referrer"
    return response


def _log(share: Share, reader: User | None) -> None:
    """Log that somebody followed the link: each reader, and each place outside, once an hour."""
    talk = share.conversation
    whose = reader.pk if reader else logs.client_ip.get()
    if whose != talk.owner_id and cache.add(f"link-followed:{share.pk}:{whose}", True, LOGGED_EVERY_S):
        audit.record("conversation.opened_by_link", who=reader, workspace_id=talk.workspace_id, target=talk)


def _reader(request: HttpRequest, workspace: Workspace) -> User | None:
    """Return who reads, if they are of the workspace."""
    if not isinstance(request.user, User):
        return None
    return request.user if Workspace.objects.visible_to(request.user).filter(pk=workspace.pk).exists() else None
