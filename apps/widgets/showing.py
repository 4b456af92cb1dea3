"""What visitors get to see: the turn's events and stored answers, cut to what the owner allows.

Frames keep their place and number, so that a visitor's page notices gaps as any other; what they carry is chosen
here, by an allow-list of fields for each type. A type that is not listed carries nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.utils.translation import gettext as _

from apps.common.errors import KnowSphereError, NotFound, ServiceUnavailable
from apps.conversations import errors as conversation_errors
from apps.conversations.models import Citation, Conversation, Turn
from apps.conversations.rendering import anchor_of, render_markdown
from apps.widgets import errors
from apps.widgets.models import Widget
from apps.workspaces.principals import Principal

ALWAYS = ("seq", "turn", "type", "at_ms")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "turn.queued": ("question", "client_id", "waiting"),
    "turn.started": ("question",),
    "step": ("name", "status"),
    "token": ("text",),
    "block": ("index", "html", "end"),
    "tool.started": ("name",),
    "tool.finished": ("name", "ok"),
    "sources": ("sources",),
    "turn.finished": ("status", "error", "last_seq"),
}
OF_A_SOURCE = ("n", "kind", "document", "page", "heading")
MARKER = re.compile(r'<a class="cite".*?</a>', re.DOTALL)
SPENT = ("budget_exhausted", "quota_exceeded")
SAID = frozenset(
    kind.code
    for module in (errors, conversation_errors)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, KnowSphereError) and kind is not KnowSphereError
) | {NotFound.code, ServiceUnavailable.code}
TURNS = 50  # of a conversation, the newest


def frame(widget: Widget, text: str) -> str:
    """Return one of the turn's frames as a visitor of ``widget`` may have it."""
    given = orjson.loads(text)
    kept = {name: given[name] for name in (*ALWAYS, *FIELDS.get(given["type"], ())) if name in given}
    if kept["type"] == "sources":
        kept["sources"] = sources(widget, kept["sources"])
    elif kept["type"] == "block" and widget.sources == Widget.Sources.NONE:
        kept["html"] = MARKER.sub("", kept["html"])
    elif kept.get("error"):
        kept["error"] = error(kept["error"])
    return orjson.dumps(kept).decode()


def error(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a failure as a visitor may know it: nothing of models, addresses, budgets or the workspace."""
    code, message = given.get("code"), given.get("message")
    if code in SPENT:
        message = str(errors.TooManyQuestions.user_message)
    elif code not in SAID:
        code, message = "answer_failed", _("The answer broke off. Ask again.")
    return {"code": code, "message": message, "retryable": bool(given.get("retryable"))}


def sources(widget: Widget, given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return an answer's sources as far as the owner shows them."""
    if widget.sources == Widget.Sources.NONE:
        return []
    return [
        {**{name: one.get(name) for name in OF_A_SOURCE}, **({"url": one.get("url")} if one["kind"] == "web" else {})}
        for one in given
    ]


def turns_of(widget: Widget, principal: Principal, conversation: Conversation) -> list[dict[str, Any]]:
    """Return the newest turns of a visitor's conversation, oldest first, drawn by the one renderer."""
    turns = Turn.objects.visible_to(principal).filter(conversation=conversation).with_answers().order_by("-number")
    rows = list(turns[:TURNS])[::-1]
    cited: dict[Any, list[Citation]] = {}
    found = Citation.objects.visible_to(principal).with_readable(principal).filter(message__turn__in=rows)
    for citation in found.select_related("message").order_by("n"):
        cited.setdefault(citation.message.turn_id, []).append(citation)
    return [_turn(widget, turn, cited.get(turn.pk, [])) for turn in rows]


def _turn(widget: Widget, turn: Any, citations: list[Any]) -> dict[str, Any]:
    shown = [one for one in citations if one.cited and one.readable]
    if widget.sources == Widget.Sources.NONE:
        shown = []
    active = turn.status in Turn.ACTIVE
    html = "" if active else render_markdown(turn.answer or "", shown, anchor=anchor_of(turn.pk))
    return {
        "id": str(turn.pk), "question": turn.question, "status": turn.status, "html": html, "active": active,
        "sources": sources(
            widget,
            [
                {"n": one.n, "kind": one.kind, "document": one.document, "page": one.page, "heading": one.heading,
                 "url": one.url}
                for one in shown
            ],
        ),
    }  # fmt: skip
