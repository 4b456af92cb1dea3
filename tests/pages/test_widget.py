"""The widget on another site's page, in a real browser: asked, cited, kept over a change of page, refused elsewhere."""

import functools
import http.server
import json
import re
import threading

import pytest
from playwright.sync_api import expect

from tests.conversations.live.conftest import db, people, server  # noqa: F401 (fixtures)
from tests.pages.conftest import photograph
from tests.pages.looks import DESK, look

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live-widget-pages")]

PAGE = """<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>Kestrel</title>
<style>*{{color:red!important;font-size:30px}} button{{display:none}}</style><h1>Glass</h1><a href="/second">on</a>
<script src="{site}/widget.js" data-widget="{widget}" async></script></html>"""
# A site that lets nothing in but what docs/widget.md asks for.
STRICT = (
    "default-src 'none'; script-src {site}; connect-src {site}; frame-src {site}; require-trusted-types-for 'script'"
)


class Host:
    """A site of its own origin with the widget's snippet on every page."""

    def __init__(self):
        handler = functools.partial(Handler, self)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.site = self.widget = self.policy = ""
        self.lang = "en"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, host, *args):
        self.host = host
        super().__init__(*args)

    def do_GET(self):
        words = PAGE.format(site=self.host.site, widget=self.host.widget, lang=self.host.lang)
        if self.host.policy:
            words = re.sub("<style>.*</style>", "", words)
        page = words.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        if self.host.policy:
            self.send_header("Content-Security-Policy", self.host.policy)
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *args):
        pass


@pytest.fixture
def host(server, people):  # noqa: F811
    from apps.agents.services import default_agent
    from apps.widgets import services

    host = Host()
    widget = services.create_widget(
        workspace=people.acme, actor=people.ann, name="Shop", origins=[host.address], title="Ask Kestrel",
        starters=["cite"], greeting="What would you like to know?", sources="names", color="#1f3d36",
    )  # fmt: skip
    services.set_reach(widget=widget, agent=default_agent(people.acme), bases=[], actor=people.ann)
    host.site, host.widget, host.row = f"http://127.0.0.1:{server.port}", widget.public_id, widget
    yield host
    host.server.shutdown()


def test_a_visitor_asks_and_goes_on_over_a_change_of_page(host, new_tab):
    page = new_tab()
    page.goto(host.address)
    page.get_by_role("button", name="Open the chat").click()
    chat = page.frame_locator("iframe")
    expect(chat.get_by_role("heading", name="Ask Kestrel")).to_be_visible()
    chat.get_by_role("button", name="cite").click()
    expect(chat.locator(".answer")).to_contain_text("Economy class is booked")
    expect(chat.locator(".cited li").first).to_contain_text("差旅管理办法.docx")
    expect(chat.locator(".answer")).not_to_contain_text("[[c")
    assert look(page, "widget.en", frame=page.frames[-1], whole=False) == []
    page.set_viewport_size(DESK)

    page.get_by_role("link", name="on").click()
    page.wait_for_url("**/second")
    expect(chat.locator(".q")).to_have_text("cite")
    expect(chat.locator(".answer")).to_contain_text("Economy class is booked")
    chat.get_by_label("Your question").fill("say 12 30")
    page.keyboard.press("Enter")
    expect(chat.locator(".answer").nth(1)).to_contain_text("end.")
    expect(chat.get_by_role("button", name="Send")).to_be_visible()

    chat.get_by_label("Your question").fill("say 100 20")  # still being written when the page changes
    page.keyboard.press("Enter")
    expect(chat.locator(".answer").nth(2)).to_contain_text("word")
    page.goto(host.address)
    expect(chat.locator(".answer").nth(2)).to_contain_text("98 ", timeout=60_000)

    chat.get_by_role("button", name="Start again").click()
    expect(chat.locator("article")).to_have_count(0)
    expect(chat.get_by_text("What would you like to know?")).to_be_visible()
    chat.get_by_role("button", name="Close the chat").click()
    expect(page.get_by_role("button", name="Open the chat")).to_be_focused()


