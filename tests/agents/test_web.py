"""The web: search engines by name, pages behind the guard, and which addresses a turn may open."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest

from apps.agents.context import Switches
from apps.agents.web import providers
from apps.agents.web.addresses import addresses_in, same
from apps.agents.web.errors import (
    PageUnavailable,
    PageUnreadable,
    WebSearchMisconfigured,
    WebSearchRefused,
    WebSearchUnavailable,
)
from apps.agents.web.hits import WebHit
from apps.agents.web.pages import read_page
from apps.common.outbound.errors import OutboundRefused
from tests.agents.fakes import make_context
from tests.agents.test_run_turn import Talk, pools  # noqa: F401 (autouse)
from tests.agents.test_tools_node import run
from tests.vendor import Reply, call

ARTICLE = (
    "<html><head><title>Pump prices</title></head><body><nav>Home About</nav><article><h1>Pump prices</h1>"
    + "<p>The pump P-7 costs 1,250 EUR since May 2026 and is delivered within ten working days.</p>" * 12
    + "<table><tr><th>Model</th><th>Price</th></tr><tr><td>P-9</td><td>1,900</td></tr></table></article>"
    "<footer>Imprint</footer></body></html>"
)
WIRE = {
    "searxng": {"results": [{"title": "A", "url": "https://a.example/", "content": "about a"}, {"title": "no url"}]},
    "tavily": {"results": [{"title": "A", "url": "https://a.example/", "content": "about a"}]},
    "bocha": {"data": {"webPages": {"value": [{"name": "A", "url": "https://a.example/", "snippet": "about a"}]}}},
    "brave": {"web": {"results": [{"title": "A", "url": "https://a.example/", "description": "about a"}]}},
}


class Site:
    """A web server that answers what it is told and keeps what it was asked."""

    def __init__(self):
        self.answers, self.asked = {}, []
        self.pause_s = 0.0  # behind each half of a body
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                length = int(self.headers.get("Content-Length") or 0)
                site.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
                status, kind, body = site.answers.get(self.path.partition("?")[0], (404, "text/plain", b"gone"))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                for half in (body[: len(body) // 2], body[len(body) // 2 :]):
                    self.wfile.write(half)
                    self.wfile.flush()
                    threading.Event().wait(site.pause_s)

            do_POST = do_GET

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}"


@contextmanager
def serving():
    site = Site()
    threading.Thread(target=site.server.serve_forever, daemon=True).start()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def site(settings):
    with serving() as site:
        host, _, port = site.host.partition(":")
        settings.OUTBOUND_ALLOW = [f"{host}:{port}"]
        yield site


@pytest.mark.parametrize("name", WIRE)
async def test_each_provider_is_asked_as_it_wants_and_read_as_it_answers(name, site, settings):
    settings.WEB_SEARCH_PROVIDER, settings.WEB_SEARCH_API_KEY, settings.WEB_SEARCH_URL = name, "k-1", site.url
    path = {"searxng": "/search", "tavily": "/search", "bocha": "/v1/web-search", "brave": "/res/v1/web/search"}[name]
    site.answers[path] = (200, "application/json", orjson.dumps(WIRE[name]))
    assert await providers.search_web("pumps 泵", 5) == [WebHit("A", "https://a.example/", "about a")]
    [(method, _path, headers, body)] = site.asked
    assert method == ("POST" if name in ("tavily", "bocha") else "GET")
    if name != "searxng":
        assert "k-1" in headers.get("Authorization", "") + headers.get("X-Subscription-Token", "")
    assert method == "GET" or orjson.loads(body)["query"] == "pumps 泵"
    site.answers[path] = (200, "application/json", b'{"unexpected": []}')
    assert await providers.search_web("x", 5) == []
    passing = ((500, WebSearchUnavailable), (429, WebSearchUnavailable), (503, WebSearchUnavailable))
    for status, code in (
        *passing,
        (401, WebSearchMisconfigured),
        (400, WebSearchRefused),
        (402, WebSearchRefused),
        (404, WebSearchRefused),
    ):
        assert code.retryable is (code is WebSearchUnavailable)
        site.answers[path] = (status, "application/json", b"{}")
        with pytest.raises(code):
            await providers.search_web("x", 5)
    site.answers[path] = (200, "text/html", b"<html>")
    with pytest.raises(WebSearchRefused):
        await providers.search_web("x", 5)


async def test_an_answer_that_comes_in_two_pieces_is_read_to_its_end(site, settings, monkeypatch):
    settings.WEB_SEARCH_PROVIDER, settings.WEB_SEARCH_URL, site.pause_s = "searxng", site.url, 0.2
    site.answers["/search"] = (200, "application/json", orjson.dumps(WIRE["searxng"]))
    assert await providers.search_web("pumps", 5) == [WebHit("A", "https://a.example/", "about a")]
    monkeypatch.setattr(providers, "MOST_BYTES", 20)
    with pytest.raises(WebSearchRefused):
        await providers.search_web("pumps", 5)


async def test_duckduckgo_through_its_library(settings, monkeypatch):
    from ddgs import exceptions

    settings.WEB_SEARCH_PROVIDER = ""
    rows = [{"title": "A", "href": "https://a.example/", "body": "about a"}]
    monkeypatch.setattr("ddgs.ddgs.DDGS.text", lambda self, query, **options: rows)
    assert await providers.search_web("pumps", 5) == [WebHit("A", "https://a.example/", "about a")]

    def fails(error):
        def text(self, query, **options):
            raise error

        monkeypatch.setattr("ddgs.ddgs.DDGS.text", text)

    fails(exceptions.DDGSException("No results found."))
    assert await providers.search_web("pumps", 5) == []
    fails(exceptions.RatelimitException("slow down"))
    with pytest.raises(WebSearchUnavailable):
        await providers.search_web("pumps", 5)


@pytest.mark.parametrize(("provider", "key"), [("gone", "k"), ("searxng", ""), ("tavily", "")])
async def test_settings_that_cannot_work_say_so(provider, key, settings):
    settings.WEB_SEARCH_PROVIDER, settings.WEB_SEARCH_API_KEY, settings.WEB_SEARCH_URL = provider, key, ""
    with pytest.raises(WebSearchMisconfigured):
        await providers.search_web("x", 5)


async def test_a_private_search_engine_is_the_operators_to_open(settings):
    settings.WEB_SEARCH_PROVIDER, settings.WEB_SEARCH_URL, settings.OUTBOUND_ALLOW = "searxng", "http://127.0.0.1:9", []
    with pytest.raises(OutboundRefused):
        await providers.search_web("x", 5)


async def test_pages_are_read_for_their_main_text(site):
    site.answers["/a"] = (200, "text/html; charset=utf-8", ARTICLE.encode())
    page = await read_page(f"{site.url}/a")
    assert page.title == "Pump prices"
    assert "The pump P-7 costs 1,250 EUR" in page.text
    assert "P-9" in page.text
    assert "Imprint" not in page.text
    site.answers["/b"] = (200, "application/json", b'{"a": [1, 2]}')
    assert (await read_page(f"{site.url}/b")).text == '{"a": [1, 2]}'
    site.answers["/c"] = (200, "text/plain; charset=gb18030", "泵的价格".encode("gb18030"))
    assert (await read_page(f"{site.url}/c")).text == "泵的价格"
    for path, answer in (
        ("/d", (404, "text/html", b"x")),
        ("/e", (200, "image/png", b"\x89PNG")),
        ("/f", (200, "text/html", b"<html><body></body></html>")),
        ("/g", (200, "application/pdf", b"%PDF-1.4 broken")),
    ):
        site.answers[path] = answer
        with pytest.raises(PageUnreadable):
            await read_page(f"{site.url}{path}")
    for status in (429, 500, 503):  # these pass
        site.answers["/d"] = (status, "text/html", b"x")
        with pytest.raises(PageUnavailable):
            await read_page(f"{site.url}/d")


async def test_a_pdf_waits_no_longer_than_a_while_for_files_of_others(site, monkeypatch):
    from apps.agents.web import pages
    from apps.knowledge.sandbox import reader

    monkeypatch.setattr(pages, "WAIT_S", 0.05)
    site.answers["/a"] = (200, "application/pdf", b"%PDF-1.4 broken")
    with reader._channel.lock, pytest.raises(PageUnreadable) as refused:
        await read_page(f"{site.url}/a")
    assert "other files" in refused.value.message


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/", "http://[::1]/", "http://169.254.169.254/", "http://2130706433/", "file:///etc/passwd"],
)
async def test_the_guard_stands_before_every_page(url, settings):
    settings.OUTBOUND_ALLOW = []
    with pytest.raises(OutboundRefused):
        await read_page(url)


def test_addresses_are_the_same_however_they_are_written():
    said = ["See https://A.example/x/?q=1#top, and（https://b.example/泵）。", "http://c.example."]
    assert addresses_in(said) == {"https://a.example/x?q=1", "https://b.example/泵", "http://c.example"}
    assert same("HTTPS://a.example/x/?q=1") == "https://a.example/x?q=1"
    assert same("https://a.example/x?q=2") not in addresses_in(said)


def web(**changes):
    return make_context(switches=Switches(knowledge=True, web=True), **changes)


async def test_only_given_addresses_are_opened():
    opened = []

    async def read_page(url):
        opened.append(url)
        raise PageUnreadable(reason="x")

    context, sink, _ = web(read_page=read_page)
    fetch = call("web_fetch", {"url": "https://pumps.example/prices?secret=42"}, "k1")
    [said] = await run(context, fetch)
    assert said.startswith("Refused")
    assert sink.of("tool.finished")[0]["refused"] == "address_not_given"
    assert opened == []
    await run(context, call("web_search", {"query": "pumps"}, "k2"))
    await run(context, call("web_fetch", {"url": "https://pumps.example/prices?secret=42"}, "k3"))
    assert opened == []  # a search named the page, but not with this question behind it
    await run(context, call("web_fetch", {"url": "https://pumps.example/prices#x"}, "k4"))
    assert opened == ["https://pumps.example/prices#x"]


async def test_a_page_that_was_found_and_read_is_one_source():
    context, _, _ = web()
    [found] = await run(context, call("web_search", {"query": "pumps"}, "k1"))
    assert '<result id="c1" document="Pumps" url="https://pumps.example/prices" part="snippet">' in found
    [read] = await run(context, call("web_fetch", {"url": "https://pumps.example/prices"}, "k2"))
    assert '<result id="c1"' in read
    [source] = context.record.sources.all()
    assert source.as_event()["url"] == "https://pumps.example/prices"
    assert source.text == "A pump costs 12 EUR since May."


async def test_a_long_page_is_stored_and_stays_citable():
    from apps.agents.web.hits import WebPage

    async def read_page(url):
        return WebPage(url, "Long", "line of text\n" * 900)

    context, _, _ = web(read_page=read_page)
    context.record.addresses.add("https://long.example")
    [content] = await run(context, call("web_fetch", {"url": "https://long.example/"}, "k1"))
    left = orjson.loads(content)
    assert "[[c1]]" in left["__hint"]
    [part] = await run(context, call("get_stored_data", {"ref_id": left["__refId"], "start": 13, "length": 12}, "k2"))
    assert "\nline of text\n" in part
    assert "[[c1]]" in part
    assert context.record.sources.known(1)


async def test_a_plan_is_shown_and_replaced():
    context, sink, _ = make_context()
    steps = [{"title": "Search", "state": "done"}, {"title": "Compare", "state": "running"}]
    [said] = await run(context, call("write_plan", {"steps": steps}, "k1"))
    assert said.startswith("The plan is noted")
    assert sink.of("plan") == [{"steps": steps}]
    [wrong] = await run(context, call("write_plan", {"steps": []}, "k2"))
    assert wrong.startswith("Error: wrong arguments")


@pytest.mark.django_db(transaction=True)
async def test_a_turn_with_the_web_on_cites_a_page(ann, acme, handbook, scripted_model, site, settings):
    """From the switch to the source: search, fetch, answer; with the switch off no tool is offered."""
    settings.WEB_SEARCH_PROVIDER, settings.WEB_SEARCH_URL = "searxng", site.url
    hits = {"results": [{"title": "Pump prices", "url": f"{site.url}/a", "content": "prices"}]}
    site.answers["/search"] = (200, "application/json", orjson.dumps(hits))
    site.answers["/a"] = (200, "text/html", ARTICLE.encode())
    talk = Talk(ann, acme)
    scripted_model.script(
        [
            Reply(tool_calls=[call("web_search", {"query": "pump prices"}, "k1")]),
            Reply(tool_calls=[call("web_fetch", {"url": f"{site.url}/a"}, "k2")]),
            Reply("It costs 1,250 EUR [[c1]]."),
        ]
    )
    outcome = await talk.ask("What does the pump P-7 cost?", web=True)
    assert outcome.text == "It costs 1,250 EUR [[c1]]."
    [source] = outcome.sources
    assert (source.kind, source.url, source.document) == ("web", f"{site.url}/a", "Pump prices")
    assert "The pump P-7 costs 1,250 EUR" in source.text
    offered = {tool["function"]["name"] for tool in scripted_model.requests[-1].body["tools"]}
    assert {"web_search", "web_fetch"} <= offered
    assert "Web access: on" in scripted_model.requests[-1].messages[0]["content"]

    for off in ({"web": False}, {"web": True}):
        settings.WEB_SEARCH_PROVIDER = "off" if off["web"] else "searxng"
        scripted_model.script([Reply("Hello.")])
        await talk.ask("What does the pump P-7 cost now?", **off)
        last = scripted_model.requests[-1]
        assert not {"web_search", "web_fetch"} & {tool["function"]["name"] for tool in last.body["tools"]}
        assert "Web access: off" in last.messages[0]["content"]
