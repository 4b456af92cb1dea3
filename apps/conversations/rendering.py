"""Answers as HTML: one sanitising renderer for the live socket, a reload and an export.

Two walls: the parser makes no HTML of its input's HTML, and what it makes passes an allow-list.
Markers become links that name their document; the number that is shown counts by first use.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from apps.conversations import code
from apps.conversations.markdown import to_html

SHORT_NAME = 24  # characters of a document's name inside a marker

_TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_MATHML = {
    "math", "menclose", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow",
    "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder",
    "munderover",
}  # fmt: skip
_MATHML_ATTRIBUTES = {
    "math": {"display"},
    "mi": {"mathvariant"},
    "mo": {"stretchy", "fence", "form", "separator", "movablelimits", "minsize", "maxsize", "lspace", "rspace"},
    "mfrac": {"linethickness"},
    "mover": {"accent"},
    "munder": {"accentunder"},
    "mspace": {"width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtable": {"columnalign", "rowspacing", "columnspacing", "rowlines", "columnlines"},
    "mtd": {"columnalign", "columnspan", "rowspan"},
}
_CLEANER = nh3.Cleaner(
    tags=_TAGS | _MATHML,
    clean_content_tags={"script", "style"},
    attributes={
        "a": {"href", "title", "data-n", "data-doc", "aria-label"},
        "ol": {"start"},
        "span": {"dir"},
        **_MATHML_ATTRIBUTES,
    },
    allowed_classes={
        "a": {"cite"},
        "span": {"nowrap", "cite-doc", "opt-s", *(name for _kind, name in code.CLASSES)},
        "div": {"wide-box"},
        "td": {"n", "center"},
        "th": {"n", "center"},
    },
    set_tag_attribute_values={"pre": {"tabindex": "0"}},  # long lines scroll, by keyboard too
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
)


class Source(Protocol):
    """What a marker's link needs to know; rows of Citation are such."""

    @property
    def n(self) -> int: ...
    @property
    def document(self) -> str: ...
    @property
    def page(self) -> int | None: ...
    @property
    def url(self) -> str: ...


class AnswerRenderer:
    """Render the blocks of one answer, in order: shown numbers run on from block to block.

    ``sources`` may grow while the answer is written. ``anchor`` precedes the number in a marker's
    target, so that two answers on one page do not share ids.
    """

    def __init__(self, sources: Mapping[int, Source], *, anchor: str = "") -> None:
        self.sources: dict[int, Source] = dict(sources)
        self._anchor = anchor
        self.shown: dict[int, int] = {}

    def render(self, text: str) -> SafeString:
        """Return one block, or a whole answer, as sanitised HTML."""
        return mark_safe(_CLEANER.clean(to_html(text, link=self._link)))  # noqa: S308 (sanitised)

    def _link(self, n: int) -> str:
        source = self.sources.get(n)
        if source is None:
            return ""
        shown = self.shown.setdefault(n, len(self.shown) + 1)
        name = source.document or source.url
        place = _("%(document)s, page %(page)s") % {"document": name, "page": source.page} if source.page else name
        return format_html(
            '<a class="cite" href="#{}c{}" data-n="{}" data-doc="{}" aria-label="{}">'
            '<span class="cite-doc opt-s" dir="auto">{}</span> {}</a>',
            self._anchor, n, n, place,
            _("Source %(number)s: %(place)s") % {"number": shown, "place": place},
            short_name(name), shown,
        )  # fmt: skip


def render_markdown(text: str, citations: Iterable[Source] = (), *, anchor: str = "") -> SafeString:
    """Return a whole answer as sanitised HTML, its markers as links to ``citations``.

    A marker without a citation disappears.
    """
    return AnswerRenderer({citation.n: citation for citation in citations}, anchor=anchor).render(text)


def shown_numbers(text: str, citations: Iterable[Source]) -> dict[int, int]:
    """Return ``n`` of each cited source with the number that readers see, by first use."""
    renderer = AnswerRenderer({citation.n: citation for citation in citations})
    renderer.render(text)
    return renderer.shown


def anchor_of(turn_id: UUID) -> str:
    """Return what precedes the numbers of a turn's markers on a page."""
    return f"t{turn_id.hex[:8]}-"


def short_name(name: str) -> str:
    """Shorten a document's name in the middle, so that its beginning and its type stay."""
    if len(name) <= SHORT_NAME:
        return name
    stem, dot, kind = name.rpartition(".")
    tail = f".{kind}" if dot and stem and len(kind) <= 5 else ""
    return f"{name[: SHORT_NAME - 1 - len(tail)].rstrip()}…{tail}"
