"""What the web gives: plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebHit:
    """One result of a search engine."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class WebPage:
    """The main text of a page. ``url`` is where the redirects ended; JSON and plain text come as they are."""

    url: str
    title: str
    text: str
