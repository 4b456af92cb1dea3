"""Spreadsheets and tables as text, read in the sandbox: every row once, with the header that belongs to it."""

import datetime
import io
import re
import time
import zipfile

import msoffcrypto
import pytest
from msoffcrypto.format.ooxml import OOXMLFile
from openpyxl import Workbook
from openpyxl.styles import Font

from apps.knowledge.chunkers import cut
from apps.knowledge.parsers import PARSERS
from apps.knowledge.parsers.content_types import ENCRYPTED_OFFICE, XLSX
from apps.knowledge.parsers.parsed import ParseFailure
from apps.knowledge.remarks import remarks
from tests.knowledge.test_parsers import read, refused


def saved(workbook):
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def rows_of(markdown):
    return [line for line in markdown.splitlines() if line.startswith("|") and "---" not in line]


def test_a_gap_and_a_styled_cell_far_below_lose_and_cost_nothing():
    workbook = Workbook()
    sheet = workbook.active
    for row in [*range(1, 101), *range(701, 801)]:
        for column in range(1, 51):
            sheet.cell(row, column, f"v{row}_{column}")
    sheet.cell(1_048_576, 1).font = Font(bold=True)
    began = time.monotonic()
    rows = rows_of(read(saved(workbook), "a.xlsx").markdown)
    assert time.monotonic() - began < 10
    assert len(rows) == 200
    assert rows[-1].startswith("| v800_1 | v800_2 |")


def test_two_cells_in_far_corners_are_two_cells():
    workbook = Workbook()
    workbook.active["A1"] = "near"
    workbook.active["XFD1048576"] = "far"
    markdown = read(saved(workbook), "a.xlsx").markdown
    assert "near" in markdown
    assert "far" in markdown
    assert len(markdown) < 200


def test_rows_of_a_table_too_wide_for_its_header_to_be_repeated_name_each_value():
    names = [f"第{at}季度销售金额合计" for at in range(40)]
    rows = [names, *([f"{row}-{at}" if at % 2 else "" for at in range(40)] for row in range(30))]
    for name, data in (
        ("a.csv", "\n".join(",".join(row) for row in rows).encode()),
        ("a.xlsx", saved(workbook_of(rows))),
    ):
        markdown = read(data, name).markdown
        drafts = cut("by_heading", {}, markdown, [], most_tokens=460, count_tokens=len)
        found = [draft for draft in drafts if "17-" in draft.text]
        assert found, name
        for at in range(1, 40, 2):
            assert any(f"第{at}季度销售金额合计: 17-{at}" in draft.text for draft in found), (name, at)
    narrow = read(b"a,b\n1,2\n", "a.csv").markdown
    assert narrow == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def workbook_of(rows):
    workbook = Workbook()
    for row in rows:
        workbook.active.append(row)
    return workbook


def test_formulas_that_nothing_has_computed_yet_are_counted():
    workbook = workbook_of([["a", "b"], [1, "=A2*2"], [2, "=A3*2"]])
    parsed = read(saved(workbook), "a.xlsx")
    assert parsed.metadata["formulas_without_values"] == 2
    assert "2 formulas have no saved value" in remarks(parsed.metadata)[0]
    assert "formulas_without_values" not in read(saved(workbook_of([["a", "b"], [1, 2]])), "a.xlsx").metadata


def test_long_numbers_are_written_out():
    workbook = Workbook()
    workbook.active.append(["card", "share", "large"])
    workbook.active.append([6222021234567890, 0.1 + 0.2, 1e22])
    assert "| 6222021234567890 | 0.3 | 1e+22 |" in read(saved(workbook), "a.xlsx").markdown


def test_merged_cells_and_stacked_headers_stand_in_every_row():
    workbook = Workbook()
    sheet = workbook.active
    sheet.title = "销售"
    sheet.append(["地区", "2025年"])
    sheet.append([None, "一季度", "二季度"])
    for at in range(3):
        sheet.append(["华东" if not at else None, at + 1, 2.5])
    for area in ("A1:A2", "B1:C1", "A3:A5"):
        sheet.merge_cells(area)
    secret = workbook.create_sheet("底价")
    secret.append(["MARK_SECRET"])
    secret.sheet_state = "hidden"
    parsed = read(saved(workbook), "a.xlsx")
    assert parsed.markdown == (
        "## 销售\n\n| 地区 | 2025年 / 一季度 | 2025年 / 二季度 |\n| --- | --- | --- |\n"
        "| 华东 | 1 | 2.5 |\n| 华东 | 2 | 2.5 |\n| 华东 | 3 | 2.5 |"
    )
    assert parsed.metadata["hidden_sheets"] == "底价"


