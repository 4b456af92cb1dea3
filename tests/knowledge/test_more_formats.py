"""Presentations, data, marked-up text, subtitles, pictures: what comes out of each, read in the sandbox."""

import io
import json
import time
import zipfile

import pytest

from tests.knowledge.test_parsers import read, refused

P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in files.items():
            package.writestr(name, text)
    return out.getvalue()


def paragraph(text):
    return f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"


def shape(text, placeholder=""):
    return f"<p:sp><p:nvSpPr><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr><p:txBody>{paragraph(text)}</p:txBody></p:sp>"


def pptx(slides, notes=""):
    """Return a presentation of slides given as shapes; ``notes`` belong to the first."""
    links, ids = "", ""
    files = {"[Content_Types].xml": "<Types/>"}
    for at, shapes in enumerate(slides, start=1):
        ids += f'<p:sldId id="{255 + at}" r:id="rId{at}"/>'
        links += f'<Relationship Id="rId{at}" Type="{TYPE}/slide" Target="slides/slide{at}.xml"/>'
        files[f"ppt/slides/slide{at}.xml"] = (
            f"<p:sld {P} {A} {R}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    if notes:
        files["ppt/slides/_rels/slide1.xml.rels"] = (
            f'<Relationships><Relationship Id="n" Type="{TYPE}/notesSlide" Target="../notesSlides/n1.xml"/>'
            "</Relationships>"
        )
        files["ppt/notesSlides/n1.xml"] = (
            f"<p:notes {P} {A}><p:cSld><p:spTree>{shape(notes)}</p:spTree></p:cSld></p:notes>"
        )
    files["ppt/presentation.xml"] = f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    files["ppt/_rels/presentation.xml.rels"] = f"<Relationships>{links}</Relationships>"
    return zipped(files)


def test_a_slide_is_a_page_with_everything_on_it():
    cell = "<a:tc><a:txBody>{}</a:txBody></a:tc>"
    rows = "".join("<a:tr>" + "".join(cell.format(paragraph(text)) for text in row) + "</a:tr>" for row in ("ab", "cd"))
    table = (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{rows}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )
    group = f"<p:grpSp><p:grpSp>{shape('DEEP')}</p:grpSp></p:grpSp>"
    first = shape("FIRST") + shape("SECOND") + table + group + shape("Heating", '<p:ph type="title"/>')
    parsed = read(pptx([first, shape("Costs") + shape("7", '<p:ph type="sldNum"/>')], notes="NOTE"), "a.pptx")
    assert parsed.markdown == (
        "## Heating\n\nFIRST\n\nSECOND\n\n| a | b |\n| --- | --- |\n| c | d |\n\nDEEP\n\n> NOTE\n\n## Costs"
    )
    assert parsed.pages == [(1, 0), (2, parsed.markdown.index("## Costs"))]


def test_a_presentation_with_nothing_on_it_is_empty():
    assert refused(pptx([""]), "a.pptx") == "empty_file"


@pytest.mark.parametrize(
    ("data", "markdown"),
    [
        ([{"name": "Ann", "age": 3}, {"name": "Bea"}], "| name | age |\n| --- | --- |\n| Ann | 3 |\n| Bea |  |"),
        ({"server": {"port": 80, "tags": ["a", "b"]}}, "# server\n\n- port: 80\n\n## tags\n\n- a\n- b"),
        ("just words", "just words"),
    ],
)
def test_json_is_an_outline_or_a_table(data, markdown):
    assert read(json.dumps(data), "a.json").markdown == markdown


def test_data_that_is_not_what_it_should_be_is_still_text():
    assert "MARK // comment" in read('{"a": 1, // MARK // comment\n}', "a.json").markdown
    assert "MARK_LINE" in read('{"a": 1}\nMARK_LINE\n{"a": 2}', "a.jsonl").markdown
    assert refused("[" * 200_000 + "]" * 200_000, "a.json") == "broken_file"
    assert read("a: &x [1]\nb: *x", "a.yaml").markdown == "```yaml\na: &x [1]\nb: *x\n```"


def test_a_notebook_is_its_cells():
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "source": "1+1",
            "outputs": [{"output_type": "execute_result", "data": {"text/plain": "2"}}],
        },
    ]
    parsed = read(json.dumps({"cells": cells, "metadata": {}}), "a.ipynb")
    assert parsed.markdown == "# Title\nwords\n\n```python\n1+1\n```\n\n```text\n2\n```"


