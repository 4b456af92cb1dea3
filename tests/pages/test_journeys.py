"""What people do with a conversation in the browser: in Chinese on a dark phone, in English on a light desk."""

import re

import pytest
from playwright.sync_api import expect

from tests.conversations.live.conftest import conversation, db, people, server, session  # noqa: F401 (fixtures)
from tests.conversations.scripted import DOCUMENT
from tests.knowledge.files import pdf
from tests.pages.conftest import photograph
from tests.pages.test_thread import ask, await_status, open_tab, shown  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live-thread")]

DESK = {"viewport": {"width": 1440, "height": 900}, "locale": "en-GB", "color_scheme": "light"}
PHONE = {"viewport": {"width": 390, "height": 844}, "locale": "zh-CN", "color_scheme": "dark", "has_touch": True}


@pytest.fixture(params=["en-desk-light", "zh-phone-dark"])
def page(request, open_tab, faults):  # noqa: F811
    page = open_tab(**(DESK if request.param.startswith("en") else PHONE))
    expect(page.locator("html")).to_have_attribute("lang", "en" if request.param.startswith("en") else "zh-hans")
    yield page
    photograph(page, f"{request.node.originalname.removeprefix('test_')}.{request.param}")


def tell(page, text):
    page.locator("#question").fill(text)
    page.keyboard.press("Enter")


def last(page):
    return page.locator("article").last


def no_sideways(page):
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_edit_regenerate_and_step_through_versions(page):
    tell(page, "say 3")
    await_status(page, "succeeded")
    tell(page, "say 4")
    await_status(page, "succeeded", 1)
    page.locator("article").first.locator("[data-edit]").click()
    field = page.locator(".edit textarea")
    expect(field).to_be_focused()
    field.fill("say 5")
    field.press("Enter")
    expect(page.locator("article")).to_have_count(1)
    expect(page.locator("article .q")).to_have_text("say 5")
    await_status(page, "succeeded")
    expect(page.locator(".versions")).to_contain_text("2 / 2")
    page.locator("[data-again] > button[type=submit]").click()
    expect(page.locator(".versions")).to_contain_text("3 / 3")
    await_status(page, "succeeded")
    no_sideways(page)
    page.locator(".versions a").first.click()
    expect(page.locator(".versions")).to_contain_text("2 / 3")
    page.locator(".versions a").first.click()
    expect(page.locator(".versions")).to_contain_text("1 / 3")
    expect(page.locator("article")).to_have_count(2)
    tell(page, "history")
    await_status(page, "succeeded", 2)
    assert "say3" in shown(page, 2)
    assert "say5" not in shown(page, 2)
    page.locator("article").first.locator("[data-edit]").click()
    page.keyboard.press("Escape")
    expect(page.locator(".edit")).to_have_count(0)
    expect(page.locator("article").first.locator("[data-edit]")).to_be_focused()


def test_a_question_waits_behind_the_answer_and_may_be_withdrawn(page):
    tell(page, "wait")
    expect(page.locator(".open-block")).to_contain_text("Waiting")
    tell(page, "say 3")
    expect(page.locator("article").nth(1).locator("[data-withdraw]")).to_be_visible()
    tell(page, "say 4")
    page.locator("article").nth(1).locator("[data-withdraw]").click()
    await_status(page, "stopped", 1)
    expect(page.locator("[data-stop]")).to_be_visible()
    page.locator("[data-stop]").click()
    await_status(page, "stopped", 0)
    await_status(page, "succeeded", 2)
    page.reload()
    assert [page.locator("article").nth(n).get_attribute("data-status") for n in range(3)] == [
        "stopped",
        "stopped",
        "succeeded",
    ]


def test_a_thumb_asks_why_and_keeps_it(page):
    tell(page, "cite")
    await_status(page, "succeeded")
    page.locator(".thumbs button[value=bad]").first.click()
    why = page.locator(".why")
    expect(why.locator("textarea")).to_be_visible()
    why.locator("input[value=incomplete]").check()
    why.locator("textarea").fill("No date.")
    why.locator("input[name=kept]").check()
    why.locator("button.primary").click()
    expect(page.locator(".why")).not_to_have_attribute("open", "")
    page.reload()
    assert page.locator(".thumbs button").nth(1).get_attribute("aria-pressed") == "true"
    page.locator(".why summary").click()
    expect(page.locator(".why textarea")).to_have_value("No date.")
    no_sideways(page)


