"""Rich text, dBase, XPS, Visio and the old binary office files, read in the sandbox."""

import struct

import pytest

from tests.knowledge.test_more_formats import zipped
from tests.knowledge.test_parsers import read, refused

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def test_rich_text_code_pages_unicode_tables_and_silent_groups():
    text = (
        r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset134 SimSun;}}{\*\generator MARK_GONE;}"
        r"{\info{\title MARK_GONE}}\f0 caf\'e9 {\f1\'b1\'b1\'be\'a9} \uc1\u8364 ?5 "
        r"{\field{\*\fldinst MARK_GONE}{\fldrslt link}}"
        r"\par\u-10179?\u-8704? end\par\trowd a\cell b\cell\row\trowd 1\cell 2\cell\row after\par}"
    )
    markdown = read(text, "a.rtf").markdown
    assert markdown == "café 北京 €5 link\n\n😀 end\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nafter"


def test_rich_text_that_is_empty_or_nests_without_end():
    assert refused(r"{\rtf1\ansi}", "a.rtf") == "empty_file"
    assert refused(r"{\rtf1 " + "{" * 50_000, "a.rtf") == "broken_file"


def dbf(rows, code_page=0):
    fields = [(b"NAME", b"C", 10), (b"DAY", b"D", 8)]
    start = 32 + 32 * len(fields) + 1
    head = struct.pack("<BBBBIHH17xBxx", 3, 124, 1, 1, len(rows), start, 19, code_page)
    described = b"".join(
        name.ljust(11, b"\0") + kind + bytes(4) + bytes([size]) + bytes(15) for name, kind, size in fields
    )
    return head + described + b"\r" + b"".join(rows) + b"\x1a"


def test_a_dbase_table_without_its_deleted_rows():
    rows = [b" " + "北京".encode("gbk").ljust(10) + b"20240229", b"*" + b"MARK_GONE ".ljust(10) + b"20240229"]
    parsed = read(dbf(rows, 0x4D), "a.dbf")
    assert parsed.markdown == "| NAME | DAY |\n| --- | --- |\n| 北京 | 2024-02-29 |"
    assert refused(dbf([]), "a.dbf") == "empty_file"


def test_drawn_pages_keep_their_numbers():
    run = '<Glyphs OriginY="{}" UnicodeString="{}"/>'
    page = f"<P>{run.format(10, 'One ')}{run.format(10.5, 'li ne')}{run.format(30, '{}Two')}</P>"
    files = {"[Content_Types].xml": "<T/>", "FixedDocSeq.fdseq": "<F/>"}
    parsed = read(zipped({**files, "D/1/P/10.fpage": page, "D/1/P/2.fpage": "<P/>"}), "a.xps")
    assert (parsed.markdown, parsed.pages) == ("One li ne\nTwo", [(1, 0), (2, 0)])
    shapes = "<P><Shape><Text>Router<cp/> here</Text></Shape><Shape><Text>Switch</Text></Shape></P>"
    drawing = zipped({"[Content_Types].xml": "<T/>", "visio/document.xml": "<V/>", "visio/pages/page1.xml": shapes})
    assert read(drawing, "a.vsdx").markdown == "Router here\n\nSwitch"


@pytest.mark.parametrize(
    ("stream", "name"),
    [
        ("WordDocument", "a.doc"),
        ("Workbook", "a.xls"),
        ("PowerPoint Document", "a.ppt"),
        ("__properties_version1.0", "a.msg"),
        ("HwpSummaryInformation", "a.hwp"),
    ],
)
def test_an_old_office_file_that_is_cut_short_is_broken(stream, name):
    assert refused(OLE + bytes(600) + stream.encode("utf-16-le"), name) == "broken_file"