def test_xml_is_its_text_in_order_with_titles_as_headings():
    article = (
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY ha "haha">]><article>'
        "<sec><title>Heating <b>rules</b></title><p>On in <i>Oct<u>o</u>ber</i> &x;&ha;at 20 °C&nbsp;or more.</p>"
        "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table></sec></article>"
    )
    assert read(article, "a.xml").markdown == (
        "# Heating rules\n\nOn in October at 20 °C or more.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    )


def test_xml_that_nests_without_end_is_refused():
    assert refused("<?xml version='1.0'?>" + "<a>" * 50_000 + "x" + "</a>" * 50_000, "a.xml") in (
        "broken_file",
        "empty_file",
    )


def test_subtitles_are_what_is_said():
    srt = "1\n00:00:01,000 --> 00:00:02,000\n<i>We go</i>\n\n2\n00:00:02,000 --> 00:00:03,500\nhome &amp; rest.\n"
    assert read(srt, "a.srt").markdown == "We go home & rest."
    vtt = "WEBVTT\n\nNOTE by us\n\n00:01.000 --> 00:02.000\n<v Ann>Hello\n\nx\n00:02.000 --> 00:03.000\n<v Bea>Hi\n"
    assert read(vtt, "a.txt").markdown == "Ann: Hello\n\nBea: Hi"


@pytest.mark.parametrize(
    ("text", "name", "markdown"),
    [
        ("=====\nRules\n=====\n\nOne\n---\n\ntext\n\n.. include:: /etc/passwd", "a.rst",
         "# Rules\n\n## One\n\ntext\n\n.. include:: /etc/passwd"),
        ("= Rules\n\n== One\n\n----\n== code\n----\n.Caption\ntext", "a.adoc",
         "# Rules\n\n## One\n\n```\n== code\n```\n\nCaption\ntext"),
        ("#+title: Rules\n* One\nsee [[/url][the page]]\n#+begin_src sh\nls\n#+end_src", "a.org",
         "# Rules\n\n## One\n\nsee the page\n```sh\nls\n```"),
        ("\\title{Rules}\n\\begin{document}\\maketitle\n\\section{One}% no\n\\textbf{bold \\emph{x}} 5\\%"
         "\n\\input{/etc/passwd}\n"
         "\\end{document}", "a.tex", "# Rules\n\n## One\n\nbold x 5%\n\\input{/etc/passwd}"),
    ],
)  # fmt: skip
def test_markup_keeps_its_words_and_gains_headings(text, name, markdown):
    assert read(text, name).markdown == markdown


def test_what_grows_does_so_in_time():
    began = time.monotonic()
    cues = "".join(f"{at}\n00:00:01,000 --> 00:00:02,000\n没有标点的字幕{at}\n\n" for at in range(20_000))
    assert "没有标点的字幕19999" in read(cues, "a.srt").markdown
    assert "`" * 200_000 in read("`" * 200_000, "a.yaml").markdown
    assert (
        "MARK_END"
        in read("<?xml version='1.0'?><a>MARK_END<!-- " + "<!DOCTYPE [" * 50_000 + "--></a>", "a.xml").markdown
    )
    assert time.monotonic() - began < 20


def test_pictures_and_recordings_say_what_they_need():
    assert refused(b"\x89PNG\r\n\x1a\n" + bytes(64), "a.png") == "broken_file"
    assert refused(b"\xff\xd8\xff\xe0" + bytes(64), "a") == "broken_file"
    assert refused(b"\xff\xd8\xff\xe0" + bytes(64), "a.pdf") == "type_mismatch"
    assert refused(b"RIFF\x00\x00\x00\x00WAVEfmt " + bytes(64), "a.wav") == "needs_speech_model"
    assert refused(b"ID3\x04" + bytes(64), "a.mp3") == "needs_speech_model"
