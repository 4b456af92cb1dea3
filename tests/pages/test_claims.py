"""Which part of a passage a claim rests on."""

import pytest

from apps.knowledge.claims import best_span, claim_before

POLICY = """## 4 Flights

4.1 Flights are booked at least 14 days before departure.

4.3 Economy class is the rule. Where the flight exceeds eight hours, business class may be booked.

- Receipts are handed in within 30 days.
- Late receipts are not paid."""
CHINESE = "原则上乘坐经济舱。\n\n航班计划飞行时间超过八小时的，可预订商务舱。\n\n深圳的每日补贴为人民币九百元。"


@pytest.mark.parametrize(
    ("passage", "claim", "expected"),
    [
        (
            POLICY,
            "Flights are booked at least 14 days ahead",
            "4.1 Flights are booked at least 14 days before departure.",
        ),
        (POLICY, "Receipts must be in within 30 days.", "- Receipts are handed in within 30 days."),
        (CHINESE, "飞行超过八小时可预订商务舱", "航班计划飞行时间超过八小时的，可预订商务舱。"),
        (CHINESE, "深圳每日补贴九百元", "深圳的每日补贴为人民币九百元。"),
    ],
)
def test_the_paragraph_that_shares_most_is_found(passage, claim, expected):
    start, end = best_span(passage, claim)
    assert passage[start:end] == expected


def test_of_a_long_paragraph_only_the_sentence():
    long = "Nothing of note is said here at all. " * 20 + "The vault opens at nine. " + "More of the same follows. " * 5
    start, end = best_span(long, "The vault opens at nine.")
    assert long[start:end].strip() == "The vault opens at nine."


@pytest.mark.parametrize("label", ["({})", "（{}）", "{}.", "{}、", "•"])
def test_an_item_of_a_list_is_a_paragraph_of_its_own(label):
    items = [
        f"{label.format(n)} {text}" for n, text in enumerate(["学以致用存在差距。", "创新能力不足，不追求创新。"], 1)
    ]
    passage = "\n".join(items)
    start, end = best_span(passage, items[1])
    assert passage[start:end] == items[1]


def test_of_a_block_of_lines_only_the_line():
    rows = "\n".join(f"{n} {n} MODEL 0.{n}38 0.{n}04 1.{n}7" for n in range(10, 40))
    start, end = best_span(rows, "12 12 MODEL 0.1238 0.1204 1.127")
    assert rows[start:end].strip() == "12 12 MODEL 0.1238 0.1204 1.127"


@pytest.mark.parametrize("claim", ["", "Die Antwort steht in einer anderen Sprache", "？"])
def test_where_nothing_is_shared_the_whole_passage(claim):
    assert best_span(CHINESE, claim) == (0, len(CHINESE))


def test_the_claim_is_the_sentence_before_its_own_marker():
    answer = "Economy is the rule[[c1]]. Business needs consent[[c2]][[c1]].\n\n原则上乘坐经济舱[[c3]]。"
    assert claim_before(answer, 1) == "Economy is the rule"
    assert claim_before(answer, 1, 1) == "Business needs consent"
    assert claim_before(answer, 3) == "原则上乘坐经济舱"
    assert claim_before(answer, 9) == ""
    row = "- format: HTML; endings: .html, .htm; notes: tables are kept."
    assert claim_before(f"- format: Word; endings: .docx [[c1]]\n{row} [[c1]]", 1, 1) == row
