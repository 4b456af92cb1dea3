"""Ruled tables of PDFs: in place, with merged cells, over page breaks, and for no longer than they may take."""

import time

import pytest

from apps.knowledge.parsers import pdf_tables
from apps.knowledge.parsers.pdf import parse_pdf
from tests.knowledge.files import pdf, ruled
from tests.knowledge.test_parsers import read

ROWS = [["Item", "Price", "Stock"], *([f"item {at}", f"{at}.50", f"{at * 3}"] for at in range(40))]


def line(y, text):
    return (60, y, 10, text)


def test_a_table_stands_between_the_texts_around_it():
    page = [
        line(740, "What follows is a table of our prices that everybody should know."),
        *ruled([["Item", "Price"], ["Nail | 5 mm", "0.10"], ["Screw", "0.20"]], 700),
        line(600, "What came before was the table of our prices, and this is its end."),
    ]
    assert read(pdf([page]), "a.pdf").markdown == (
        "What follows is a table of our prices that everybody should know.\n\n"
        "| Item | Price |\n| --- | --- |\n| Nail \\| 5 mm | 0.10 |\n| Screw | 0.20 |\n\n"
        "What came before was the table of our prices, and this is its end."
    )


def test_a_cell_that_spans_columns_repeats_its_text():
    rows = [["2025", None, "Sum"], ["Q1", "Q2", ""], ["1", "2", "3"]]
    assert read(pdf([ruled(rows, 700)]), "a.pdf").markdown == (
        "| 2025 | 2025 | Sum |\n| --- | --- | --- |\n| Q1 | Q2 |  |\n| 1 | 2 | 3 |"
    )


@pytest.mark.parametrize("header_again", [False, True])
def test_a_table_that_goes_on_over_the_page_has_its_header_on_both(header_again):
    first, second = ROWS[:31], [*ROWS[:1], *ROWS[31:]] if header_again else ROWS[31:]
    parsed = read(pdf([ruled(first, 720), ruled(second, 720)]), "a.pdf")
    texts = [parsed.markdown[: parsed.pages[1][1]], parsed.markdown[parsed.pages[1][1] :]]
    rows = [text.strip().splitlines() for text in texts]
    assert [one[0] for one in rows] == ["| Item | Price | Stock |"] * 2
    assert [row for one in rows for row in one[2:]] == [f"| {' | '.join(row)} |" for row in ROWS[1:]]


def test_a_frame_around_prose_and_an_empty_form_are_no_tables():
    frame = ["50 500 m 550 500 l S", "50 700 m 550 700 l S", "50 500 m 50 700 l S", "550 500 m 550 700 l S"]
    text = [line(650 - 14 * at, f"Line {at} of a text in a frame") for at in range(5)]
    assert "|" not in read(pdf([[*frame, *text]]), "a.pdf").markdown
    form = [["Name", "", ""], ["", "", ""], ["", "", ""], ["", "", ""]]
    assert "|" not in read(pdf([ruled(form, 700)]), "a.pdf").markdown


def test_tables_take_no_longer_than_they_may(monkeypatch, tmp_path):
    data = pdf([ruled(ROWS[:30], 720)] * 3)
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    monkeypatch.setattr(pdf_tables, "BUDGET_S", 0.0)
    with path.open("rb") as file:
        parsed = parse_pdf(file)
    assert parsed.metadata["tables_skipped"] == 3
    assert "item 7" in parsed.markdown
    assert "| item 7" not in parsed.markdown


def test_a_page_of_strokes_is_left_alone():
    strokes = [f"{at % 500} {at % 700} m {at % 500 + 9} {at % 700} l S" for at in range(30_000)]
    began = time.monotonic()
    assert "A map" in read(pdf([[*strokes, line(700, "A map of the whole town with all streets")]]), "a.pdf").markdown
    assert time.monotonic() - began < 20
