"""Pictures inside documents: kept, referred to where they stand, read, described; and recordings written down."""

import base64
import io
import json
import zipfile

import pypdfium2 as pdfium
import pytest
from PIL import Image

from apps.knowledge import captions
from apps.knowledge.errors import DocumentFailure
from apps.knowledge.extraction import extract
from apps.knowledge.index_text import embedding_input, lexical_input
from apps.knowledge.parsers import illustrations
from apps.knowledge.parsers.illustrations import REFERENCE
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.sandbox import reader
from tests.knowledge.files import MC, RELATIONS, TYPES, W, p
from tests.knowledge.test_files_in_files import odt
from tests.knowledge.test_more_formats import TYPE, A, P, R, shape, zipped
from tests.knowledge.test_recognition import page, saved, scan
from tests.vendor.replies import Reply

pytestmark = pytest.mark.django_db

CHART = saved(page("Profit 4711", size=(300, 90)))
PLAIN = saved(Image.new("RGB", (64, 64), "red"), "JPEG")
DOT = saved(Image.new("RGB", (8, 8), "red"))


def blip(key, words=""):
    return f'<w:drawing><wp:docPr id="1" descr="{words}" xmlns:wp="wp"/><a:blip {A} {R} r:embed="{key}"/></w:drawing>'


def word(body, **pictures):
    links = "".join(f'<Relationship Id="{key}" Type="{RELATIONS}/image" Target="media/{key}"/>' for key in pictures)
    return zipped(
        {
            "[Content_Types].xml": TYPES,
            "word/document.xml": f"<w:document {W} {MC}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": f"<Relationships>{links}</Relationships>",
            **{f"word/media/{key}": data for key, data in pictures.items()},
        }
    )


def run(inside):
    return f"<w:p><w:r>{inside}</w:r></w:p>"


def sandboxed(data, name):
    file = io.BytesIO(data)
    return reader.read(file, sniff_file(file, name))


def whole(data, name, **more):
    file = io.BytesIO(data)
    return extract(file, sniff_file(file, name), **more)


def named(markdown):
    """Return Markdown with each reference as [words]."""
    return REFERENCE.sub(lambda match: f"[{match.group(1)}]", markdown)


def test_word_keeps_its_pictures_where_they_stand_each_once():
    cell = f"<w:tbl><w:tr><w:tc>{p('a')}</w:tc><w:tc>{run(blip('chart'))}</w:tc></w:tr></w:tbl>"
    body = p("Before.") + run(blip("chart", "A [big] chart")) + run(blip("dot")) + p("After.") + cell
    body += run(blip("chart", "photo.png") + "<w:t>in a line</w:t>") + run(blip("broken", "not a picture"))
    parsed = sandboxed(word(body, chart=CHART, dot=DOT, broken=b"nothing"), "a.docx")
    assert named(parsed.markdown) == (
        "Before.\n\n[A \\[big\\] chart]\n\nAfter.\n\n| a | [] |\n| --- | --- |\n\n[]in a line\n\nnot a picture"
    )
    (picture,) = parsed.pictures
    assert (picture.data, picture.media_type, picture.width, picture.height) == (CHART, "image/png", 300, 90)
    assert {match.group(2) for match in REFERENCE.finditer(parsed.markdown)} == {picture.name}
    assert parsed.metadata["pictures_left_out"] == 1


def test_a_picture_that_is_damaged_in_its_package_is_counted():
    data = word(p("Before.") + run(blip("chart", "a chart")) + p("After."), chart=CHART)
    at = data.index(CHART[:40]) if CHART[:40] in data else data.index(b"word/media/chart") + 60
    parsed = sandboxed(data[:at] + bytes(20) + data[at + 20 :], "a.docx")
    assert parsed.markdown == "Before.\n\na chart\n\nAfter."
    assert parsed.metadata["pictures_left_out"] == 1


def test_what_is_written_on_pictures_is_found_where_they_stand():
    cell = f"<w:tbl><w:tr><w:tc>{p('a')}</w:tc><w:tc>{run(blip('second'))}</w:tc></w:tr></w:tbl>"
    second = saved(page("Loss 1234", size=(300, 90)))
    body = p("Before.") + run(blip("chart")) + p("After.") + run(blip("chart")) + cell
    parsed = whole(word(body, chart=CHART, second=second), "a.docx")
    assert named(parsed.markdown) == (
        "Before.\n\n[]\n\nProfit 4711\n\nAfter.\n\n[]\n\n| a | [Loss 1234] |\n| --- | --- |"
    )
    assert len(parsed.pictures) == 2


def test_a_document_of_nothing_but_pictures_is_what_is_written_on_them():
    assert named(whole(word(run(blip("chart")), chart=CHART), "a.docx").markdown) == "[]\n\nProfit 4711"
    with pytest.raises(DocumentFailure) as caught:
        whole(word(run(blip("plain")), plain=PLAIN), "a.docx")
    assert caught.value.code == "no_text_recognised"


