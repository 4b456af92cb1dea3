"""Search engines by name. To add one: how its request is made, and where its answer has the results."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.conf import settings
from django.utils.translation import gettext as _

from apps.agents.web.errors import PASSING, WebSearchMisconfigured, WebSearchRefused, WebSearchUnavailable
from apps.agents.web.hits import WebHit
from apps.common.text import legible

PATIENCE_S = 15.0
MOST_BYTES = 2_000_000
TITLE, SNIPPET, URL = 200, 600, 2_000  # characters
DEFAULT, OFF = "duckduckgo", "off"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to a search engine."""

    method: str
    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """A search engine that is asked over HTTP. ``results`` finds the list in its answer.

    ``names`` are the fields of a result that hold title, address and snippet, the first that is there.
    """

    url: str
    request: Callable[[str, str, str, int], Request]  # address, key, query, count
    results: Callable[[Any], Any]
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    needs_key: bool = True


PROVIDERS: dict[str, Provider] = {
    "searxng": Provider(
        url="",
        request=lambda url, key, query, count: Request("GET", f"{url}/search", {"q": query, "format": "json"}),
        results=lambda answer: answer["results"],
        names=(("title",), ("url",), ("content",)),
        needs_key=False,
    ),
    "tavily": Provider(
        url="https://api.tavily.com",
        request=lambda url, key, query, count: Request(
            "POST",
            f"{url}/search",
            headers={"Authorization": f"Bearer {key}"},
            body={"query": query, "max_results": count},
        ),
        results=lambda answer: answer["results"],
        names=(("title",), ("url",), ("content",)),
    ),
    "bocha": Provider(
        url="https://api.bochaai.com",
        request=lambda url, key, query, count: Request(
            "POST",
            f"{url}/v1/web-search",
            headers={"Authorization": f"Bearer {key}"},
            body={"query": query, "count": count, "summary": True},
        ),
        results=lambda answer: answer["data"]["webPages"]["value"],
        names=(("name",), ("url",), ("summary", "snippet")),
    ),
    "brave": Provider(
        url="https://api.search.brave.com",
        request=lambda url, key, query, count: Request(
            "GET",
            f"{url}/res/v1/web/search",
            {"q": query, "count": str(count)},
            {"X-Subscription-Token": key, "Accept": "application/json"},
        ),
        results=lambda answer: answer["web"]["results"],
        names=(("title",), ("url",), ("description",)),
    ),
}
NAMES = (DEFAULT, *PROVIDERS)


def provider_name() -> str:
    """Return the configured provider's name, "off" where the operator wants none."""
    return (settings.WEB_SEARCH_PROVIDER or DEFAULT).strip().lower()


def is_on() -> bool:
    """Return whether there is a web to search: the operator may have switched it off."""
    return provider_name() != OFF


async def search_web(query: str, count: int) -> list[WebHit]:
    """Ask the configured search engine.

    Raises:
        WebSearchUnavailable, WebSearchRefused, WebSearchMisconfigured.
        OutboundRefused: the operator's address is private and not named in OUTBOUND_ALLOW.
    """
    name = provider_name()
    if name == DEFAULT:
        rows = await _ask_duckduckgo(query, count)
        return _hits(rows, (("title",), ("href",), ("body",)))[:count]
    if name not in PROVIDERS:
        raise WebSearchMisconfigured(provider=name, reason=_("there is no provider of this name"))
    provider = PROVIDERS[name]
    address, key = (settings.WEB_SEARCH_URL or provider.url).rstrip("/"), settings.WEB_SEARCH_API_KEY
    if not address:
        raise WebSearchMisconfigured(provider=name, reason=_("WEB_SEARCH_URL is empty"))
    if provider.needs_key and not key:
        raise WebSearchMisconfigured(provider=name, reason=_("WEB_SEARCH_API_KEY is empty"))
    answer = await _send(name, provider.request(address, key, query, count))
    try:
        rows = provider.results(answer)
    except (KeyError, TypeError):
        rows = []
    return _hits(rows, provider.names)[:count]


async def _send(name: str, request: Request) -> Any:
    import aiohttp

    from apps.common.outbound.connector import GuardedConnector

    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    try:
        async with (
            aiohttp.ClientSession(connector=GuardedConnector(), timeout=timeout) as session,
            session.request(
                request.method, request.url, params=request.params, headers=request.headers, json=request.body,
                allow_redirects=False,
            ) as response,
        ):  # fmt: skip
            if response.status in (401, 403):
                raise WebSearchMisconfigured(provider=name, reason=_("its key is refused"))
            if response.status != 200:
                raise (WebSearchUnavailable if response.status in PASSING else WebSearchRefused)(provider=name)
            body = bytearray()
            async for piece in response.content.iter_any():  # read(n) gives no more than what has arrived
                body += piece
                if len(body) > MOST_BYTES:
                    raise WebSearchRefused(provider=name)
            return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WebSearchRefused(provider=name) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise WebSearchUnavailable(provider=name) from error


async def _ask_duckduckgo(query: str, count: int) -> Any:
    """Ask through ``ddgs``, which knows the pages of an engine that has no interface; it blocks, so in a thread."""
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    def ask() -> Any:
        return DDGS(timeout=int(PATIENCE_S)).text(query, max_results=count, backend=DEFAULT)

    try:
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.to_thread(ask)
    except DDGSException as error:
        if "no results" in str(error).lower():
            return []
        raise WebSearchUnavailable(provider=DEFAULT) from error
    except (TimeoutError, OSError) as error:
        raise WebSearchUnavailable(provider=DEFAULT) from error


def _hits(rows: Any, names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]) -> list[WebHit]:
    """Read results of any shape; one without an address of the web is passed over."""
    hits: dict[str, WebHit] = {}
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict):
            continue
        title, url, snippet = (next((str(row[n]) for n in some if row.get(n)), "") for some in names)
        url = url.strip()
        if url.startswith(("http://", "https://")) and len(url) <= URL:
            hits.setdefault(url, WebHit(_line(title, TITLE) or url, url, _line(snippet, SNIPPET)))
    return list(hits.values())


def _line(text: str, longest: int) -> str:
    return " ".join(legible(text).split())[:longest]
