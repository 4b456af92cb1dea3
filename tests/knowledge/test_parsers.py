"""Each format, read in the sandbox: what comes out, and what is refused with which word."""

import io
import re
import time

import pytest

from apps.knowledge.errors import DocumentFailure
from apps.knowledge.parsers import DOCX
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.sandbox import reader
from tests.knowledge.files import W, docx, p, pdf


def read(data, name):
    file = io.BytesIO(data if isinstance(data, bytes) else data.encode())
    return reader.read(file, sniff_file(file, name))


def refused(data, name):
    with pytest.raises(DocumentFailure) as found:
        read(data, name)
    return found.value.code


# text


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("产品,价格\n镕基㐀𠀀,12\n".encode("gb18030"), "产品,价格\n镕基㐀𠀀,12\n", "gb18030"),
        ("# 标题".encode("utf-8-sig"), "# 标题", "utf-8"),
        ("# 标题".encode("utf-16"), "# 标题", "utf-16"),
        ("a plain line".encode("utf-16-be"), "a plain line", "utf-16-be"),
        (b"a" * 5000 + ",café,北京".encode(), "a" * 5000 + ",café,北京", "utf-8"),
        (("中文" * 1000).encode() + b"\xff" + "中文".encode(), "中文" * 1000 + "\ufffd中文", "utf-8"),
        ("名前,年齢,住所\n佐藤太郎".encode("cp932"), "名前,年齢,住所\n佐藤太郎", "cp932"),
        ("國立雲林科技大學".encode("big5"), "國立雲林科技大學", "big5hkscs"),
        ("한국어 문서는 이렇게 쓰고 읽는다".encode("cp949"), "한국어 문서는 이렇게 쓰고 읽는다", "cp949"),
        ("Привет, как дела? Это тест кодировки.".encode("cp1251"), "Привет, как дела? Это тест кодировки.", "cp1251"),
        ("こんにちは世界".encode("iso2022_jp"), "こんにちは世界", "iso2022_jp"),
    ],
)
def test_the_encoding_is_found(data, text, encoding):
    assert decode(data) == (text, encoding)


LATIN = {
    "cp1252": (
        "Où l'accord d'entreprise prévoit déjà autre chose ; ça dépend, à côté.",
        "Não há exceções para a região; as informações estão à disposição.",
        "Perché è così? La città è già più grande, però può aspettare.",
        "På måndag får du läsa mer om försäkringen för året.",
        "Größere Ausgaben müssen genehmigt werden.",
        "It’s the company’s policy – “don’t” means don’t.",
        "don’t",
        "§ 5, 20 °C ± 1",
    ),
    "cp1250": (
        "Příliš žluťoučký kůň úpěl ďábelské ódy.",
        "Każdy pracownik ma prawo do urlopu. Proszę złożyć wniosek.",
        "Az előleg elszámolása kötelező, a számlákat űrlappal kell benyújtani.",
    ),
    "cp1254": ("Her çalışanın yıllık izin hakkı vardır; müşteri şikâyetleri için başvuru gereklidir.",),
    "cp850": ("Größere Ausgaben müssen natürlich genehmigt werden.",),
    "cp1251": ("Привет, это русский документ о правилах отпуска компании.",),
}


def test_letters_of_europe_are_told_apart_by_the_languages_that_write_with_them():
    wrong = [
        (encoding, text, decode(text.encode(encoding)))
        for encoding, texts in LATIN.items()
        for text in texts
        if decode(text.encode(encoding))[0] != text
    ]
    assert wrong == []


def test_a_text_may_begin_as_another_file_does_or_speak_of_one():
    texts = {
        "pdf.md": b"# About PDF\n\nEvery file begins with %PDF-1.7 and ends with %%EOF.\n",
        "id3.txt": b"ID3 tags explained\n\nText.",
        "mz.txt": b"MZ-700: a manual\n",
        "gif.md": b"GIF89a is a format.",
        "rar.txt": b"Rar! it said.",
    }
    for name, data in texts.items():
        assert read(data, name).markdown.strip().encode() == data.strip(), name
    assert sniff_file(io.BytesIO(b"%PDF-1.4\n1 0 obj"), "pdf.txt") == "application/pdf"
    assert refused(b"MZ" + bytes(range(256)), "a.txt") == "type_mismatch"


