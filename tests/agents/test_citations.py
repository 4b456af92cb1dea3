"""Markers of the answer's stream."""

import random

import pytest

from apps.agents.citations import CitationFilter


def filtered(*texts, known=(1, 2, 3, 4, 5, 6, 7)):
    markers = CitationFilter(lambda n: n in known)
    return "".join(map(markers.feed, texts)) + markers.finish(), markers.unknown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ten days [[c1]].", "Ten days [[c1]]."),
        ("Ten days [[c1, c2]].", "Ten days [[c1]][[c2]]."),
        ("Ten days [[c1][c2]].", "Ten days [[c1]][[c2]]."),
        ("Ten days [[c1][c2][c9]] [[c3]].", "Ten days [[c1]][[c2]] [[c3]]."),
        ("See [c1][c2] and [[c1][c2", "See [[c1]][[c2]] and [[c1]][c2"),
        ("十天【c1】。", "十天[[c1]]。"),
        ("十天【【c1】】。", "十天[[c1]]。"),
        ("十天[[c1、c2]]。", "十天[[c1]][[c2]]。"),
        ("Ten [c1].", "Ten [[c1]]."),
        ("Ten [[C1]].", "Ten [[c1]]."),
        ("Ten [[ c1 ]].", "Ten [[c1]]."),
        ("Ten [[c1; 3]].", "Ten [[c1]][[c3]]."),
        ("Ten [[c01]]", "Ten [[c1]]"),
        ("Ten [[c1]", "Ten [[c1]]"),
        ("a[0], [1], [[1]] and [link](x) and [cat]", "a[0], [1], [[1]] and [link](x) and [cat]"),
        ("an open [[c1 here", "an open [[c1 here"),
        ("ends open [[c", "ends open [[c"),
    ],
)
def test_variants(text, shown):
    assert filtered(text)[0] == shown


def test_unknown_numbers_are_removed_and_counted():
    assert filtered("A [[c1]], B [[c9]], C [[c4, c77]].", known=(1, 4)) == ("A [[c1]], B , C [[c4]].", 2)
    assert filtered("[[c0]]") == ("", 1)


def test_any_cut_gives_the_same_text():
    text = (
        "Leave is ten days [[c1]]【c2】 [c3] [[C4, c9]]，[[c1、c2；3]] [x] [[y]] [c [[c [[c12 [[[c1]]] [[c1] [[c1](u) "
        "[[ c1 , c2 ]]]]【【c5】 c6 】[c][C7]［［c1］］[[c1]]. [[c1,\n\nc2]] [ [ c1 ] ] end [["
    )
    whole = filtered(text)
    rng = random.Random(7)
    for size in (1, 2, 3):
        assert filtered(*[text[i : i + size] for i in range(0, len(text), size)]) == whole
    for _ in range(500):
        cuts = sorted(rng.sample(range(1, len(text)), rng.randint(1, 25)))
        assert filtered(*[text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]) == whole


def test_any_cut_of_any_text_of_marker_characters():
    rng = random.Random(11)
    for _ in range(3000):
        text = "".join(rng.choice("[[]]【】［］ccC1239,，、; \nx(") for _ in range(rng.randint(1, 24)))
        cut = rng.randint(0, len(text))
        assert filtered(text[:cut], text[cut:]) == filtered(text) == filtered(*text), text


def test_it_holds_back_no_more_than_a_partial_marker():
    markers = CitationFilter(lambda n: True)
    assert markers.feed("A fact [[c1") == "A fact "
    assert markers.feed("]] and more") == "[[c1]] and more"
    assert markers.feed(" text without brackets") == " text without brackets"
