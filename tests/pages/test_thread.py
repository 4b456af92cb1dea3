"""A conversation's page while answers are written: streaming, stop, breaks, other tabs, failures."""

import re
import time

import pytest
from playwright.sync_api import expect

from tests.conversations.live.conftest import conversation, db, people, server, session  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live-thread")]


LEFT_TO_THE_END = "element => element.scrollHeight - element.scrollTop - element.clientHeight"


@pytest.fixture
def open_tab(chromium, server, people, session, conversation, new_tab):  # noqa: F811
    """Return a function that opens the conversation in a tab of ann's."""

    def open_tab(*, prepare=lambda page: None, **options):
        page = new_tab(**options)
        address = f"http://127.0.0.1:{server.port}"
        page.context.add_cookies([{"name": "ks_session", "value": session, "url": address}])
        prepare(page)
        page.goto(f"{address}/{people.acme.slug}/conversations/{conversation.pk}/")
        return page

    return open_tab


def ask(page, text):
    page.get_by_label("Your question").fill(text)
    page.keyboard.press("Enter")


def await_status(page, status, number=0):
    expect(page.locator("article").nth(number)).to_have_attribute("data-status", status, timeout=20_000)


def until(true, *, within_s=15):
    """Wait for something that is not in the document's tree; the page's policy forbids Playwright's own way."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def shown(page, number=0):
    return re.sub(r"\s+", "", page.locator("article .answer").nth(number).inner_text())


def test_the_question_is_there_at_once_and_blocks_close_as_they_come(open_tab):
    page = open_tab()
    ask(page, "say 60 30")
    assert page.locator("article .q").inner_text() == "say 60 30"
    expect(page.locator("[data-stop]")).to_be_visible()
    expect(page.locator("[data-send]")).to_be_hidden()
    expect(page.locator(".open-block")).to_be_visible()
    expect(page.locator(".answer > p:not(.open-block)").first).to_be_visible()
    assert page.locator(".open-block").count() == 1
    await_status(page, "succeeded")
    expect(page.locator(".open-block")).to_have_count(0)
    expect(page.locator("[data-send]")).to_be_visible()
    written = shown(page)
    page.reload()
    assert shown(page) == written


def test_stop_keeps_what_was_written_and_the_next_question_works(open_tab):
    page = open_tab()
    ask(page, "say 500 20")
    expect(page.locator(".open-block")).to_contain_text("word")
    page.locator("[data-stop]").click()
    await_status(page, "stopped")
    expect(page.locator("article .note")).to_contain_text("Stopped by you")
    assert "word" in shown(page)
    page.locator("[data-retry]").click()
    expect(page.locator("[data-stop]")).to_be_visible()
    expect(page.locator(".open-block")).to_contain_text("word")
    page.locator("[data-stop]").click()
    await_status(page, "stopped")
    assert page.locator("article").count() == 1
    expect(page.locator(".versions")).to_contain_text("2 / 2")


def test_a_failure_keeps_the_text_and_says_what_to_do(open_tab):
    page = open_tab()
    ask(page, "crash")
    await_status(page, "failed")
    assert "Halfanans" in shown(page)
    expect(page.locator("article .note[data-s=bad]")).to_contain_text("ask again")


def test_after_a_break_the_answer_goes_on_where_it_was(open_tab, conversation):  # noqa: F811
    sockets, refusals = [], [True, True]

    def route(socket):
        sockets.append(socket)
        if len(sockets) > 1 and refusals:
            refusals.pop()
            socket.close(code=1012)
        else:
            socket.connect_to_server()

    page = open_tab(prepare=lambda page: page.route_web_socket("**/ws/**", route))
    ask(page, "say 120 20")
    expect(page.locator(".answer > p:not(.open-block)").first).to_be_visible()
    sockets[0].close(code=1012)
    expect(page.locator("[data-offline]")).to_be_visible(timeout=10_000)
    expect(page.locator("[data-offline-text]")).to_contain_text("Connection lost")
    page.locator("[data-reconnect]").click()
    await_status(page, "succeeded")
    expect(page.locator("[data-offline]")).to_be_hidden()
    written = shown(page)
    assert "118" in written
    page.reload()
    assert shown(page) == written


def test_a_question_asked_without_connection_waits_and_is_sent_once(open_tab, conversation):  # noqa: F811
    sockets, online = [], []

    def route(socket):
        sockets.append(socket)
        if online:
            socket.connect_to_server()
        else:
            socket.close(code=1012)

    page = open_tab(prepare=lambda page: page.route_web_socket("**/ws/**", route))
    ask(page, "cite")
    expect(page.locator("[data-steps-label]")).to_have_text("Waiting for the connection")
    online.append(True)
    await_status(page, "succeeded")
    assert conversation.turns.count() == 1


def test_a_frame_that_is_lost_is_asked_for_again(open_tab):
    """Of the numbered events some never arrive: the page sees the gap, and the text is whole all the same."""
    seen, lost, resumed = [], [], []

    def route(socket):
        beyond = socket.connect_to_server()

        def down(text):
            seen.append(text)
            if len(seen) in (6, 9):
                lost.append(text)
            else:
                socket.send(text)

        def up(text):
            if '"resume"' in text:
                resumed.append(text)
            beyond.send(text)

        beyond.on_message(down)
        socket.on_message(up)

    page = open_tab(prepare=lambda page: page.route_web_socket("**/ws/**", route))
    ask(page, "say 60 30")
    await_status(page, "succeeded")
    assert len(lost) == 2
    assert resumed
    written = shown(page)
    page.reload()
    assert shown(page) == written


@pytest.mark.parametrize("broken", [False, True], ids=["before-it-has-a-name", "without-connection"])
def test_a_stop_that_comes_too_early_counts(open_tab, broken):
    """Nothing of the server's reaches the page before Stop is clicked, or the connection is gone by then."""
    held, sockets, late = [], [], []

    def route(socket):
        beyond = socket.connect_to_server()
        sockets.append(socket)
        beyond.on_message(lambda text: held.append(text) if late else socket.send(text))

    page = open_tab(prepare=lambda page: page.route_web_socket("**/ws/**", route))
    until(lambda: page.evaluate("true") and sockets)
    if not broken:
        late.append(True)
    ask(page, "say 500 20")
    if broken:
        expect(page.locator(".open-block")).to_contain_text("word")
        sockets[0].close(code=1012)
    else:
        until(lambda: page.evaluate("true") and held)
    page.locator("[data-stop]").click()
    expect(page.locator("[data-stop]")).to_be_disabled()
    late.clear()
    for text in held:
        sockets[-1].send(text)
    await_status(page, "stopped")
    expect(page.locator("[data-stop]")).to_be_hidden()


