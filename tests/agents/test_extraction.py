"""The built-in answerer's parts: sentences, and which of them answer."""

import pytest

from apps.models.builtin.extraction import Text, extract
from apps.models.builtin.sentences import is_chinese, sentences, terms


def test_sentences_of_prose_lists_and_tables():
    text = (
        "# A heading\n\nFirst **bold** point. Version 2.1 is out! See [the guide](http://x.test).\n"
        "- A list item\n1. Another one\n\n| Name | Age |\n|---|---|\n| Ann. | 9 |\n| Bea |  |\n\n---\n"
        "第一句。第二句“引用。”第三句！"
    )
    assert list(sentences(text)) == [
        "First bold point.",
        "Version 2.1 is out!",
        "See the guide.",
        "A list item",
        "Another one",
        "Name: Ann; Age: 9",
        "Name: Bea",
        "第一句。",
        "第二句“引用。”",
        "第三句！",
    ]


def test_an_abbreviation_does_not_end_a_sentence():
    text = "It wins clearly (65.2% vs. 33.3%), as Lee et al. 2019 found. The rest, e.g. Table 2, follows."
    assert list(sentences(text)) == [
        "It wins clearly (65.2% vs. 33.3%), as Lee et al. 2019 found.",
        "The rest, e.g. Table 2, follows.",
    ]


def test_terms_of_both_languages():
    assert terms("How many points did C++ score in 2024?") == {"point", "c++", "score", "2024"}
    assert terms("年假有多少天？") == {"年假", "天"}
    assert is_chinese("年假 policy 有多少天？")
    assert not is_chinese("What does 年假 mean here exactly?")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was the bridge opened?", "The bridge was opened in May 1932."),
        ("Who designed the bridge?", "John Bradfield designed it with a team of engineers."),
        ("How long is the bridge?", "The bridge is 1,149 metres long."),
    ],
)
async def test_the_sentence_that_answers_comes_first(question, answer):
    text = (
        "The bridge was opened in May 1932. John Bradfield designed it with a team of engineers. "
        "The bridge is 1,149 metres long. Painters are always at work on the bridge."
    )
    found = await extract(question, [Text(3, text, "Harbour Bridge")])
    assert found.answers
    assert found.sentences[0].text == answer
    assert found.sentences[0].n == 3


async def test_rows_of_figures_answer_only_who_asks_for_figures():
    text = "4 4 OTSL 0.938 0.904 0.927 0.853 1.97\n\nOTSL is read twice as fast as HTML, with the same score."
    found = await extract("What is the advantage of OTSL?", [Text(1, text, "Results")])
    assert [sentence.text[:12] for sentence in found.sentences] == ["OTSL is read"]
    row = [Text(1, text.partition("\n")[0], "Results")]
    assert not (await extract("What is the advantage of OTSL?", row)).sentences
    assert (await extract("How much does OTSL score?", row)).sentences


async def test_nothing_to_read_answers_nothing():
    assert not (await extract("When?", [])).answers
    assert not (await extract("When?", [Text(1, "# Only a heading\n\n---")])).answers


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How do I upload a folder of files?", "Drag a folder onto the page to upload all its files."),
        ("怎样上传一个文件夹？", "把文件夹拖到页面上，就会上传其中的全部文件。"),
    ],
)
async def test_documents_in_two_languages_answer_in_that_of_the_question(question, answer):
    english = Text(1, "Drag a folder onto the page to upload all its files. Each one is read in its turn.")
    chinese = Text(2, "把文件夹拖到页面上，就会上传其中的全部文件。文件会逐个读取。")
    for passages in ([english, chinese], [chinese, english]):
        found = await extract(question, passages)
        assert found.answers
        assert found.sentences[0].text == answer
        assert len({sentence.n for sentence in found.sentences}) == 1
