"""A knowledge base's page in the browser: files come and go, rows move by themselves."""

import pytest
from playwright.sync_api import expect

from tests.conversations.live.conftest import db, people, server, session  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live-documents")]


@pytest.fixture
def base(people, request):  # noqa: F811
    from apps.knowledge.services import create_knowledge_base

    return create_knowledge_base(workspace=people.acme, name=request.node.name[:90], actor=people.ann)


@pytest.fixture
def page(chromium, server, people, session, base, new_tab):  # noqa: F811
    page = new_tab()
    address = f"http://127.0.0.1:{server.port}"
    page.context.add_cookies([{"name": "ks_session", "value": session, "url": address}])
    page.goto(f"{address}/{people.acme.slug}/knowledge-bases/{base.pk}/")
    return page


def drop(page, *files):
    """Drop files on the page, as a mouse would."""
    transfer = page.evaluate_handle(
        """files => {
            const transfer = new DataTransfer()
            for (const [name, text] of files) transfer.items.add(new File([text], name))
            return transfer
        }""",
        list(files),
    )
    page.dispatch_event(".drop", "drop", {"dataTransfer": transfer})


def test_many_files_are_dropped_and_each_gets_its_row(page, base):
    drop(page, *[(f"note {number}.md", f"# Note {number}\n\nText.") for number in range(6)])
    expect(page.locator("#rows tr")).to_have_count(6)
    expect(page.locator(".uploads li")).to_have_count(0)
    expect(page.locator("#counts")).to_contain_text("6 in progress")
    assert base.documents.count() == 6


def test_a_file_that_is_refused_says_why_beside_the_others(page, base, faults):
    drop(page, ("good.md", "# Good\n\nText."), ("empty.md", ""))
    expect(page.locator("#rows tr")).to_have_count(1)
    expect(page.locator(".uploads .err")).to_contain_text("nothing in it to read")
    page.locator(".uploads button").click()
    expect(page.locator(".uploads li")).to_have_count(0)
    assert all("422" in fault for fault in faults)
    faults.clear()


def test_the_row_follows_the_document_and_stops_asking_when_it_is_settled(page, base):
    drop(page, ("slow.md", "# Slow\n\nText."))
    expect(page.locator("#rows [name=row]")).to_have_count(1)
    base.documents.update(status="parsing", progress=0.4)
    expect(page.locator("td.opt-s .pill")).to_have_text("Reading 40%")
    expect(page.locator("td.opt-s progress")).to_have_attribute("value", "40")
    base.documents.update(status="indexed", progress=0, chunk_count=7)
    expect(page.locator("td.opt-s .pill")).to_have_text("Indexed")
    expect(page.locator("#rows tr")).to_contain_text("7")
    expect(page.locator("#poll")).to_have_attribute("hx-trigger", "resume")


def test_cancel_retry_delete_undo(page, base):
    drop(page, ("plan.md", "# Plan\n\nText."))
    row = page.locator("#rows tr")
    row.get_by_role("button", name="Cancel").click()
    expect(row.locator(".err")).to_contain_text("Stopped on request")
    row.get_by_role("button", name="Try again").click()
    expect(row.locator("td.opt-s .pill")).to_have_text("Uploaded")
    base.documents.update(status="indexed")
    row.get_by_role("button", name="More actions for plan.md").click()
    page.locator("#row-menu").get_by_role("button", name="Delete").click()
    page.get_by_role(
        "button", name="Undo"
    ).hover()  # or it is gone in ten seconds, which a slow machine takes for what follows
    expect(row).to_have_count(0)
    expect(page.locator("#row-menu")).to_be_hidden()
    expect(page.locator("#counts")).to_contain_text("0 documents")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#rows tr")).to_have_count(1)


def test_the_filter_finds_names_and_keeps_its_address(page):
    drop(page, ("红色 plan.md", "# 1"), ("blue plan.md", "# 2"))
    expect(page.locator("#rows tr")).to_have_count(2)
    page.get_by_label("Filter by name").fill("红")
    expect(page.locator("#rows tr")).to_have_count(1)
    assert "q=%E7%BA%A2" in page.evaluate("location.href")
    page.reload()
    expect(page.locator("#rows tr")).to_have_count(1)


def test_a_text_that_no_form_may_carry_stays_where_it_was_typed(page):
    page.goto(f"{page.url}texts/")
    page.fill("[name=name]", "Rules")
    fill = "(area, count) => { area.style.display = 'none'; area.value = '规'.repeat(count); }"  # not laid out
    page.eval_on_selector("textarea", fill, 2 << 20)
    page.click("button[type=submit].primary")
    expect(page.locator("#toasts")).to_contain_text("more than the 5 MB")
    assert page.evaluate("document.querySelector('textarea').value.length") == 2 << 20
    page.eval_on_selector("textarea", fill, 1 << 20)
    page.click("button[type=submit].primary")
    expect(page.locator("#rows tr")).to_contain_text("Rules")