def test_the_encoding_is_kept_and_line_ends_are_ours():
    parsed = read("第一行\r\n第二行\r".encode("gbk"), "a.txt")
    assert (parsed.markdown, parsed.metadata["encoding"]) == ("第一行\n第二行", "gb18030")


def test_numbered_chapters_of_a_text_are_headings_and_sentences_that_name_one_are_not():
    text = "公司章程\n\n第一章 总则\n第一条 为了规范。\n　　第二节\u3000考勤\n第二章的规定除外\n第二章\n"
    text += "第三章 内容如下。\n"
    assert read(text, "a.txt").markdown.split("\n")[2:] == [
        "# 第一章 总则", "第一条 为了规范。", "## 第二节\u3000考勤", "第二章的规定除外", "# 第二章", "第三章 内容如下。"
    ]  # fmt: skip
    assert read("看看\n第一章\n再说", "a.txt").markdown == "看看\n第一章\n再说"
    contents = "第一章 总则……3\n第二章 考勤 ...... 12\n第三章 附则 15"
    assert read(contents, "a.txt").markdown == contents


def test_numbered_chapters_of_a_pdf_are_headings_where_they_stand_apart():
    from apps.knowledge.parsers.pdf import _Line, _Sizes

    sizes = _Sizes(10.0, {})
    found = {
        ("第一章 总则", True): 1, ("第二节 考勤", True): 2, ("第一章 总则", False): 0, ("第三章 附则 15", True): 0,
        ("第三章的规定除外", True): 0,
    }  # fmt: skip
    assert {key: sizes.level(_Line(key[0], 10.0, apart=key[1])) for key in found} == found


def test_front_matter_is_no_heading():
    parsed = read("---\ntitle: 'Rules'\ntags: a\n---\n# One\n\ntext", "a.md")
    assert parsed.metadata["title"] == "Rules"
    assert parsed.markdown.startswith("```yaml\ntitle: 'Rules'\n")


# what a file is


def test_a_word_file_is_one_under_any_name():
    assert sniff_file(io.BytesIO(docx(p("x"))), "a.pdf") == DOCX
    assert sniff_file(io.BytesIO(b"<!DOCTYPE html><html><body>x"), "a.doc") == "text/html"
    assert sniff_file(io.BytesIO(pdf([[(50, 700, 12, "x")]])), "a.txt") == "application/pdf"


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.docx", "type_mismatch"),
        (b"SQLite format 3\x00" + bytes(600), "a.db", "unsupported_file_type"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "a.docx", "password_required"),
        (b"PK\x03\x04 and nothing else", "a.docx", "broken_file"),
        (b"%PDF-1.7 and nothing else", "a.pdf", "broken_file"),
        (b"<html><body><script>1</script>", "a.html", "empty_file"),
    ],
)
def test_what_cannot_be_read_has_a_word(data, name, code):
    assert refused(data, name) == code


# HTML


def test_html_is_its_own_text_in_order():
    parsed = read(
        """<html><head><title>The page</title><style>x{}</style></head><body><nav><a href="/">Home</a></nav>
        <main><h1>Heating</h1><p>On in <b>October</b>.</p><ul><li>one</li><li>two<ol><li>deep</li></ol></li></ul>
        <h2>Prices</h2><table><tr><th>a</th><th>b</th></tr><tr><td rowspan="2">x|y</td><td>1</td></tr>
        <tr><td>2</td></tr></table><p hidden>secret</p><script>alert(1)</script></main>
        <footer role="contentinfo">Imprint</footer></body></html>""",
        "a.html",
    )
    assert parsed.metadata["title"] == "The page"
    flat = re.sub(r"\n\s*\n", "\n", parsed.markdown)
    assert flat.splitlines() == [
        "# Heating",
        "On in **October**.",
        "- one",
        "- two",
        "  1. deep",
        "## Prices",
        "| a | b |",
        "| --- | --- |",
        "| x\\|y | 1 |",
        "| x\\|y | 2 |",
    ]