def test_another_tab_sees_the_same_turn(open_tab):
    one, two = open_tab(), open_tab()
    ask(one, "say 60 30")
    expect(two.locator("article .q")).to_have_text("say 60 30")
    await_status(one, "succeeded")
    await_status(two, "succeeded")
    assert shown(one) == shown(two)


def test_a_tab_that_opens_in_the_middle_sees_it_all(open_tab):
    one = open_tab()
    ask(one, "say 80 20")
    expect(one.locator(".answer > p:not(.open-block)").first).to_be_visible()
    two = open_tab()
    await_status(two, "succeeded")
    assert shown(two).startswith("0word")


def test_markers_step_with_keys_and_escape_leads_back(open_tab):
    page = open_tab()
    ask(page, "cite")
    await_status(page, "succeeded")
    marker = page.locator(".answer .cite").first
    expect(marker).to_contain_text("差旅管理办法.docx")
    marker.click()
    expect(page.locator("#panel > header")).to_contain_text("差旅管理办法.docx")
    expect(page.locator("#panel .note")).to_contain_text("deleted, or it is not shared with you")
    page.keyboard.press("]")
    expect(page.locator("#panel > header")).to_contain_text("Travel policy.pdf")
    page.keyboard.press("[")
    expect(page.locator("#panel > footer")).to_contain_text("1 / 2")
    page.keyboard.press("Escape")
    expect(marker).to_be_focused()


def test_a_hostile_question_is_text(open_tab):
    page = open_tab()
    hostile = "nul <img src=x onerror=alert(1)> <script>alert(2)</script>"
    ask(page, hostile)
    await_status(page, "succeeded")
    assert page.locator("article .q").inner_text() == hostile
    assert page.locator("article img, article script").count() == 0


def test_a_draft_survives_a_reload_and_an_input_method_is_left_alone(open_tab):
    page = open_tab()
    field = page.get_by_label("Your question")
    field.fill("half a thou")
    page.reload()
    expect(field).to_have_value("half a thou")
    field.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    time.sleep(0.2)
    assert page.locator("article").count() == 0
    field.press("Shift+Enter")
    expect(field).to_have_value("half a thou\n")


def test_a_reader_who_scrolled_up_is_not_moved(open_tab):
    page = open_tab(viewport={"width": 900, "height": 500})
    ask(page, "say 300 60")
    thread = page.locator(".thread")
    until(lambda: thread.evaluate("element => element.scrollHeight") > 900)
    thread.evaluate("element => element.scrollTop = 0")
    expect(page.locator("[data-to-end]")).to_be_visible()
    time.sleep(0.5)
    assert thread.evaluate("element => element.scrollTop") == 0
    page.locator("[data-to-end]").click()
    until(lambda: thread.evaluate(LEFT_TO_THE_END) < 80)
    page.locator("[data-stop]").click()
    await_status(page, "stopped")
