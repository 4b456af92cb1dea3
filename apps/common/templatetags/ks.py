"""Template tags that every page may use."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache

from django import forms, template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.template.base import Node, Parser, Token
from django.template.context import Context
from django.templatetags.static import static
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

register = template.Library()
WRITTEN_OUT = re.compile(r'"[^"]*"')


@register.simple_tag(name="icon")
@cache
def drawn(name: str, classes: str = "") -> SafeString:
    """Draw a symbol of static/img/icons.svg; what it means is said by the text or label beside it."""
    html = '<svg class="{}" aria-hidden="true"><use href="{}#{}"></use></svg>'
    return format_html(html, f"i {classes}".strip(), static("img/icons.svg"), name)


class IconNode(Node):
    """A symbol that the template names itself. A page has a hundred, and nothing of them is looked up anew."""

    child_nodelists = ()

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def render(self, context: Context) -> SafeString:
        return drawn(*self.names)


_any_icon = register.tags["icon"]


@register.tag
def icon(parser: Parser, token: Token) -> Node:
    """Stand for ``drawn``, which does all but names that are written out."""
    names = token.split_contents()[1:]
    if all(WRITTEN_OUT.fullmatch(name) for name in names):
        return IconNode([name[1:-1] for name in names])
    node: Node = _any_icon(parser, token)
    return node


@register.filter
def styled(field: forms.BoundField) -> SafeString:
    """Draw a form's control with the class that its kind has in the design."""
    kind = getattr(field.field.widget, "input_type", "")
    shown = "" if kind in {"email", "password"} else field.field.widget.attrs.get("placeholder", "")
    return field.as_widget(attrs={} if kind in {"checkbox", "hidden"} else {"class": "input", "placeholder": shown})


@register.simple_tag
def options(choices: Iterable[tuple[str, str]], chosen: str) -> SafeString:
    """Draw the options of a choice that stands in every row of a list."""
    marked = ((value, SafeString(" selected" if value == chosen else ""), label) for value, label in choices)
    return format_html_join("", '<option value="{}"{}>{}</option>', marked)


@register.filter
def initials(name: str) -> str:
    """Return what stands for a name in a small square: two letters, or one Chinese character."""
    words = name.split()
    if not words:
        return "·"
    if not words[0][0].isascii():
        return words[0][0]
    return (words[0][0] + (words[1][0] if len(words) > 1 else words[0][1:2])).upper()


@register.filter
def when(moment: datetime) -> str:
    """Say how long ago something was within a day, else its date; the year only where it differs."""
    now = timezone.now()
    if now - moment < timedelta(minutes=1):
        return _("just now")
    if now - moment < timedelta(days=1):
        return str(naturaltime(moment))
    return date_format(timezone.localtime(moment), "MONTH_DAY_FORMAT" if moment.year == now.year else "DATE_FORMAT")


@register.simple_tag
def moment(at: datetime) -> SafeString:
    """Say when something was as ``when`` does, for programs exactly."""
    return format_html('<time datetime="{}">{}</time>', timezone.localtime(at).isoformat("T", "seconds"), when(at))


@register.filter
def percent(share: float) -> int:
    """Return a share from 0 to 1 as a whole number of hundredths."""
    return round(100 * min(max(share, 0.0), 1.0))


@register.filter
def innermost(path: str) -> str:
    """Return the last heading of a path of headings."""
    return path.rpartition(" > ")[2]
