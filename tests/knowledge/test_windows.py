"""Long documents, a window at a time: the same passages as at once, and no more than a window in memory."""

import io

import pytest
from django.core.files.storage import default_storage
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.knowledge import chunkers
from apps.knowledge.chunkers.windows import in_windows
from apps.knowledge.models import Chunk, ChunkVector, Document
from apps.knowledge.sandbox import reader
from apps.knowledge.services import ingestion
from apps.knowledge.services.previewing import chunk_preview
from tests.knowledge.test_ingestion import rows

MODULE = __import__("sys").modules["apps.knowledge.chunkers.windows"]
LINE = st.sampled_from(
    [
        "# A\n",
        "## B\n",
        "### C\n",
        "\n",
        "```\n",
        "~~~\n",
        "| a | b |\n",
        "|---|---|\n",
        "words 中文\n",
        "x" * 90 + "\n",
    ]
)


def text(sections=30):
    parts = []
    for at in range(sections):
        parts.append(f"# Part {at}\n\n" if at % 3 == 0 else f"## Section {at}\n\n")
        parts.append(f"The heating of house {at} is off in summer. " * 10 + "\n\n")
    return "".join(parts)


def cut(markdown, chunker="parent_child", pages=()):
    return chunkers.cut(chunker, {}, markdown, pages, most_tokens=460, count_tokens=lambda part: len(part) // 4)


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(MODULE, "LONGEST", 1_500)


@pytest.mark.parametrize("chunker", ["parent_child", "by_heading", "three_level"])
def test_windows_change_no_passage_that_ends_at_a_heading(chunker, monkeypatch):
    markdown = text()
    whole = cut(markdown, chunker)
    monkeypatch.setattr(MODULE, "LONGEST", 1_500)
    assert len(list(in_windows(markdown))) > 5
    parts = cut(markdown, chunker)
    assert {draft.heading for draft in parts} == {draft.heading for draft in whole}
    for level in {draft.level for draft in parts}:
        assert [draft.ordinal for draft in parts if draft.level == level] == list(
            range(sum(draft.level == level for draft in parts))
        )
    for draft in parts:
        assert markdown[draft.start : draft.end] == draft.text
        if draft.parent is not None:
            above = parts[draft.parent]
            assert above.start <= draft.start
            assert draft.end <= above.end
    if chunker != "three_level":  # whose largest stretches know no headings
        assert parts == whole


@settings(max_examples=60, deadline=None)
@given(st.lists(LINE, max_size=80).map("".join))
def test_windows_are_the_text_whatever_it_is_and_a_stream_gives_the_same(markdown):
    before, MODULE.LONGEST = MODULE.LONGEST, 100
    try:
        found = list(in_windows(markdown))
        streamed = list(in_windows(io.TextIOWrapper(io.BytesIO(markdown.encode()), "utf-8", newline="\n")))
        drafts = cut(markdown)
    finally:
        MODULE.LONGEST = before
    assert "".join(window.text for window in found) == markdown
    assert "".join(window.text for window in streamed) == markdown
    if len(found) > 1:
        assert [(one.start, one.above) for one in found] == [(one.start, one.above) for one in streamed]
    words = "".join(draft.text for draft in drafts if draft.level == 0 and "```" not in draft.text)
    assert "".join(words.split()).count("中") <= markdown.count("中")


def test_pages_of_a_window_are_those_that_have_a_part_in_it(narrow):
    markdown = text()
    pages = [(number, number * 700) for number in range(len(markdown) // 700)]
    pages[0] = (0, 0)
    for draft in cut(markdown, pages=pages):
        assert draft.page == draft.start // 700 or draft.page == pages[-1][0]


@pytest.mark.django_db
def test_a_long_document_is_indexed_a_window_at_a_time(ingest, narrow, monkeypatch):
    monkeypatch.setattr(ingestion, "HELD_BYTES", 1_000)
    monkeypatch.setattr(reader, "HELD_BYTES", 1_000)
    monkeypatch.setattr(reader, "BLOCK_BYTES", 701)  # which cuts characters in two
    document = ingest(text().replace("Section 5", "第五节\x00"))
    with default_storage.open(document.markdown_key) as stored:
        assert stored.read().decode().strip() == text().strip().replace("Section 5", "第五节")
    assert (document.status, document.failed_chunks) == (Document.Status.INDEXED, 0)
    chunks = list(Chunk.objects.filter(document=document).order_by("level", "ordinal"))
    preview = chunk_preview(document=document, chunker="parent_child", chunker_settings={})
    expected = sorted((draft.level, draft.ordinal, draft.heading, draft.text) for draft in preview)
    assert [(chunk.level, chunk.ordinal, chunk.heading, chunk.text) for chunk in chunks] == expected
    assert rows(document)[1] == len(chunks)
    assert document.chunk_count == sum(chunk.level == 0 for chunk in chunks)
    levels = {chunk.pk: chunk.level for chunk in chunks}
    assert all(levels[chunk.parent_id] == 0 for chunk in chunks if chunk.level == 1)
    assert {vector.passage_id for vector in ChunkVector.objects.all()} == {pk for pk in levels if levels[pk] == 0}
