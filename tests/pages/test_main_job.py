"""The whole main job in a real browser: sign up, upload, ask in two languages, open the paragraph.

The server is the product's own supervisor in a state folder of its own: web, worker, database and
the built-in models, with nothing configured.
"""

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect

from knowsphere import environment
from tests.pages.conftest import write_docx, write_pdf
from tests.platform.conftest import Home
from tests.platform.test_supervisor import free_port

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("embedded-server")]
EMAIL, PASSWORD = "lin.yue@hengshan.example", "correct horse battery"
ENGLISH = [
    "This policy applies to everybody at Hengshan Instruments who travels for work.",
    "Flights are booked through the travel desk at least fourteen days before departure.",
    "Where the scheduled flight time exceeds eight hours, business class may be booked with the written "
    "consent of the head of department.",
    "The daily allowance in Munich is ninety-five euros.",
]
CHINESE = [
    "信息安全事件响应预案",
    "任何员工发现笔记本电脑丢失后，须在一小时内报告值班负责人。",
    "值班负责人须建立事件记录，并通知数据保护负责人。",
    "演练每年举行两次，由信息安全部组织。",
]


@pytest.fixture(scope="module")
def address(tmp_path_factory, chromium):
    """The product as ``make run`` leaves it, without the make."""
    home = Home(tmp_path_factory.mktemp("main-job") / "var")
    home.path.mkdir()
    port = free_port()
    with (home.path / "log").open("w") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "knowsphere.supervisor"],
            cwd=environment.CHECKOUT,
            env=home.environment(PORT=str(port)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        await_server(url, home)
        yield url
    finally:
        supervisor.terminate()
        supervisor.wait(60)
        home.clean()


def await_server(url, home):
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=2)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    pytest.fail((home.path / "log").read_text())


def evidence(page):
    """The yellow words of the open source, without white space at the ends."""
    page.locator("#panel mark").first.wait_for()
    return " ".join(page.locator("#panel mark").all_inner_texts()).strip()


def test_from_sign_up_to_the_cited_paragraph(address, chromium, new_tab, tmp_path):
    page = new_tab()
    page.goto(address)
    page.get_by_role("link", name="Sign up").click()
    page.get_by_label("E-mail").fill(EMAIL)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()

    # The first run takes the first documents, and shows them being read and indexed without a reload.
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask your own documents")
    files = [
        write_pdf(chromium, tmp_path / "Travel policy.pdf", ENGLISH),
        write_docx(tmp_path / "响应预案.docx", CHINESE),
    ]
    page.locator("[data-upload] input[type=file][name=file]").set_input_files(files)
    page.wait_for_url("**/knowledge-bases/**")
    expect(page.locator("td.opt-s .pill[data-s=indexed]")).to_have_count(2, timeout=90_000)
    expect(page.locator("#counts")).to_have_text(re.compile("2 documents, 2 ready to answer from"))

    # The first question leads into a conversation, whose answer streams in.
    page.get_by_role("link", name="New question").click()
    expect(page.locator(".plan [data-s=ok]")).to_have_text("Documents ready")
    page.get_by_label("Your question").fill("When may business class be booked?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/conversations/**")
    expect(page.locator("article .q")).to_have_text("When may business class be booked?")
    answer = page.locator("article").first
    expect(answer).to_have_attribute("data-status", "succeeded", timeout=60_000)
    expect(answer.locator(".answer")).to_contain_text("exceeds eight hours")
    expect(answer.locator(".steps")).not_to_have_attribute("open", "")
    answer.locator(".answer .cite").first.click()
    assert "exceeds eight hours" in evidence(page)
    expect(page.locator("#panel > header")).to_contain_text("Travel policy.pdf")

    # The second one, in Chinese, goes through the same page's socket.
    page.get_by_label("Your question").fill("笔记本电脑丢失后多久之内要报告？")
    page.keyboard.press("Enter")
    second = page.locator("article").nth(1)
    expect(second).to_have_attribute("data-status", "succeeded", timeout=60_000)
    expect(second.locator(".answer")).to_contain_text("一小时内")
    second.locator(".answer .cite").first.press("Enter")
    expect(page.locator("#panel > header")).to_contain_text("响应预案.docx")
    assert "一小时内报告值班负责人" in evidence(page)

    # What was streamed is what a reload shows, and the document's own page marks the same words.
    written = second.locator(".answer").inner_text()
    page.reload()
    assert page.locator("article").nth(1).locator(".answer").inner_text() == written
    page.locator("article").nth(1).locator(".answer .cite").first.click()
    page.locator("#panel mark").first.wait_for()
    page.get_by_role("link", name="Open the document").click()
    expect(page.locator(".paper mark").first).to_be_in_viewport()
    expect(page.locator(".paper mark").first).to_contain_text("一小时内")
    with page.expect_download() as download:
        page.get_by_role("link", name="Original").click()
    assert download.value.suggested_filename == "响应预案.docx"


FIRST = {
    "zh-CN": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "color_scheme": "dark"},
    "en-GB": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
}


@pytest.mark.parametrize("locale", FIRST)
def test_one_click_leads_from_signing_up_to_the_first_cited_answer(address, new_tab, tmp_path, locale):
    page = new_tab(locale=locale, **FIRST[locale])
    page.goto(f"{address}/accounts/signup/")
    page.locator("[name=email]").fill(f"{locale}@hengshan.example")
    page.locator("[name=password1]").fill(PASSWORD)
    page.locator("button.primary").click()
    expect(page.locator(".first-steps li")).to_have_count(4)
    page.locator("[data-ask-sample] button").click()
    page.wait_for_url("**/conversations/**")
    answer = page.locator("article").first
    expect(answer).to_have_attribute("data-status", "succeeded", timeout=60_000)
    marker = answer.locator(".answer .cite").first
    marker.click()
    page.locator("#panel mark").first.wait_for()
    if locale == "zh-CN":
        page.keyboard.press("Escape")
        expect(page.locator("#panel")).not_to_be_visible()
        expect(marker).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    # The step is done, the next one takes a file, the guide suggests more, and the steps go when they are told to.
    page.goto(address)
    expect(page.locator(".first-steps li[data-s=ok]")).to_have_count(1)
    (tmp_path / "own.md").write_text("# Own\n\nThe lift is inspected in May.", encoding="utf-8")
    page.locator(".first-steps [data-upload] [type=file]").set_input_files(tmp_path / "own.md")
    page.wait_for_url("**/knowledge-bases/**")
    expect(page.locator("#rows tr")).to_contain_text("own.md")
    page.goto(address)
    expect(page.locator(".first-steps li[data-s=ok]")).to_have_count(2)
    page.locator(".first-steps header button").click()
    expect(page.locator(".first-steps")).to_have_count(0)
    suggested = page.locator("[data-suggest]").all_inner_texts()
    page.locator("[data-suggest]").nth(1).click()
    page.wait_for_url("**/conversations/**")
    for number, question in enumerate([None, *suggested[2:]]):
        if question:
            page.locator("#question").fill(question)
            page.keyboard.press("Enter")
        expect(page.locator("article").nth(number)).to_have_attribute("data-status", "succeeded", timeout=60_000)
        assert page.locator("article").nth(number).locator(".answer .cite").count() > 0