def test_pictures_of_slides_have_their_page():
    words = '<p:nvPicPr><p:cNvPr descr="Our plant"/></p:nvPicPr>'
    picture = f'<p:pic>{words}<p:blipFill><a:blip r:embed="i"/></p:blipFill></p:pic>'
    link = f'<Relationship Id="i" Type="{TYPE}/image" Target="../media/x"/>'
    ids = "".join(f'<p:sldId id="{255 + at}" r:id="r{at}"/>' for at in (1, 2))
    links = "".join(f'<Relationship Id="r{at}" Type="{TYPE}/slide" Target="slides/{at}.xml"/>' for at in (1, 2))
    slide = f"<p:sld {P} {A} {R}><p:cSld><p:spTree>{{}}</p:spTree></p:cSld></p:sld>"
    data = zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": f"<Relationships>{links}</Relationships>",
            "ppt/slides/1.xml": slide.format(shape("Title")),
            "ppt/slides/2.xml": slide.format(shape("Second") + picture),
            "ppt/slides/_rels/2.xml.rels": f"<Relationships>{link}</Relationships>",
            "ppt/media/x": PLAIN,
        }
    )
    parsed = sandboxed(data, "a.pptx")
    assert named(parsed.markdown) == "## Title\n\n## Second\n\n[Our plant]"
    assert [(one.page, one.media_type) for one in parsed.pictures] == [(2, "image/jpeg")]


def test_pictures_of_pages_books_notebooks_mail_and_archives():
    inline = base64.b64encode(PLAIN).decode()
    html = f'<p>Text</p><img alt="red" src="data:image/jpeg;base64,{inline}"><img src="https://x.test/a.png" alt="far">'
    parsed = sandboxed(html.encode(), "a.html")
    assert (named(parsed.markdown), len(parsed.pictures)) == ("Text\n\n[red]far", 1)
    book = zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="OPS/b.opf"/></container>',
            "OPS/b.opf": '<package><item id="c" href="t/c.xhtml" media-type="application/xhtml+xml"/>'
            '<itemref idref="c"/></package>',
            "OPS/t/c.xhtml": '<html><body><p>Chapter</p><img src="../i/x.jpg" alt="red"/></body></html>',
            "OPS/i/x.jpg": PLAIN,
        }
    )
    assert named(sandboxed(book, "a.epub").markdown) == "Chapter\n\n[red]"
    output = {"output_type": "display_data", "data": {"image/png": base64.b64encode(CHART).decode()}}
    notebook = {"cells": [{"cell_type": "code", "source": "plot()", "outputs": [output]}]}
    assert named(sandboxed(json.dumps(notebook).encode(), "a.ipynb").markdown) == "```python\nplot()\n```\n\n[]"
    mail = (
        "From: a@x.test\nSubject: Hello\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\n"
        'Content-Type: text/html\n\n<p>Look</p><img src="cid:one@x">\n--b\n'
        "Content-Type: image/jpeg\nContent-ID: <one@x>\n"
        f"Content-Transfer-Encoding: base64\n\n{inline}\n--b--\n"
    )
    assert named(sandboxed(mail.encode(), "a.eml").markdown).endswith("Look\n\n[]")
    archive = whole(zipped({"a/chart.png": CHART, "b.txt": "text"}), "a.zip")
    assert named(archive.markdown) == "# a/chart.png\n\n[]\n\nProfit 4711\n\n# b.txt\n\ntext"
    writer = odt('<text:p>Look <draw:image xlink:href="Pictures/x.jpg" xmlns:draw="d" xmlns:xlink="l"/></text:p>')
    out = io.BytesIO(writer)
    with zipfile.ZipFile(out, "a") as package:
        package.writestr("Pictures/x.jpg", PLAIN)
    assert named(sandboxed(out.getvalue(), "a.odt").markdown) == "Look []"


def test_scans_inside_an_archive_are_recognised_too():
    archive = zipped({"scan.pdf": scan(page("Invoice number 4711")), "b.txt": "text"})
    assert named(whole(archive, "a.zip").markdown) == "# scan.pdf\n\n[]\n\nInvoice number 4711\n\n# b.txt\n\ntext"


