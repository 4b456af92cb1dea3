"""Headless Chromium from the system, pages that keep what went wrong in them, and small real files."""

import os
import shutil
import zipfile
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.pages.looks import artefact

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
TIMEOUT_MS = 30_000
expect.set_options(timeout=TIMEOUT_MS)  # a machine that is busy with other tests is slow, not wrong
WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DOCX = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType='
    '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" Type="http://schemas.'
    'openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
}


@contextmanager
def launched():
    """A running Chromium, while Playwright keeps an event loop in the thread: Django is told to bear with it."""
    if not CHROMIUM:
        pytest.skip("Chromium is not installed")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium():
    """A running Chromium; it ends with the module, since tests of coroutines could not run beside it."""
    with launched() as browser:
        yield browser


class Faults(list):
    """What went wrong in a page: errors of its scripts, refused by its policy, answers of 400 and above."""

    def watch(self, page):
        page.on("console", lambda message: self.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.append(str(error)))


@pytest.fixture
def faults():
    """Faults of all pages of a test; asserted empty at its end unless the test has emptied it itself."""
    found = Faults()
    yield found
    assert found == []


@pytest.fixture
def new_tab(chromium, faults):
    """Return a function that opens a tab of a browser of its own."""
    contexts = []

    def new_tab(**options):
        context = chromium.new_context(**{"viewport": {"width": 1440, "height": 900}, "locale": "en-GB", **options})
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        faults.watch(page)
        return page

    yield new_tab
    for context in contexts:
        context.close()


def photograph(page, name):
    """Leave a picture of what a tab shows where pictures are asked for."""
    if path := artefact(name):
        page.screenshot(path=path)


def write_docx(path, paragraphs):
    """Write a small Word file."""
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in DOCX.items():
            file.writestr(name, content)
        file.writestr("word/document.xml", f'<w:document xmlns:w="{WORDS}"><w:body>{body}</w:body></w:document>')
    return path


def write_pdf(chromium, path, paragraphs):
    """Print a small PDF with Chromium itself."""
    page = chromium.new_page()
    page.set_content("<h1>Travel policy</h1>" + "".join(f"<p>{text}</p>" for text in paragraphs))
    page.pdf(path=str(path))
    page.close()
    return path