def test_a_formula_is_its_value_as_it_was_last_reckoned():
    workbook = Workbook()
    sheet = workbook.active
    sheet.append(["Item", "Price", "Twice"])
    sheet.append(["Heating", 21, "=B2*2"])
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(workbook))) as package, zipfile.ZipFile(out, "w") as changed:
        for name in package.namelist():
            data = package.read(name)
            if name.endswith("sheet1.xml"):
                assert b"<f>B2*2</f>" in data
                data = re.sub(rb"<f>B2\*2</f><v ?/>|<f>B2\*2</f><v></v>", b"<f>B2*2</f><v>42</v>", data)
            changed.writestr(name, data)
    assert "| Heating | 21 | 42 |" in read(out.getvalue(), "a.xlsx").markdown


def test_titles_stand_above_and_a_second_table_has_its_own_header():
    workbook = Workbook()
    sheet = workbook.active
    sheet.title = "Costs"
    for row in (["All costs of the year in one place"], ["what", "price"], ["rent", 10], [], ["who", "age"]):
        sheet.append(row)
    sheet.append(["Ann", datetime.date(1990, 2, 1)])
    assert read(saved(workbook), "a.xlsx").markdown == (
        "## Costs\n\nAll costs of the year in one place\n\n| what | price |\n| --- | --- |\n| rent | 10 |\n\n"
        "| who | age |\n| --- | --- |\n| Ann | 1990-02-01 |"
    )


def test_an_empty_workbook_and_a_broken_one_have_their_words():
    assert refused(saved(Workbook()), "a.xlsx") == "empty_file"
    assert refused(saved(Workbook())[:900], "a.xlsx") == "broken_file"


def test_a_locked_workbook_opens_with_its_password_only():
    workbook = Workbook()
    workbook.active["A1"] = "MARK_INSIDE"
    out = io.BytesIO()
    OOXMLFile(io.BytesIO(saved(workbook))).encrypt("open sesame", out)
    assert msoffcrypto.OfficeFile(out).is_encrypted()
    assert refused(out.getvalue(), "a.xlsx") == "password_required"
    parse = PARSERS.get(ENCRYPTED_OFFICE)
    assert "MARK_INSIDE" in parse(io.BytesIO(out.getvalue()), password="open sesame").markdown
    with pytest.raises(ParseFailure) as failure:
        parse(io.BytesIO(out.getvalue()), password="wrong")
    assert failure.value.code == "password_required"
    assert "MARK_INSIDE" in PARSERS.get(XLSX)(io.BytesIO(saved(workbook))).markdown


@pytest.mark.parametrize(
    ("data", "name", "rows"),
    [
        ("a,b\n1,2\n".encode("utf-8-sig"), "a.csv", ["| a | b |", "| 1 | 2 |"]),
        ("名称;价格\n苹果;1,5\n".encode("gb18030"), "a.csv", ["| 名称 | 价格 |", "| 苹果 | 1,5 |"]),
        ("a\tb, c\n1\t2\n", "a.tsv", ["| a | b, c |", "| 1 | 2 |"]),
        ('who,said\nAnn,"one,\ntwo | ""three"""\n', "a.csv", ["| who | said |", '| Ann | one, two \\| "three" |']),
        ("sep=|\na|b\n1|2\n", "a.csv", ["| a | b |", "| 1 | 2 |"]),
    ],
)
def test_tables_as_text(data, name, rows):
    assert rows_of(read(data, name).markdown) == rows


def test_a_wide_table_says_what_was_cut():
    parsed = read(",".join(f"c{at}" for at in range(300)) + "\n" + ",".join("1" * 300), "a.csv")
    assert parsed.metadata["truncated"] == "100 of 300 columns"


def test_a_quotation_mark_that_never_ends_costs_no_text():
    assert "MARK_END" in read('a,b\n1,"two\n3,4\nMARK_END,5\n', "a.csv").markdown