def test_rename_pin_archive_search_and_delete_with_undo(page):
    tell(page, "say 3 0 needle-in-hay")
    await_status(page, "succeeded")

    def menu(selector):
        page.locator("[popovertarget=talk-menu]").click()
        page.locator(f"#talk-menu {selector}").click()

    menu("[popovertarget=rename-talk-menu]")
    page.locator("#title-talk-menu").fill("Hay and 针")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Hay and 针")
    menu("button[name=pinned]")
    menu("button[name=archived]")
    expect(page.locator(".toast")).to_be_visible()
    page.goto(re.sub(r"conversations/.*", "conversations/all/?q=needle", page.url))
    expect(page.locator(".found").first).to_have_text("needle")
    no_sideways(page)
    page.locator(".talks [popovertarget=row-menu]").first.click()
    page.locator(".talk-menu:popover-open .bad").click()
    expect(page.locator(".toast form button")).to_be_visible()
    page.locator(".toast form button").click()
    expect(page.locator("h1")).to_have_text("Hay and 针")


def test_share_outside_and_take_it_back(page, new_tab, faults):
    tell(page, "cite")
    await_status(page, "succeeded")
    expect(page.locator(".thread-title")).to_have_text("cite")
    page.locator("[popovertarget=talk-menu]").click()
    page.locator("#talk-menu [popovertarget=share]").click()
    page.locator("#share .switch").check()
    page.locator("#share button.primary").click()
    link = page.locator("#share-link").input_value()
    stranger = new_tab(**PHONE)
    stranger.goto(link)
    expect(stranger.locator(".answer")).to_contain_text("Economy class is booked")
    assert stranger.locator(".src").count() == 2
    assert "Travel policy" not in stranger.content()
    no_sideways(stranger)
    page.locator("#share .danger").click()
    expect(page.locator("#share-link")).to_have_count(0)
    stranger.reload()
    assert "/accounts/login/" in stranger.url


def test_files_by_choice_paste_and_drop(page, tmp_path):
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nTen days.")
    page.locator("[data-attach]").set_input_files(notes)
    expect(page.locator(".composer .files [data-id]")).to_have_count(1, timeout=60_000)
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["# More"], "more.md", { type: "text/markdown" }));
            const field = document.getElementById("question");
            field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
            document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.locator(".composer .files [data-id]")).to_have_count(3, timeout=60_000)
    page.locator(".composer .files button").nth(2).click()
    expect(page.locator(".composer .files [data-id]")).to_have_count(2)
    no_sideways(page)
    tell(page, "say 3")
    expect(page.locator(".composer .files li")).to_have_count(0)
    await_status(page, "succeeded")
    expect(page.locator("article .files")).to_contain_text("more.md")
    page.reload()
    expect(page.locator("article .files a")).to_have_count(2)


def test_a_file_that_is_refused_says_why(page, tmp_path, faults):
    file = tmp_path / "program.exe"
    file.write_bytes(b"MZ\x90\x00" + b"\x00" * 64)
    page.locator("[data-attach]").set_input_files(file)
    expect(page.locator(".composer .files [data-s=bad]")).to_be_visible()
    expect(page.locator(".toast[data-s=bad]")).to_be_visible()
    assert [fault for fault in faults if "415" not in fault] == []
    faults.clear()


PAGES = [
    [(72, 720, 12, f"Page {number} of the travel policy.")] if number < 9 else
    [(72, 720, 12, "Nine."), (72, 690, 12, "Economy class is booked."), (72, 660, 12, "Trains come first.")]
    for number in range(1, 10)
]  # fmt: skip
TEXT = "Nine.\n\nEconomy class is booked.\n\nTrains come first.\n\n住宿标准为每晚 600 元。"


@pytest.fixture
def policy(people):  # noqa: F811
    """The document that the scripted answer cites, a PDF of nine pages."""
    from django.core.files.base import ContentFile
    from django.core.files.storage import default_storage

    from apps.knowledge.models import Chunk, Document, KnowledgeBase

    base = KnowledgeBase.objects.create(workspace=people.acme, name="Policies", created_by=people.ann)
    row = Document(pk=DOCUMENT, workspace=people.acme, knowledge_base=base, name="Travel policy.pdf", sha256="1" * 64)
    row.content_type, row.status, row.generation, row.page_count, row.size_bytes = "application/pdf", "indexed", 1, 9, 9
    row.markdown_key = default_storage.save("documents/policy.md", ContentFile(TEXT.encode()))
    row.file.save("policy.pdf", ContentFile(pdf(PAGES)), save=False)
    row.save(force_insert=True)
    Chunk.objects.create(
        knowledge_base=base, document=row, generation=1, level=0, ordinal=0, text=TEXT, start=0, end=len(TEXT), page=9
    )
    yield row
    base.delete()


