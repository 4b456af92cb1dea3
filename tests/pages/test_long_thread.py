"""A conversation of a thousand turns in the browser: little is drawn, the past comes when one scrolls to it."""

import pytest
from playwright.sync_api import expect

from tests.conversations.live.conftest import db, people, server, session  # noqa: F401 (fixtures)
from tests.conversations.test_keeping import long_talk
from tests.pages.test_thread import ask, await_status, open_tab, until  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live-thread")]

ELEMENTS = "document.querySelectorAll('*').length"
TOP_OF = "(id) => document.getElementById(id).getBoundingClientRect().top"


@pytest.fixture
def conversation(people):  # noqa: F811
    return long_talk(people.acme, people.ann, 1000)[0]


def test_the_past_comes_as_one_scrolls_and_the_page_stays_small(open_tab, conversation):  # noqa: F811
    page = open_tab()
    thread, articles = page.locator(".thread"), page.locator(".thread > article")
    expect(articles).to_have_count(20)
    few = page.evaluate(ELEMENTS)
    page.locator(".thread").hover()
    most = few
    for drawn in (40, 60, 80, 80, 80):
        first = articles.first.get_attribute("id")
        thread.evaluate("element => element.scrollTop = 40")
        page.mouse.wheel(0, -10)
        until(lambda first=first: articles.first.get_attribute("id") != first)
        expect(articles).to_have_count(drawn)
        assert abs(page.evaluate(TOP_OF, first)) < 400, "what was being read stays in sight"
        most = max(most, page.evaluate(ELEMENTS))
    assert most < few * 5
    # Far up the newest turns are not there any more: a link leads back, and a question follows the newest.
    expect(page.locator("[data-latest]")).to_be_visible()
    ask(page, "say 3")
    expect(page.locator("article .q").last).to_have_text("say 3")
    await_status(page, "succeeded", page.locator("article").count() - 1)
    assert conversation.turns.order_by("-number").first().parent.number == 1000


def test_a_link_into_the_past_opens_there(open_tab, conversation):  # noqa: F811
    page = open_tab()
    old = conversation.turns.get(number=500)
    page.goto(f"{page.url}?turn={old.pk}#turn-{old.pk}")
    expect(page.locator(f"#turn-{old.pk}")).to_be_in_viewport()
    page.locator("[data-latest] a").click()
    expect(page.locator("article .q").last).to_have_text("Question 1000")
