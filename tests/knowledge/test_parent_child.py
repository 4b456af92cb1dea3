"""The chunker parent_child: offsets, limits, nothing lost."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.common.errors import InvalidInput
from apps.knowledge.chunkers import validated_settings
from apps.knowledge.chunkers.drafts import CHILD, PARENT, PageMark
from apps.knowledge.chunkers.parent_child import ParentChildSettings, chunk

SMALL = ParentChildSettings(parent_size=240, parent_tokens=0, child_size=80, child_tokens=0)

words = st.text("ab é北京市的。，；!? .\t👩‍🔬🇩🇪\u0301", min_size=1, max_size=60)
lines = st.one_of(
    words,
    words.map(lambda text: f"# {text}"),
    words.map(lambda text: f"### {text}"),
    words.map(lambda text: f"- {text}"),
    st.sampled_from(["", "", "```", "~~~", "| a | b |", "|---|---|", "| 1 | 2 |", "====", "    ```", "---"]),
)
documents = st.lists(lines, max_size=60).map("\n".join)


def characters(text):
    return [character for character in text if not character.isspace()]


def count_words(text):
    return len(re.findall(r"\w+|[^\w\s]", text))


def cut(markdown, settings=SMALL, pages=(), count=count_words):
    return chunk(markdown, list(pages), settings, count)


@settings(max_examples=300, deadline=None)
@given(documents)
def test_every_character_is_in_exactly_one_passage_and_offsets_are_right(markdown):
    drafts = cut(markdown)
    parents = [draft for draft in drafts if draft.level == PARENT]
    assert characters("".join(markdown[draft.start : draft.end] for draft in parents)) == characters(markdown)
    for draft in drafts:
        assert markdown[draft.start : draft.end] in draft.text
        if not draft.text.startswith(("|", "```", "~~~")):
            assert draft.text.startswith(markdown[draft.start : draft.end])


@settings(max_examples=300, deadline=None)
@given(documents)
def test_children_cover_their_passage_and_nothing_is_above_its_limit(markdown):
    drafts = cut(markdown)
    for place, draft in enumerate(drafts):
        assert 0 < len(draft.text) <= (SMALL.parent_size if draft.level == PARENT else SMALL.child_size)
        if draft.level == PARENT:
            inside = [child for child in drafts if child.parent == place]
            spans = "".join(markdown[child.start : child.end] for child in inside)
            assert not inside or characters(spans) == characters(markdown[draft.start : draft.end])
            assert inside or len(draft.text) <= SMALL.child_size
        else:
            parent = drafts[draft.parent]
            assert parent.level == PARENT
            assert parent.start <= draft.start < draft.end <= parent.end


@settings(max_examples=100, deadline=None)
@given(documents, st.integers(16, 60))
def test_limits_in_tokens_hold(markdown, tokens):
    limits = ParentChildSettings(parent_size=400, parent_tokens=tokens, child_size=200, child_tokens=tokens)
    for draft in cut(markdown, limits, count=len):
        assert len(draft.text) <= tokens


@settings(max_examples=100, deadline=None)
@given(documents, st.integers(1, 40))
def test_overlap_never_stops_progress(markdown, overlap):
    limits = ParentChildSettings(parent_size=240, parent_tokens=0, child_size=80, child_tokens=0, child_overlap=overlap)
    children = [draft for draft in cut(markdown, limits) if draft.level == CHILD]
    for before, child in pairwise(children):
        assert child.end > before.end
        assert child.start > before.start
        assert len(child.text) <= limits.child_size


@pytest.mark.parametrize("marks", ["。；", ""])
def test_chinese_without_line_breaks_is_cut_at_its_own_marks(marks):
    piece = "知识库里的文件会被切成段落" * 3
    text = "".join(piece + (marks[at % 2] if marks else "") for at in range(800))[:30_000]
    limits = ParentChildSettings(parent_tokens=460, child_tokens=200)
    drafts = cut(text, limits, count=len)
    for draft in drafts:
        assert len(draft.text) <= (460 if draft.level == PARENT else 200)
        assert draft.text[0] not in "。；"
        if marks and draft.end < len(text):
            assert draft.text[-1] in marks


def test_no_chunk_begins_inside_what_a_reader_sees_as_one_character():
    family = "👩‍👩‍👧"
    text = family * 400 + "e\u0301" * 500
    for draft in cut(text):
        assert not unicodedata.combining(draft.text[0])
        assert draft.text[0] != "\u200d"
        assert draft.text[-1] != "\u200d"


def test_headings_and_fences_are_told_apart():
    markdown = "# A\n\n```\n# not a heading\n| a | b |\n```\n\n~~~\n```\n~~~\n\n    ```\n    code\n\n## B\n\ntext\n"
    passages = [draft for draft in cut(markdown) if draft.level == PARENT]
    assert [draft.heading for draft in passages] == ["A", "A > B"]
    assert passages[1].text == "## B\n\ntext"


def test_headings_above_a_text_go_with_it():
    (passage,) = cut("# Manual\n\n## Start\n\n### *First* `steps`\n\nSwitch it on.\n")
    assert passage.heading == "Manual > Start > First steps"
    assert passage.text.startswith("# Manual")


def test_a_long_table_repeats_its_header_and_cuts_no_row():
    rows = [f"| {at} | name {at} | {at * 7} | x |" for at in range(300)]
    table = "| no | name | price | note |\n|---|---|---|---|\n" + "\n".join(rows)
    drafts = cut("# Prices\n\n" + table, ParentChildSettings())
    parents = {draft.parent for draft in drafts}
    leaves = [draft for place, draft in enumerate(drafts) if place not in parents]
    for found in ([draft for draft in drafts if draft.level == PARENT], leaves):
        texts = [draft.text.removeprefix("# Prices\n\n") for draft in found]
        assert all(text.startswith("| no | name | price | note |\n|---|---|---|---|\n") for text in texts)
        assert [row for text in texts for row in text.splitlines()[2:]] == rows
        assert {draft.heading for draft in found} == {"Prices"}
        assert len(found) > 3


def test_a_table_of_a_header_alone_is_one_passage():
    (passage,) = cut("| a | b |\n|---|---|\n")
    assert passage.text == "| a | b |\n|---|---|"


def test_a_long_code_block_is_fenced_again():
    code = "\n".join(f"call({at})" for at in range(100))
    drafts = cut(f"````python\n{code}\n````\n")
    assert len(drafts) > 10
    for draft in drafts:
        assert draft.text.startswith("````python\n")
        assert draft.text.endswith("\n````")
        assert draft.text.count("````") == 2


def test_pages_follow_offsets():
    markdown = "first page text.\n\n" + "second page. " * 30
    pages = [PageMark(1, 0), PageMark(2, 18)]
    passages = [draft for draft in cut(markdown, pages=pages) if draft.level == PARENT]
    assert (passages[0].page, passages[-1].page, passages[-1].page_end) == (1, 2, 2)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"child_size": 100, "child_overlap": 100}, "child_overlap"),
        ({"child_size": 100, "child_overlap": 150}, "child_overlap"),
        ({"child_size": 100, "child_overlap": 60}, "child_overlap"),
        ({"child_overlap": -1}, "child_overlap"),
        ({"child_size": 0}, "child_size"),
        ({"parent_size": 300, "child_size": 400}, "child_size"),
        ({"parent_size": "1400"}, "parent_size"),
        ({"child_tokens": 3}, "child_tokens"),
        ({"sise": 3}, "sise"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(values, field):
    with pytest.raises(InvalidInput) as refused:
        validated_settings("parent_child", values)
    assert refused.value.details["field"] == field


def test_settings_are_checked_at_use_too():
    with pytest.raises(ValueError, match="child_overlap"):
        cut("text", ParentChildSettings(child_overlap=384))


def test_limits_follow_the_model_that_reads_the_chunks():
    assert ParentChildSettings().within(200) == ParentChildSettings(parent_tokens=200, child_tokens=200)
    assert ParentChildSettings(parent_tokens=0).within(8000).parent_tokens == 8000
    assert ParentChildSettings().within(8000) == ParentChildSettings()
