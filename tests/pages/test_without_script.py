"""Pages read and submit where scripts do not run."""

import time

import pytest
from playwright.sync_api import expect

from tests.conversations.live.conftest import db, people, server, session  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live-plain")]


@pytest.fixture
def page(chromium, server, people, session, new_tab):  # noqa: F811
    page = new_tab(java_script_enabled=False)
    address = f"http://127.0.0.1:{server.port}"
    page.context.add_cookies([{"name": "ks_session", "value": session, "url": address}])
    page.goto(f"{address}/{people.acme.slug}/")
    return page


def test_a_question_is_asked_answered_and_followed_up(page):
    page.get_by_label("Your question").fill("cite")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article .q")).to_have_text("cite")
    await_answer(page)
    expect(page.locator(".answer .cite").first).to_be_visible()
    page.get_by_label("Your question").fill("say 3")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article .q").nth(1)).to_have_text("say 3")
    await_answer(page, 1)
    page.locator(".sources .src").first.click()
    expect(page.get_by_role("link", name="Back to the answer")).to_be_visible()


def test_a_base_is_made_and_files_are_sent(page, tmp_path):
    page.get_by_role("link", name="Knowledge").click()
    page.get_by_role("button", name="New knowledge base").first.click()  # also in the empty list
    page.get_by_label("Name", exact=True).fill("Without script")
    page.get_by_role("button", name="Create knowledge base").click()
    files = [tmp_path / "one.md", tmp_path / "two.md"]
    for file in files:
        file.write_text(f"# {file.stem}\n\nText.")
    page.locator("input[type=file][name=file]").set_input_files(files)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#rows tr")).to_have_count(2)
    expect(page.locator(".toast")).to_contain_text("2 files added")


def await_answer(page, number=0):
    for _ in range(40):
        if page.locator("article").nth(number).get_attribute("data-status") == "succeeded":
            return
        time.sleep(0.25)
        page.reload()
    pytest.fail("no answer")