def test_what_is_stopped_before_the_answer_has_a_name_is_stopped(host, new_tab):
    """What the server says is held back until the click: nothing of the answer is known in the frame yet."""
    from apps.conversations.models import Turn

    held, stops = [], []

    def route(socket):
        answering = socket.connect_to_server()

        def up(message):
            answering.send(message)
            if '"stop"' in message:
                stops.append(json.loads(message))
                for late in held:
                    socket.send(late)

        socket.on_message(up)
        answering.on_message(lambda message: socket.send(message) if stops else held.append(message))

    page = new_tab()
    page.route_web_socket("**/ws/**", route)
    page.goto(host.address)
    page.get_by_role("button", name="Open the chat").click()
    chat = page.frame_locator("iframe")
    chat.get_by_label("Your question").fill("wait")
    page.keyboard.press("Enter")
    chat.get_by_role("button", name="Stop").click()
    expect(chat.locator("article")).to_contain_text("Stopped")
    expect(chat.get_by_role("button", name="Send")).to_be_visible()
    assert stops == [{"type": "stop", "turn": None}]
    [turn] = Turn.objects.filter(conversation__widget_id=host.row.pk)
    assert turn.status == "stopped"


def test_it_speaks_the_page_s_language_and_fills_a_phone(host, new_tab):
    host.lang = "zh-CN"
    page = new_tab(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(host.address)
    photograph(page, "widget-closed.zh-phone-dark")
    page.locator("button").click()
    frame = page.locator("iframe")
    chat = page.frame_locator("iframe")
    expect(chat.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(chat.get_by_label("你的问题")).to_be_visible()
    assert frame.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    chat.get_by_role("button", name="cite").click()
    expect(chat.locator(".cited li").first).to_contain_text("差旅管理办法.docx")
    assert look(page, "widget.zh", frame=page.frames[-1], whole=False) == []


def test_an_answer_that_comes_while_it_is_closed_leaves_a_mark(host, new_tab):
    page = new_tab()
    page.goto(host.address)
    page.get_by_role("button", name="Open the chat").click()
    chat = page.frame_locator("iframe")
    chat.get_by_label("Your question").fill("say 40 20")
    page.keyboard.press("Enter")
    expect(chat.locator(".answer")).to_contain_text("word")
    page.get_by_role("button", name="Close the chat").click()
    marked = page.get_by_role("button", name="Open the chat: there is a new answer")
    expect(marked).to_be_visible()
    mark = marked.evaluate("button => getComputedStyle(button, '::after').content")
    assert mark == '""'
    marked.click()
    expect(chat.locator(".answer")).to_contain_text("end.")
    page.get_by_role("button", name="Close the chat").click()
    expect(page.get_by_role("button", name="Open the chat", exact=True)).to_be_visible()


def test_a_site_with_a_strict_policy_needs_three_entries_of_it(host, new_tab):
    host.policy = STRICT.format(site=host.site)
    page = new_tab()
    page.goto(host.address)
    bubble = page.get_by_role("button", name="Open the chat")
    assert bubble.bounding_box()["width"] == 56, "its styles are there"
    bubble.click()
    chat = page.frame_locator("iframe")
    chat.get_by_label("Your question").fill("a draft")
    page.goto(f"{host.address}/second")
    expect(chat.get_by_label("Your question")).to_have_value("a draft")
    chat.get_by_label("Your question").press("Escape")
    expect(page.locator("iframe")).to_be_hidden()


def test_another_site_gets_nothing_and_is_told_why(host, new_tab, faults, people):  # noqa: F811
    from apps.widgets import services

    services.change_widget(widget=host.row, actor=people.ann, origins=["https://shop.example"])
    page = new_tab()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(host.address)
    page.wait_for_timeout(0)
    deadline = 600
    while not any("origin_not_allowed" in text for text in said) and deadline:
        page.wait_for_timeout(100)
        deadline -= 1
    assert any("origin_not_allowed" in text for text in said)
    assert page.locator("iframe").count() == 0
    faults.clear()  # the browser reports the 403 itself

    page.set_content(f'<iframe src="{host.site}/widget/{host.widget}/"></iframe>')
    page.wait_for_timeout(1500)
    assert "Ask Kestrel" not in page.frames[-1].content()
    faults.clear()