def test_html_honours_its_declared_charset():
    page = '<html><head><meta charset="gb2312"><title>通知</title></head><body><p>放假</p></body></html>'
    parsed = read(page.encode("gb18030"), "a.html")
    assert (parsed.markdown, parsed.metadata["encoding"]) == ("# 通知\n\n放假", "gb18030")


# PDF


def test_pdf_pages_headings_and_running_heads():
    pages = []
    for number in range(1, 11):
        page = [(50, 760, 10, "ACME annual report"), (50, 40, 10, f"Page {number} of 10")]
        page += [
            (50, 700, 20, f"Chapter {number}"),
            (50, 660, 12, f"The text of page number {number} is this one line."),
        ]
        if number == 4:
            page.append((50, 70, 12, "A sentence that stands near the foot just once."))
        pages.append(page)
    parsed = read(pdf(pages), "a.pdf")
    assert [page for page, _ in parsed.pages] == list(range(1, 11))
    assert "ACME" not in parsed.markdown
    assert "of 10" not in parsed.markdown
    assert "stands near the foot just once" in parsed.markdown
    for number, start in parsed.pages:
        assert parsed.markdown[start:].startswith(f"# Chapter {number}\n\nThe text of page number {number} ")


def test_pdf_space_between_lines_parts_paragraphs_and_shows_numbered_headings():
    rows = [
        "CPU at 2.45 GHz.",
        "",
        "5.1 Choice of parameters",
        "",
        "We have chosen the set since it includes tables",
        "of",
    ]
    rows += ["all kinds.", "", "Price", "4.50", "", "1.2 metres of cable", "2.4 metres of wire"]
    page = [(50, 700 - 12 * row, 10, text) for row, text in enumerate(rows) if text]
    page += [
        (50, 500 - 12 * row, 10, f"A line of the body as long as most of them are, number {row}") for row in range(9)
    ]
    markdown = read(pdf([page]), "a.pdf").markdown
    assert markdown.startswith(
        "CPU at 2.45 GHz.\n\n### 5.1 Choice of parameters\n\nWe have chosen the set since it includes tables"
    )
    assert "\n\nPrice\n4.50\n\n" in markdown


def test_pdf_columns_are_read_one_after_the_other():
    left = [(50, 700 - 14 * row, 10, f"left column line {row} goes on and on and") for row in range(20)]
    right = [(320, 700 - 14 * row, 10, f"right column line {row} goes on and on and") for row in range(20)]
    text = " ".join(read(pdf([left + right]), "a.pdf").markdown.split())
    assert "left column line 19 goes on and on and right column line 0 goes" in text


def test_pdf_pages_of_pictures_are_named_so_that_they_can_be_recognised():
    assert read(pdf([None, None]), "scan.pdf").unread == [1, 2]
    assert refused(pdf([[]]), "blank.pdf") == "empty_file"
    mixed = read(pdf([None, [(50, 700, 12, "A page of text.")], []]), "mixed.pdf")
    assert (mixed.markdown, mixed.pages, mixed.unread) == ("A page of text.", [(1, 0), (2, 0), (3, 15)], [1])


# Word


