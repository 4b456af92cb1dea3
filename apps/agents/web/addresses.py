"""Which addresses a turn may open: those that its asker wrote and those that a search engine named. Pure."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

ADDRESS = re.compile(r"https?://[^\s<>\"'`，。；、！？（）《》【】「」]+", re.IGNORECASE)
TRAILING = ".,;:!?)]}*_"


def addresses_in(texts: Iterable[str]) -> set[str]:
    """Return the addresses that stand in texts, as ``same`` writes them."""
    return {same(found.rstrip(TRAILING)) for text in texts for found in ADDRESS.findall(text)}


def same(url: str) -> str:
    """Return an address so that two ways to write it are equal: no fragment, host in small letters, no last slash."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    path = parts.path.rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path}{query}"