def test_a_marker_opens_the_page_itself_with_the_sentence_highlighted(page, policy):
    tell(page, "cite")
    await_status(page, "succeeded")
    page.locator(".answer .cite").nth(1).click()
    panel = page.locator("#panel")
    drawn = panel.locator("[data-page-picture] img")
    expect(drawn).to_be_visible()
    drawn.evaluate("image => image.complete || new Promise((done) => image.addEventListener('load', done))")
    assert drawn.evaluate("image => image.naturalWidth") > 1000
    expect(panel.locator(".paper mark")).to_have_count(1)
    no_sideways(page)
    photograph(page, f"source-of-a-pdf.{page.viewport_size['width']}")


@pytest.fixture
def another(people):  # noqa: F811
    """A model of the workspace beside the built-in one."""
    from apps.models.models import ModelConfig

    row = ModelConfig.objects.create(
        workspace=people.acme, kind="chat", name="Another", base_url="http://127.0.0.1:9/v1"
    )
    yield row
    row.delete()


def test_stop_go_on_and_ask_another_model(page, another, conversation):  # noqa: F811
    page.reload()
    tell(page, "say 500 20")
    expect(page.locator(".open-block")).to_contain_text("word")
    page.locator("[data-stop]").click()
    await_status(page, "stopped")
    page.locator("[data-continue]").click()
    await_status(page, "succeeded", 1)
    page.reload()
    page.locator("article").first.locator("[data-again] [popovertarget]").click()
    page.locator(f":popover-open button[value='{another.pk}']").click()
    page.locator("[data-stop]").click()
    await_status(page, "stopped")
    expect(page.locator(".versions")).to_contain_text("2 / 2")
    assert conversation.turns.get(number=3).options["model"] == str(another.pk)
    no_sideways(page)


def test_what_is_suggested_is_asked_and_the_whole_is_taken_along_as_a_file(page, policy, conversation):  # noqa: F811
    with page.expect_response("**/suggestions/"):  # what the page itself asked for is there, and is none
        tell(page, "cite")
    await_status(page, "succeeded")
    conversation.turns.update(suggestions=["say 4", "say 5"])
    page.reload()
    page.locator("[data-suggest-next]").first.click()
    await_status(page, "succeeded", 1)
    expect(page.locator("article .q").last).to_have_text("say 4")
    for place, holds in enumerate(("[^1-1]: ", '"sources"')):
        page.locator("[popovertarget=talk-menu]").click()
        with page.expect_download() as download:
            page.locator("#talk-menu a[download]").nth(place).click()
        assert holds in download.value.path().read_text(encoding="utf-8")
        page.keyboard.press("Escape")


def test_where_to_look_and_the_language_go_with_the_question(page, policy, conversation):  # noqa: F811
    page.reload()
    page.locator("[popovertarget=bases]").click()
    page.locator("#bases input[name=kb]").first.check()
    expect(page.locator("[data-bases-label]")).to_have_text("Policies")
    page.keyboard.press("Escape")
    page.locator("#answer-language").select_option("zh-hans")
    tell(page, "say 3")
    await_status(page, "succeeded")
    options = conversation.turns.get().options
    assert options["knowledge_bases"] == [str(policy.knowledge_base_id)]
    assert options["language"] == "zh-hans"
    no_sideways(page)


def test_a_slow_network_takes_longer_and_loses_nothing(page):
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 20_000}
    network.send("Network.emulateNetworkConditions", slow)
    page.reload()
    tell(page, "say 60 30")
    await_status(page, "succeeded")
    written = shown(page)
    assert written.startswith("0word")
    page.reload()
    assert shown(page) == written


def test_without_connection_a_question_waits_and_is_asked_once(page, conversation):  # noqa: F811
    online = []
    page.route_web_socket("**/ws/**", lambda socket: socket.connect_to_server() if online else socket.close(code=1012))
    page.reload()
    tell(page, "cite")
    expect(page.locator("[data-offline]")).to_be_visible()
    no_sideways(page)
    photograph(page, f"offline.{page.viewport_size['width']}")
    online.append(True)
    page.locator("[data-reconnect]").click()
    await_status(page, "succeeded")
    expect(page.locator("[data-offline]")).to_be_hidden()
    assert conversation.turns.count() == 1