def test_word_holds_more_than_paragraphs():
    run = "<w:r><w:t>{}</w:t></w:r>"
    box = "<w:txbxContent>" + p("MARK_TEXTBOX") + "</w:txbxContent>"
    body = (
        "<w:p>" + run.format("Start ") + "<w:ins>" + run.format("MARK_INS") + "</w:ins>"
        "<w:del><w:r><w:delText>MARK_DEL</w:delText></w:r></w:del><w:hyperlink>" + run.format(" MARK_LINK")
        + '</w:hyperlink><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
        + "<w:sdt><w:sdtContent>" + p("MARK_SDT") + "</w:sdtContent></w:sdt>"
        + "<w:p><w:r><mc:AlternateContent><mc:Choice><w:drawing>" + box + "</w:drawing></mc:Choice><mc:Fallback>"
        + "<w:pict>" + box + "</w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>"
        + "<w:tbl><w:tr><w:tc>" + p("a") + "</w:tc><w:tc>" + p("b") + "</w:tc></w:tr><w:tr><w:tc>" + p("c")
        + "</w:tc><w:tc><w:tbl><w:tr><w:tc>" + p("MARK_CELL") + "</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>"
    )  # fmt: skip
    notes = f'<w:footnotes {W}><w:footnote w:id="2">{p("MARK_FOOTNOTE")}</w:footnote></w:footnotes>'
    assert read(docx(body, footnotes=notes), "a.docx").markdown == (
        "Start MARK_INS MARK_LINK[^1]\n\nMARK_SDT\n\nMARK_TEXTBOX\n\n"
        "| a | b |\n| --- | --- |\n| c | MARK_CELL |\n\n[^1]: MARK_FOOTNOTE"
    )


def test_word_headings_lists_and_merged_cells():
    styles = (
        f'<w:styles {W}><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:basedOn w:val="H1"/></w:style></w:styles>'
    )
    levels = (
        '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="chineseCounting"/><w:lvlText w:val="（%2）"/></w:lvl>'
    )
    numbering = (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    )
    item = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="5"/></w:numPr>'

    def cell(text, properties=""):
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(text)}</w:tc>"

    body = (
        p("Rules", '<w:pStyle w:val="Mine"/>') + p("first", item.format(0)) + p("inner", item.format(1))
        + p("second", item.format(0)) + "<w:tbl><w:tr>" + cell("wide", '<w:gridSpan w:val="2"/>') + "</w:tr><w:tr>"
        + cell("tall", '<w:vMerge w:val="restart"/>') + cell("1") + "</w:tr><w:tr>" + cell("", "<w:vMerge/>")
        + cell("2") + "</w:tr></w:tbl>"
    )  # fmt: skip
    assert read(docx(body, styles=styles, numbering=numbering), "a.docx").markdown == (
        "# Rules\n\n1. first\n  （一） inner\n2. second\n\n| wide | wide |\n| --- | --- |\n| tall | 1 |\n| tall | 2 |"
    )


def test_word_without_styles_has_headings_by_their_chinese_numbers():
    sentence = "一、这是一个完整的句子，它说明了目的。"
    paragraphs = ("管理办法", "第一章 总则", "一、目的", "（一）范围", sentence, "正文内容")
    assert read(docx("".join(map(p, paragraphs))), "a.docx").markdown.split("\n\n") == [
        "# 管理办法",
        "# 第一章 总则",
        "## 一、目的",
        "### （一）范围",
        sentence,
        "正文内容",
    ]


def test_word_pages_are_those_of_its_last_layout():
    broken = "<w:p><w:r><w:lastRenderedPageBreak/><w:t>second page</w:t></w:r></w:p>"
    parsed = read(docx(p("first page") + broken + p("still second")), "a.docx")
    assert parsed.pages == [(1, 0), (2, parsed.markdown.index("second page"))]


def test_entities_are_neither_read_nor_expanded(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("MARK_SECRET")
    document = (
        f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{secret}"><!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
        f"<w:document {W}><w:body><w:p><w:r><w:t>before &x; &b; after</w:t></w:r></w:p></w:body></w:document>"
    )
    parsed = read(docx("", document=document), "a.docx")
    assert "before" in parsed.markdown
    assert "MARK_SECRET" not in parsed.markdown
    assert "haha" not in parsed.markdown


def test_a_part_that_inflates_beyond_measure_is_refused_quickly():
    began = time.monotonic()
    assert refused(docx(p("x" * (40 << 20))), "a.docx") == "suspicious_file"
    assert time.monotonic() - began < 5
    assert refused(docx("", **{f"part{at}": "" for at in range(6000)}), "a.docx") == "suspicious_file"
