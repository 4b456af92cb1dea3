"""The chunkers by_heading and three_level, delimiters of a base's own, and that a preview is what gets indexed."""

import re
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.common.errors import InvalidInput
from apps.knowledge import chunkers, services
from apps.knowledge.chunkers import CHUNKERS, SETTINGS, by_heading, three_level, validated_settings
from apps.knowledge.chunkers.by_heading import ByHeadingSettings
from apps.knowledge.chunkers.drafts import MIDDLE, OUTER, PARENT, PageMark
from apps.knowledge.chunkers.three_level import ThreeLevelSettings
from apps.knowledge.models import Chunk, ChunkVector, Posting
from apps.knowledge.services.previewing import chunk_preview
from tests.knowledge.test_parent_child import characters, count_words, documents

SMALL = ThreeLevelSettings(
    l1_size=300, l1_overlap=50, l2_size=200, l2_overlap=30, l3_size=100, l3_overlap=20, l3_tokens=0
)


def cut(chunker, markdown, pages=(), most_tokens=8_000, **values):
    return chunkers.cut(chunker, values, markdown, pages, most_tokens=most_tokens, count_tokens=count_words)


# By heading


def test_each_section_is_a_chunk_and_deeper_headings_stand_inside():
    markdown = "# A\n\nintro\n\n## B\n\nabout b\n\n#### D\n\ndeep\n\n## C\n\nabout c\n"
    found = cut("by_heading", markdown, heading_level=2)
    assert [(draft.heading, draft.text) for draft in found] == [
        ("A", "# A\n\nintro"),
        ("A > B", "## B\n\nabout b\n\n#### D\n\ndeep"),
        ("A > C", "## C\n\nabout c"),
    ]
    assert {draft.level for draft in found} == {PARENT}
    assert [draft.ordinal for draft in found] == [0, 1, 2]


@settings(max_examples=200, deadline=None)
@given(documents, st.integers(1, 6))
def test_sections_hold_every_character_once_within_their_limit(markdown, deepest):
    limits = ByHeadingSettings(size=120, tokens=0, heading_level=deepest)
    found = by_heading.chunk(markdown, [], limits, count_words)
    assert characters("".join(markdown[draft.start : draft.end] for draft in found)) == characters(markdown)
    assert all(0 < len(draft.text) <= 120 for draft in found)


def test_an_overlap_repeats_within_a_section_only():
    sentences = [f"Sentence number {at} of it." for at in range(30)]
    markdown = "# A\n\n" + " ".join(sentences) + "\n\n# B\n\nAnother section."
    found = cut("by_heading", markdown, size=200, overlap=60)
    parts = [draft for draft in found if draft.heading == "A"]
    assert all(0 < before.end - after.start <= 60 for before, after in pairwise(parts))
    assert found[-1].text == "# B\n\nAnother section."
    assert all(len(draft.text) <= 200 for draft in found)


def test_a_long_table_repeats_its_header_in_each_of_the_three():
    rows = [f"| {at} | name {at} | {at * 7} | x |" for at in range(300)]
    table = "# Prices\n\n| no | name | price | note |\n|---|---|---|---|\n" + "\n".join(rows)
    for chunker in CHUNKERS:
        found = [draft for draft in cut(chunker, table) if draft.level == PARENT]
        texts = [draft.text.removeprefix("# Prices\n\n") for draft in found]
        assert all(text.startswith("| no | name | price | note |\n|---|---|---|---|\n") for text in texts), chunker
        assert [row for text in texts for row in text.splitlines()[2:]] == rows, chunker
        assert {draft.heading for draft in found} == {"Prices"}, chunker


# Three levels


@settings(max_examples=200, deadline=None)
@given(st.lists(documents, min_size=1, max_size=4))
def test_three_levels_of_each_page_lie_in_one_another(texts):
    markdown, marks = "", []
    for number, text in enumerate(texts, start=1):
        marks.append(PageMark(number, len(markdown)))
        markdown += text + "\n\n"
    found = three_level.chunk(markdown, marks, SMALL, count_words)
    sizes = {OUTER: (300, 50), MIDDLE: (200, 30), PARENT: (100, 20)}
    levels = defaultdict(list)
    for place, draft in enumerate(found):
        size, overlap = sizes[draft.level]
        assert 0 < len(draft.text) <= size
        assert draft.page == draft.page_end
        before = levels[draft.level][-1] if levels[draft.level] else None
        assert draft.ordinal == len(levels[draft.level])
        if before:
            assert before.start < draft.start or before.page != draft.page
            assert before.end - draft.start <= overlap
        levels[draft.level].append(draft)
        if draft.level == OUTER:
            assert draft.parent is None
        else:
            parent = found[draft.parent]
            assert draft.parent < place
            assert parent.level == {MIDDLE: OUTER, PARENT: MIDDLE}[draft.level]
            assert parent.start <= draft.start < draft.end <= parent.end
    for drafts in levels.values():  # without its overlaps each level is the document
        reached, seen = 0, ""
        for draft in drafts:
            seen += markdown[max(reached, draft.start) : draft.end]
            reached = max(reached, draft.end)
        assert characters(seen) == characters(markdown)


