"""A document's text with a passage highlighted where it stands."""

import re

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from apps.knowledge import sheets
from apps.knowledge.models import Chunk, Document

MARKDOWN = """# Plan

First paragraph with <b>HTML</b> & *emphasis*.

Second paragraph: the vault opens at nine.

| Day | Hour |
| --- | --- |
| Monday | nine |
| Sunday | closed |

最后一段：金库九点开门。
"""


@pytest.fixture
def document(acme, handbook, tmp_path):
    key = default_storage.save("documents/plan.md", ContentFile(MARKDOWN.encode()))
    row = Document(workspace=acme, knowledge_base=handbook, name="plan.md", size_bytes=1, sha256="1" * 64)
    row.status, row.generation, row.markdown_key = "indexed", 1, key
    row.save()
    for ordinal, part in enumerate(re.split(r"(?<=\n)\n", MARKDOWN)):
        start = MARKDOWN.index(part)
        Chunk.objects.create(
            knowledge_base=handbook, document=row, generation=1, level=0, ordinal=ordinal, text=part, start=start,
            end=start + len(part), page=1 + ordinal // 2,
        )  # fmt: skip
    return row


def marked(sheet):
    return [re.sub(r"<[^>]+>", "", part) for part in re.findall(r"<mark>(.*?)</mark>", sheet.html, flags=re.DOTALL)]


def passage(document, words):
    return Chunk.objects.get(document=document, text__contains=words)


def test_lines_of_a_pdf_stay_lines(document):
    assert "<br>" not in sheets.open_at(document).html
    document.content_type = "application/pdf"
    document.markdown_key = default_storage.save("documents/rows.md", ContentFile(b"4 4 OTSL 0.938\nHTML 0.952\n"))
    assert "4 4 OTSL 0.938<br>\nHTML 0.952" in sheets.open_at(document).html


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("vault", ["Second paragraph: the vault opens at nine."]),
        ("最后", ["最后一段：金库九点开门。"]),
        ("Monday", ["Day", "Hour", "Monday", "nine", "Sunday", "closed"]),
    ],
)
def test_a_passage_is_marked_in_its_document(document, words, expected):
    sheet = sheets.open_at(document, chunk=str(passage(document, words).pk))
    assert marked(sheet) == expected
    assert sheet.html.count('id="evidence"') == 1
    assert "First paragraph" in sheet.html


def test_a_part_of_a_paragraph_is_marked_by_its_place(document):
    start = MARKDOWN.index("the vault")
    sheet = sheets.open_at(document, start=str(start), end=str(start + len("the vault")))
    assert marked(sheet) == ["the vault"]


def test_html_of_the_document_stays_text(document):
    assert "&lt;b&gt;HTML&lt;/b&gt;" in sheets.open_at(document).html


def test_one_row_of_a_table_is_marked_where_the_claim_names_it(document):
    chunk = passage(document, "Monday")
    sheet = sheets.around(document, chunk_id=chunk.pk, text=chunk.text, start=chunk.start, claim="Sunday: closed")
    assert marked(sheet) == ["Sunday", "closed"]
    assert not sheet.missing


def test_a_passage_that_moved_is_found_by_its_words(document):
    chunk = passage(document, "vault")
    sheet = sheets.around(document, chunk_id=None, text=chunk.text.strip(), start=3, claim="")
    assert marked(sheet) == ["Second paragraph: the vault opens at nine."]
    assert not sheet.missing


def test_a_passage_that_is_gone_stands_alone_and_says_so(document):
    sheet = sheets.around(document, chunk_id=None, text="Words of an older edition.", start=3, claim="")
    assert marked(sheet) == ["Words of an older edition."]
    assert sheet.missing
    assert "vault" not in sheet.html


@pytest.mark.parametrize("asked", [{"chunk": "nonsense"}, {"start": "-4", "end": "x"}, {"first": "999999999999"}])
def test_an_address_may_hold_anything(document, asked):
    assert "First paragraph" in sheets.open_at(document, **asked).html


def test_pages_are_told_apart(document):
    assert '<small class="page">Page 2</small>' in sheets.open_at(document).html


def test_a_long_document_comes_in_windows(document, monkeypatch):
    monkeypatch.setattr(sheets, "PASSAGES_A_PAGE", 2)
    first = sheets.open_at(document)
    assert (first.first, first.last, first.next, first.previous) == (1, 2, 3, None)
    assert "vault" not in first.html
    second = sheets.open_at(document, first=str(first.next))
    assert (second.first, second.last, second.previous) == (3, 4, 1)
    assert "vault" in second.html
    assert marked(sheets.open_at(document, chunk=str(passage(document, "最后").pk))) == ["最后一段：金库九点开门。"]


LONG = "".join(f"Zeile {at}: 金库九点开门 – naïve.\n\n" for at in range(4_000))


class Counted:
    """An open file of which it is written down how much is read."""

    def __init__(self, file, read):
        self.file, self.counts, self.close = file, read, file.close

    def read(self, *size):
        piece = self.file.read(*size)
        self.counts.append(len(piece))
        return piece


@pytest.fixture
def long(document, monkeypatch):
    """A document whose text is many pieces, and the list of what was read of it, in bytes."""
    document.markdown_key = default_storage.save("documents/long.md", ContentFile(LONG.encode()))
    read, opened = [], default_storage.open

    def counting(*args):
        file = opened(*args)
        file.file = Counted(file.file, read)
        return file

    monkeypatch.setattr(sheets, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(default_storage, "open", counting)
    return document, read


def test_only_what_is_shown_is_read_of_a_long_document(long):
    document, read = long
    for start, end in ((0, 10), (990, 1_010), (20_000, 20_400), (333, 334)):
        read.clear()
        assert sheets.words_between(document, str(start), str(end)) == LONG[start:end]
        assert sum(read) <= len(LONG[:end].encode()) + 1_000
        assert max(read) <= 1_000
    read.clear()
    assert len(sheets.words_between(document, "5", str(len(LONG)))) == sheets.MOST_WORDS
    assert sum(read) < len(LONG.encode()) / 2
    for words in (LONG[:5], LONG[995:1_030], LONG[-30:], LONG[5_000:9_000]):
        assert sheets._place_of(document, words) == LONG.index(words)
    assert sheets._place_of(document, "nowhere") == -1
    assert sheets._stretch(document, len(LONG) - 7) == LONG[-7:]


def test_a_store_that_does_not_answer_is_an_error_and_no_empty_sheet(document, monkeypatch, ann):
    from apps.knowledge import page_pictures
    from apps.knowledge.errors import StorageFailed

    def down(*args, **more):
        raise OSError("connection refused")

    document.file.name = default_storage.save("documents/x.pdf", ContentFile(b"%PDF"))
    monkeypatch.setattr(default_storage, "open", down)
    with pytest.raises(StorageFailed):
        sheets.open_at(document)
    with pytest.raises(StorageFailed):
        page_pictures.draw(document, 1, actor=ann)
