"""``{{ message.text|ks_citations:citations }}``: an answer as the live socket showed it."""

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString

from apps.conversations.rendering import Source, anchor_of, render_markdown

register = template.Library()


@register.filter
def ks_citations(text: str, citations: Iterable[Source] = ()) -> SafeString:
    """Render an answer's Markdown, its markers as links that name their documents.

    ``citations`` are the answer's rows; their message's turn, where they have one, makes the anchors.
    """
    known = list(citations)
    turn_id = getattr(getattr(known[0], "message", None), "turn_id", None) if known else None
    return render_markdown(text, known, anchor=anchor_of(turn_id) if turn_id else "")