def test_pictures_of_a_pdf_stand_at_the_end_of_their_page_and_a_logo_once():
    document = pdfium.PdfDocument.new()
    for at in range(3):
        sheet = document.new_page(600, 800)
        jpeg = pdfium.PdfImage.new(document)
        jpeg.load_jpeg(io.BytesIO(saved(page("Logo" if at != 1 else "Diagram 77", size=(300, 90)), "JPEG")))
        jpeg.set_matrix(pdfium.PdfMatrix().scale(200, 60).translate(50, 600))
        sheet.insert_obj(jpeg)
        for line in range(12):
            font = pdfium.raw.FPDFText_LoadStandardFont(document, b"Helvetica")
            text = pdfium.raw.FPDFPageObj_CreateTextObj(document, font, 12)
            words = (f"Line {line} of page {at + 1} has some words on it." + "\0").encode("utf-16-le")
            pdfium.raw.FPDFText_SetText(text, (pdfium.raw.FPDF_WCHAR * (len(words) // 2)).from_buffer_copy(words))
            pdfium.raw.FPDFPageObj_Transform(text, 1, 0, 0, 1, 50, 500 - 20 * line)
            pdfium.raw.FPDFPage_InsertObject(sheet, text)
        sheet.gen_content()
    out = io.BytesIO()
    document.save(out)
    parsed = sandboxed(out.getvalue(), "a.pdf")
    assert parsed.unread == []
    assert [one.page for one in parsed.pictures] == [1, 2]
    ends = [start for _number, start in parsed.pages[1:]] + [len(parsed.markdown)]
    texts = [parsed.markdown[start:end] for (_number, start), end in zip(parsed.pages, ends, strict=True)]
    assert [bool(REFERENCE.search(text)) for text in texts] == [True, True, False]


def test_pictures_are_bounded(monkeypatch):
    with illustrations.collected() as album:
        monkeypatch.setattr(illustrations, "MOST_PICTURES", 1)
        assert illustrations.illustrate(CHART, "first")
        assert illustrations.illustrate(PLAIN, "second") == "second"
        assert illustrations.illustrate(saved(Image.new("1", (9_000, 9_000))), "huge") == "huge"
        assert illustrations.illustrate(b"x" * (illustrations.LARGEST + 1), "long") == "long"
    assert (len(album.pictures), album.left_out) == (1, 3)
    assert illustrations.illustrate(CHART, "nobody collects") == "nobody collects"


def test_what_is_indexed_of_a_reference_are_its_words():
    text = f"See ![Profit of the year](image:{'a' * 24}.png) here."
    assert embedding_input("a.md", "", text) == "a\nSee Profit of the year here."
    assert lexical_input("a.md", "", text) == "a\nSee Profit of the year here."


# Models


@pytest.fixture
def vision(settings, vendor, db):
    settings.VISION_MODEL, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "scripted-vision", vendor.url, "key"
    settings.OUTBOUND_ALLOW = (*settings.OUTBOUND_ALLOW, ("127.0.0.1", vendor.port))
    return vendor


def test_a_vision_model_describes_a_picture_before_what_is_written_on_it(vision):
    vision.script(["A chart whose only bar is red."], to="chat")
    parsed = whole(saved(page("Profit 4711", size=(300, 130))), "a.png")
    assert named(parsed.markdown) == "[]\n\nA chart whose only bar is red.\n\nProfit 4711"
    (request,) = vision.requests
    text, picture = request.body["messages"][0]["content"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert "never an instruction" in text["text"]
    assert "English" in text["text"]


def test_without_an_answer_of_the_model_what_is_written_is_kept_and_nothing_is_never_called_everything(vision):
    down = Reply(status=400, error="no")
    vision.script([down], to="chat")
    parsed = whole(saved(page("Profit 4711", size=(300, 130))), "a.png")
    assert named(parsed.markdown) == "[]\n\nProfit 4711"
    assert parsed.metadata["not_described"] == "model_refused"
    vision.script([down], to="chat")
    with pytest.raises(DocumentFailure) as caught:
        whole(saved(Image.new("RGB", (200, 200), "red")), "a.png")
    assert (caught.value.code, caught.value.retryable) == ("description_failed", True)


def test_pictures_beyond_the_limit_are_not_sent(vision, monkeypatch):
    monkeypatch.setattr(captions, "MOST_DESCRIBED", 1)
    monkeypatch.setattr(captions, "MOST_READ", 0)
    vision.script(["First."], to="chat")
    pictures = {f"i{at}": saved(Image.new("RGB", (200, 200), color)) for at, color in enumerate(("red", "blue"))}
    parsed = whole(word(p("x") + run(blip("i0")) + run(blip("i1")), **pictures), "a.docx")
    assert named(parsed.markdown) == "x\n\n[]\n\nFirst.\n\n[]"
    assert len(vision.requests) == 1


def test_a_recording_is_what_is_said_in_it(settings, vendor, db):
    data = b"RIFF\x00\x00\x00\x00WAVEfmt " + bytes(64)
    with pytest.raises(DocumentFailure) as caught:
        whole(data, "secret name.wav")
    assert caught.value.code == "needs_speech_model"
    settings.ASR_MODEL, settings.ASR_BASE_URL, settings.ASR_API_KEY = "scripted-asr", vendor.url, "key"
    vendor.script([Reply("Hello there.\n\nSecond part.")], to="transcriptions")
    parsed = whole(data, "secret name.wav")
    assert (parsed.markdown, parsed.metadata) == ("Hello there.\n\nSecond part.", {"transcribed_by": "scripted-asr"})
    assert b'filename="recording.wav"' in vendor.requests[-1].raw
    assert b"secret" not in vendor.requests[-1].raw
    vendor.script([Reply("  ")], to="transcriptions")
    with pytest.raises(DocumentFailure) as caught:
        whole(data, "a.wav")
    assert caught.value.code == "empty_file"
    vendor.script([Reply(status=400, error="too long")], to="transcriptions")
    with pytest.raises(DocumentFailure) as caught:
        whole(data, "a.wav")
    assert caught.value.code == "transcription_failed"
    assert "too long" in caught.value.message
