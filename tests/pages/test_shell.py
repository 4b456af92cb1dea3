"""The frame of every page: by keyboard alone, with less motion, offline, and how much it weighs."""

import gzip
import re

import pytest
from django.contrib.staticfiles import finders
from django.urls import reverse
from playwright.sync_api import expect

from tests.pages.conftest import launched
from tests.pages.indoors import SITE, answer_from

FIRST_LOAD = 150_000  # bytes, compressed


SHEETS = ("tokens", "components", "pages", "chat", "widget", "widget-settings")
PHYSICAL = re.compile(
    r"[;{\s](?:(?:scroll-)?(?:margin|padding)-(?:left|right)|border-(?:left|right)[\w-]*|left|right"
    r"|border-(?:top|bottom)-(?:left|right)-radius)\s*:|(?:text-align|float|clear)\s*:\s*(?:left|right)"
)


def read(path):
    with open(finders.find(path), "rb") as file:  # noqa: PTH123 (found by name)
        return file.read()


def test_styles_know_start_and_end_but_neither_left_nor_right():
    assert PHYSICAL.search("a { left: 0 }")
    assert PHYSICAL.search("a{margin-left:0}")
    assert {name: PHYSICAL.findall(read(f"css/{name}.css").decode()) for name in SHEETS} == {
        name: [] for name in SHEETS
    }


def weight(page):
    """Bytes of a page with all that it loads, each compressed by itself as servers do; and the files' names."""
    waiting = set(re.findall(r'(?:href|src)="/static/([^"#]+)', page)) | {"img/icons.svg"}
    seen: set[str] = set()
    total = len(gzip.compress(page.encode()))
    while waiting:
        name = waiting.pop()
        seen.add(name)
        content = read(name)
        total += len(gzip.compress(content))
        if name.startswith("js/"):
            waiting |= {f"js/{other}" for other in re.findall(r'from "\./(.+?)"', content.decode())} - seen
    return total, seen


def test_a_first_load_is_small(client, ann, acme, handbook):
    client.force_login(ann)
    pages = {
        reverse("conversations:new-question", args=[acme.slug]),
        reverse("knowledge:show-knowledge-base", args=[acme.slug, handbook.pk]),
        reverse("agents:create-agent", args=[acme.slug]),
        reverse("models:list-models", args=[acme.slug]),
    }
    for address in pages:
        total, seen = weight(client.get(address).content.decode())
        assert {"css/tokens.css", "js/app.js", "js/palette.js"} <= seen
        assert total <= FIRST_LOAD


@pytest.fixture
def tab(client, ann, acme, handbook, faults):
    """A tab that ann's client answers, at a page of the workspace."""
    client.force_login(ann)
    with launched() as chromium:
        context = chromium.new_context(locale="en-GB", reduced_motion="reduce", contrast="more")
        answer_from(context, client)
        page = context.new_page()
        faults.watch(page)
        page.goto(SITE + reverse("workspaces:list-members", args=[acme.slug]))
        yield page


@pytest.mark.browser
def test_the_palette_leads_to_a_base_by_keyboard_alone(tab, acme, handbook):
    palette = tab.locator("#palette")
    tab.keyboard.press("Control+k")
    expect(tab.locator("#palette-q")).to_be_focused()
    expect(palette.locator("[role=option][aria-selected=true]")).to_have_count(1)
    tab.keyboard.type("hand")
    expect(palette.locator("[role=option]")).to_have_count(1)
    expect(palette.locator("[role=status]")).to_have_text("1 place")
    tab.keyboard.press("Escape")
    expect(palette).not_to_be_visible()
    tab.locator("[data-palette]").focus()
    tab.keyboard.press("Enter")
    tab.keyboard.type("lim")
    expect(palette.locator("[role=option]")).to_have_text(["Limits"])
    tab.keyboard.press("Control+a")
    tab.keyboard.type("hand")
    expect(palette.locator("[role=option]")).to_have_text(["Handbook"])
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowUp")
    chosen = palette.locator("[aria-selected=true]").get_attribute("id")
    assert tab.locator("#palette-q").get_attribute("aria-activedescendant") == chosen
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**/knowledge-bases/{handbook.pk}/")


@pytest.mark.browser
def test_a_keyboard_meets_the_way_past_the_menu_first_and_sees_where_it_is(tab):
    tab.keyboard.press("Tab")
    skip = tab.locator(".skip")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    tab.keyboard.press("Enter")
    assert tab.url.endswith("#main")
    tab.locator("[popovertarget=account-menu]").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("#account-menu")).to_be_visible()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.closest('#account-menu') !== null")
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.keyboard.press("Escape")
    expect(tab.locator("#account-menu")).not_to_be_visible()
    expect(tab.locator("[popovertarget=account-menu]")).to_be_focused()


@pytest.mark.browser
def test_less_motion_and_more_contrast_are_honoured_and_being_offline_is_said(tab):
    said = tab.evaluate(
        """() => {
            const style = getComputedStyle(document.documentElement);
            const bone = document.querySelector(".skeleton");
            return [style.getPropertyValue("--t2"), getComputedStyle(bone).animationName,
                    style.getPropertyValue("--line") === style.getPropertyValue("--control")];
        }"""
    )
    assert said == ["1ms", "none", True]
    tab.context.set_offline(True)
    expect(tab.locator("#offline")).to_be_visible()
    tab.context.set_offline(False)
    expect(tab.locator("#offline")).to_be_hidden()


def test_the_palette_is_a_page_where_no_script_runs(client, ann, acme, handbook, mal):
    client.force_login(ann)
    address = reverse("conversations:jump", args=[acme.slug])
    page = client.get(address, {"q": "hand"}).content.decode()
    assert "Handbook" in page
    assert 'role="option"' not in page
    assert "has “nowhere” in its name" in client.get(address, {"q": "nowhere"}).content.decode()
    part = client.get(address, {"q": "\x00<b>"}, headers={"hx-request": "true"}).content.decode()
    assert "<b>" not in part
    assert "<html" not in part


def test_the_palette_knows_english_names_and_offers_what_one_may_open(client, ann, bea, acme, handbook):
    address = reverse("conversations:jump", args=[acme.slug])
    found = {}
    for person in (ann, bea):
        client.force_login(person)
        page = client.get(address, {"q": "usage"}, headers={"hx-request": "true", "accept-language": "zh-hans"})
        found[person] = page.content.decode().count('role="option"')
    assert found == {ann: 1, bea: 0}
    handbook.restricted = True
    handbook.save()
    page = client.get(address, {"q": "Handbook"}, headers={"hx-request": "true"})
    assert page.content.decode().count('role="option"') == 0