def test_the_sizes_and_ids_of_the_levels():
    text = " ".join(f"This is sentence {at} of a page that has a good many of them." for at in range(120))
    found = cut("three_level", f"{text}\n\n{text}", pages=[(1, 0), (2, len(text) + 2)])
    longest = {level: max(len(d.text) for d in found if d.level == level) for level in (OUTER, MIDDLE, PARENT)}
    assert 2_300 < longest[OUTER] <= 2_400
    assert 1_500 < longest[MIDDLE] <= 1_600
    assert 700 < longest[PARENT] <= 800
    last = found[-1]
    key = three_level.key("file", page=last.page, level=last.level, ordinal=last.ordinal)
    assert re.fullmatch(r"file::2::3::\d+", key)
    assert three_level.key("file", page=None, level=OUTER, ordinal=0) == "file::0::1::0"


def test_what_is_embedded_fits_the_model():
    text = "知识库里的文件会被切成段落。" * 300
    found = cut("three_level", text, most_tokens=100)
    assert max(count_words(draft.text) for draft in found if draft.level == PARENT) <= 100
    assert chunkers.cut("three_level", {}, text, [], most_tokens=460, count_tokens=len)[0].level == OUTER


# Delimiters


@pytest.mark.parametrize("chunker", ["by_heading", "parent_child"])
@pytest.mark.parametrize(
    ("values", "text", "parts"),
    [
        ({"delimiter": "。"}, "甲。乙。\n\n丙", ["甲。", "乙。", "丙"]),
        ({"delimiter": r"\n"}, "one\ntwo\n\nthree", ["one", "two", "three"]),
        ({"delimiter": r"\n\n"}, "one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ({"delimiter": "."}, "a.b", ["a.", "b"]),
        ({"delimiter": "(*"}, "a(*b", ["a(*", "b"]),
        ({"delimiter": r"\d\)", "delimiter_is_regex": True}, "x 1) y 2) z", ["x 1)", "y 2)", "z"]),
        ({"delimiter": "=="}, "```\na == b\n```\n\nc == d", ["```\na == b\n```", "c ==", "d"]),
        ({}, "甲。乙。\n\n丙", ["甲。乙。\n\n丙"]),
    ],
)
def test_a_chunk_ends_at_each_delimiter(chunker, values, text, parts):
    assert [draft.text for draft in cut(chunker, text, **values) if draft.level == PARENT] == parts


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"delimiter": "(", "delimiter_is_regex": True}, "delimiter"),
        ({"delimiter": "x*", "delimiter_is_regex": True}, "delimiter"),
        ({"delimiter": "x" * 201}, "delimiter"),
        ({"delimiter": 3}, "delimiter"),
        ({"delimiter_is_regex": 1}, "delimiter_is_regex"),
        ({"size": 100, "overlap": 60}, "overlap"),
        ({"heading_level": 7}, "heading_level"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(values, field):
    with pytest.raises(InvalidInput) as refused:
        validated_settings("by_heading", values)
    assert refused.value.details["field"] == field


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"l2_size": 2_500}, "l2_size"),
        ({"l3_size": 1_700}, "l3_size"),
        ({"l3_overlap": 500}, "l3_overlap"),
        ({"l1_overlap": -1}, "l1_overlap"),
    ],
)
def test_levels_that_do_not_fit_into_one_another_are_refused(values, field):
    with pytest.raises(InvalidInput) as refused:
        validated_settings("three_level", values)
    assert refused.value.details["field"] == field


def test_a_pattern_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr("apps.knowledge.chunkers.delimiters.MATCHING_S", 0.2)
    with pytest.raises(InvalidInput, match="delimiter"):
        cut("by_heading", "a" * 60 + "b", delimiter=r"(?:a|aa|aaa)+c", delimiter_is_regex=True)


def test_every_setting_is_described_for_a_form():
    for chunker in CHUNKERS:
        described = SETTINGS.get(chunker).described()
        defaults = SETTINGS.get(chunker)()
        assert [setting.name for setting in described][-1].startswith("delimiter") == (chunker != "three_level")
        for setting in described:
            assert getattr(defaults, setting.name) == setting.default
            if isinstance(setting.default, int):
                assert setting.least <= setting.default <= setting.most


# In a base

LONG = "# Rules\n\n" + "\n\n".join(
    f"Rule {at} says that holiday number {at} is granted by desk {at}." for at in range(60)
)


@pytest.mark.parametrize("chunker", ["by_heading", "three_level"])
def test_a_preview_is_what_gets_indexed(acme, ann, ingest, chunker):
    base = services.create_knowledge_base(workspace=acme, name=chunker, actor=ann, chunker=chunker)
    document = ingest(LONG, knowledge_base=base)
    assert document.status == document.Status.INDEXED
    previewed = chunk_preview(document=document, chunker=chunker, chunker_settings={})
    rows = {(chunk.level, chunk.ordinal): chunk for chunk in Chunk.objects.filter(document=document)}
    assert {place: chunk.text for place, chunk in rows.items()} == {
        (draft.level, draft.ordinal): draft.text for draft in previewed
    }
    passages = [chunk for chunk in rows.values() if chunk.level == Chunk.PARENT]
    assert document.chunk_count == len(passages) > 1
    vectors = ChunkVector.objects.filter(document=document)
    assert {vector.pk: vector.passage_id for vector in vectors} == {chunk.pk: chunk.pk for chunk in passages}
    assert set(Posting.objects.filter(document_id=document.pk).values_list("chunk_id", flat=True)) == {
        chunk.pk for chunk in passages
    }
    if chunker == "three_level":
        for chunk in passages:
            assert chunk.parent.level == MIDDLE
            assert chunk.parent.parent_id == chunk.root_id
            assert chunk.parent.parent.level == OUTER
    with pytest.raises(InvalidInput):
        chunk_preview(document=document, chunker=chunker, chunker_settings={"nothing": 1})
