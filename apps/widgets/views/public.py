"""What pages of other sites load: the script, its greeting, the frame, and the frame's own requests.

No cookie is read or set here. Which site asks says the browser's ``Origin`` header, never a body; the frame is kept
to allowed sites by ``frame-ancestors`` besides.
"""

import json
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from apps.common.errors import KnowSphereError, NotFound
from apps.common.text import storable
from apps.conversations import steps
from apps.conversations.models import Citation, Turn
from apps.widgets import errors, services, showing, tokens
from apps.widgets.models import Visitor, Widget
from apps.workspaces.principals import Principal

View = Callable[..., HttpResponse]
LANGUAGES = {"zh": "zh-hans", "en": "en"}
MOST_BYTES = 8_000  # of a request's body


def answers_json(view: View) -> View:
    """Turn foreseen failures into the one JSON shape, readable by the page that asked: they hold no data."""

    @csrf_exempt
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with translation.override(_language(request)):
            try:
                response = view(request, *args, **kwargs)
            except KnowSphereError as error:
                response = JsonResponse(error.as_dict(), status=error.status)
                response["Access-Control-Allow-Origin"] = "*"
        response["Cache-Control"] = "no-store"
        response["Vary"] = "Origin"
        return response

    return answer


def _language(request: HttpRequest, widget: Widget | None = None) -> str:
    if widget is not None and widget.language != Widget.Language.AUTO:
        return widget.language
    asked = request.GET.get("lang", "").lower()[:2]
    return LANGUAGES.get(asked) or translation.get_language_from_request(request) or settings.LANGUAGE_CODE


def _body(request: HttpRequest) -> dict[str, Any]:
    if int(request.headers.get("Content-Length") or 0) > MOST_BYTES:
        raise errors.VisitorExpired
    try:
        found = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    return storable(value) if isinstance(value, str) else ""


def _bearer(request: HttpRequest) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ").strip()


@cache
def _script() -> bytes:
    return Path(finders.find("js/widget.js") or "").read_bytes()


@require_safe
def script(request: HttpRequest) -> HttpResponse:
    """The loader, for ``<script src=".../widget.js">`` on any page."""
    response = HttpResponse(_script(), content_type="text/javascript; charset=utf-8")
    response["Cache-Control"] = "public, max-age=3600"
    response["Access-Control-Allow-Origin"] = "*"
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@answers_json
@require_POST
def greet(request: HttpRequest, public_id: str) -> HttpResponse:
    """Tell a page of an allowed site how the bubble looks, and give it a ticket for the frame."""
    widget = services.find_published(public_id)
    origin = services.admit_origin(widget, request.headers.get("Origin", ""))
    word = _text(_body(request), "identity")
    identity = tokens.read_identity(widget, word) if word else None
    with translation.override(_language(request, widget)):
        response = JsonResponse({
            "ticket": tokens.make_ticket(widget, origin, identity=identity),
            "color": widget.color, "position": widget.position, "theme": widget.theme,
            "title": widget.title or _("Ask us"), "close": _("Close the chat"), "open": _("Open the chat"),
            "unread": _("Open the chat: there is a new answer"),
        })  # fmt: skip
    response["Access-Control-Allow-Origin"] = request.headers["Origin"]
    return response


@require_safe
@xframe_options_exempt
def show_frame(request: HttpRequest, public_id: str) -> HttpResponse:
    """The chat itself. It shows nothing but the greeting until a visitor's session is there."""
    try:
        widget = services.find_published(public_id)
    except errors.WidgetNotFound as error:
        return HttpResponse(str(error.message), status=error.status, content_type="text/plain; charset=utf-8")
    allowed = [*widget.origins, services.own_origin()]
    with translation.override(_language(request, widget)):
        page = _frame(request, widget)
    page._csp_replace = {"frame-ancestors": allowed}  # type: ignore[attr-defined]  # as csp_replace does
    page["Referrer-Policy"] = "no-referrer"
    page["Cache-Control"] = "no-store"
    return page


def _frame(request: HttpRequest, widget: Widget) -> HttpResponse:
    return render(request, "widgets/frame.html", {
        "widget": widget,
        "theme": "" if widget.theme == Widget.Theme.AUTO else widget.theme,
        "step_words": steps.words(),
    })  # fmt: skip


@answers_json
@require_POST
def open_session(request: HttpRequest, public_id: str) -> HttpResponse:
    """Exchange a ticket, and the token of an earlier session where there was one, for a session."""
    widget = services.find_published(public_id)
    if request.headers.get("Origin") and not _is_own(request):
        raise errors.OriginNotAllowed
    body = _body(request)
    _visitor, token = services.open_session(
        widget=widget, ticket=_text(body, "ticket"), token=_text(body, "token"),
        address=request.META.get("REMOTE_ADDR", ""),
    )  # fmt: skip
    return JsonResponse({"token": token, "expires_in": tokens.SESSION_S})


def _is_own(request: HttpRequest) -> bool:
    return request.headers["Origin"] in (services.own_origin(), f"{request.scheme}://{request.get_host()}")


def _admitted(request: HttpRequest, public_id: str) -> tuple[Widget, Visitor, Principal]:
    """Return whose session a request carries, its read taken off the limits."""
    found = services.admit_visitor(public_id, _bearer(request))
    services.count_read(widget=found[0], visitor=found[1], address=request.META.get("REMOTE_ADDR", ""))
    return found


@answers_json
@require_POST
def renew_session(request: HttpRequest, public_id: str) -> HttpResponse:
    """Give a visitor whose session still runs a new token."""
    _widget, visitor, _principal = _admitted(request, public_id)
    return JsonResponse({"token": tokens.make_session(visitor), "expires_in": tokens.SESSION_S})


@answers_json
@require_safe
def show_history(request: HttpRequest, public_id: str) -> HttpResponse:
    """The visitor's newest conversation, as it was drawn."""
    widget, visitor, principal = _admitted(request, public_id)
    conversation = services.conversation_of(widget, visitor)
    turns = showing.turns_of(widget, principal, conversation)
    return JsonResponse({"conversation": str(conversation.pk), "turns": turns})


@answers_json
@require_POST
def start_again(request: HttpRequest, public_id: str) -> HttpResponse:
    """Begin a new conversation."""
    widget, visitor, _principal = services.admit_visitor(public_id, _bearer(request))
    services.count(widget, f"again:{visitor.pk}", most=30, window="hour")
    return JsonResponse({"conversation": str(services.new_conversation(widget=widget, visitor=visitor).pk)})


@answers_json
@require_safe
def show_excerpt(request: HttpRequest, public_id: str, turn_id: Any, n: int) -> HttpResponse:
    """The paragraph behind a marker, where the owner allows it and the widget may still read it."""
    widget, _visitor, principal = _admitted(request, public_id)
    turn = Turn.objects.visible_to(principal).filter(pk=turn_id).first()
    cited = Citation.objects.visible_to(principal).with_readable(principal)
    found: Any = cited.filter(message__turn=turn, n=n, cited=True).first() if turn else None
    if found is None or not found.readable or widget.sources != Widget.Sources.EXCERPTS:
        raise NotFound
    return JsonResponse({
        "document": found.document, "page": found.page, "heading": found.heading, "url": found.url, "text": found.text,
    })  # fmt: skip
