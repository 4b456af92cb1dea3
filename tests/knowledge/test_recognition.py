"""Text in pictures: recognised page by page, in reading order, and a page that cannot be read costs that page."""

import io
from dataclasses import replace

import pypdfium2 as pdfium
import pytest
from django.urls import reverse
from PIL import Image, ImageDraw, ImageFont

from apps.knowledge import extraction
from apps.knowledge.errors import Cancelled, DocumentFailure
from apps.knowledge.extraction import extract
from apps.knowledge.parsers import recognition
from apps.knowledge.parsers.illustrations import REFERENCE
from apps.knowledge.parsers.reading_order import Line, arranged
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.sandbox import reader
from apps.knowledge.sandbox.limits import Limits
from tests.knowledge.files import docx, p, pdf

pytestmark = pytest.mark.django_db


def page(*lines, size=(620, 260)):
    """Return a picture with lines of text on it."""
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(30)
    for at, line in enumerate(lines):
        draw.text((30, 25 + 55 * at), line, fill="black", font=font)
    return picture


def saved(picture, kind="PNG", **more):
    out = io.BytesIO()
    picture.save(out, kind, **more)
    return out.getvalue()


def scan(*pages):
    """Return a PDF whose pages are pictures, bytes of a PDF of text, or None for a blank page."""
    merged = pdfium.PdfDocument.new()
    for one in pages:
        if one is None:
            merged.new_page(300, 300)
        else:
            merged.import_pages(pdfium.PdfDocument(one if isinstance(one, bytes) else saved(one, "PDF")))
    out = io.BytesIO()
    merged.save(out)
    return out.getvalue()


def taken(data, name, **more):
    file = io.BytesIO(data)
    found = extract(file, sniff_file(file, name), **more)
    shown = REFERENCE.sub("", found.markdown)  # a picture shows itself first; test_illustrations looks at that
    cut = len(found.markdown) - len(shown.lstrip())
    return replace(
        found, markdown=shown.strip(), pages=[(number, max(start - cut, 0)) for number, start in found.pages]
    )


def refused(data, name, **more):
    with pytest.raises(DocumentFailure) as caught:
        taken(data, name, **more)
    return caught.value.code


def test_a_mixed_pdf_has_the_text_of_all_its_pages_where_it_belongs():
    text = pdf([[(50, 700, 12, "A page of true text between two scans.")]])
    stages = []
    found = taken(
        scan(page("Invoice number 4711"), text, None, page("Total amount 99")),
        "a.pdf",
        progress=lambda stage, share: stages.append((stage, share)),
    )
    assert found.markdown == "Invoice number 4711\n\nA page of true text between two scans.\n\nTotal amount 99"
    assert [found.markdown[start:][:7] for _number, start in found.pages] == [
        "Invoice",
        "A page ",
        "\n\nTotal",
        "Total a",
    ]
    assert found.metadata["recognised_pages"] == 2
    assert "unread_pages" not in found.metadata
    assert stages == [("recognising", 0.0), ("recognising", 0.5)]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "HEIF"])
def test_a_picture_of_each_format_is_read(kind):
    picture = page("Emergency exit 42", size=(400, 120))
    if kind == "PNG":  # black on nothing at all
        clear = Image.new("RGBA", picture.size, (0, 0, 0, 0))
        clear.paste((0, 0, 0, 255), mask=picture.convert("L").point(lambda value: 255 - value))
        picture = clear
    if kind == "HEIF":
        import pillow_heif

        pillow_heif.register_heif_opener()
    found = taken(saved(picture, kind), "a")
    assert found.markdown == "Emergency exit 42"
    assert (found.metadata["picture"], found.metadata["width"]) == (kind, 400)


def test_pages_upside_down_and_lying_on_their_sides_are_read_in_order():
    upright = page("First line here", "Second line here", "Third line here")
    words = "First line here Second line here Third line here"
    for degrees in (90, 180, 270):
        turned = taken(saved(upright.rotate(degrees, expand=True)), "a.png").markdown
        assert " ".join(turned.split()) == words, degrees
    exif = Image.Exif()
    exif[0x0112] = 6
    by_note = taken(saved(upright.rotate(90, expand=True), "JPEG", exif=exif), "a.jpg")
    assert " ".join(by_note.markdown.split()) == words


def test_a_scanners_tiff_has_pages():
    first, second = page("Page number one"), page("Page number two")
    found = taken(saved(first, "TIFF", save_all=True, append_images=[second]), "a.tiff")
    assert (found.markdown, found.pages) == ("Page number one\n\nPage number two", [(1, 0), (2, 17)])


def test_a_page_beyond_its_limits_is_named_and_the_others_stay(monkeypatch):
    text = pdf([[(50, 700, 12, "A page of true text.")]])
    monkeypatch.setattr(reader, "A_PAGE", Limits(wall_s=0.01))
    found = taken(scan(page("too slow"), text, page("too slow as well")), "a.pdf")
    assert found.markdown == "A page of true text."
    assert found.metadata["unread_pages"] == [1, 3]
    assert "recognised_pages" not in found.metadata
    assert refused(scan(page("too slow")), "a.pdf") == "parse_timeout"
    monkeypatch.undo()
    monkeypatch.setattr(extraction, "MOST_PAGES", 1)
    found = taken(scan(page("Only this one"), page("not this")), "a.pdf")
    assert (found.markdown, found.metadata["unread_pages"]) == ("Only this one", [2])


def test_nothing_on_a_picture_is_said_of_a_scan_and_a_picture_has_its_facts():
    assert refused(scan(page(), page()), "a.pdf") == "no_text_recognised"
    exif = Image.Exif()
    exif[0x010E] = "The old harbour"
    found = taken(saved(page(size=(300, 200)), "JPEG", exif=exif), "a.jpg")
    assert found.markdown == "JPEG, 300 × 200 px\n\nThe old harbour"


def test_without_an_engine_it_is_needs_ocr(monkeypatch):
    monkeypatch.setattr(recognition, "_engine", lambda: None)

    def read(file, content_type, *, page=0, **more):
        if page:
            raise extraction.NeedsOcr
        return real(file, content_type, **more)

    real = reader.read
    monkeypatch.setattr(reader, "read", read)
    assert refused(scan(page("text")), "a.pdf") == "needs_ocr"
    assert not recognition.prepare()


def test_more_pixels_than_any_scanner_gives_are_not_unpacked():
    assert refused(saved(Image.new("1", (20_000, 20_000))), "a.png") == "suspicious_file"


def test_recognising_stops_between_pages_when_somebody_stops_it():
    def progress(stage, share):
        if share:
            raise Cancelled

    assert refused(scan(page("one"), page("two"), page("three")), "a.pdf", progress=progress) == "cancelled"


def test_a_password_opens_a_locked_file_and_a_wrong_one_is_said(data_folder):
    folder = data_folder / "documents/files"
    for name, password, text in (
        ("2206.01062_pg3.pdf", "1234", "A Large Human-Annotated Dataset"),
        ("testWORD_protected_passtika.docx", "tika", "This is an encrypted Word"),
        ("testEXCEL_protected_passtika.xlsx", "tika", "This is an Encrypted Excel"),
    ):
        data = (folder / name).read_bytes()
        assert refused(data, name) == "password_required"
        assert refused(data, name, password="wrong") == "password_required"
        assert text.split()[-1] in taken(data, name, password=password).markdown
    assert taken(docx(p("open to all")), "a.docx", password="unneeded").markdown == "open to all"


def test_a_scan_is_indexed_and_its_page_says_what_was_not_read(ingest, ann, client, monkeypatch):
    monkeypatch.setattr(extraction, "MOST_PAGES", 1)
    document = ingest(scan(page("Invoice number 4711"), page("another page")), "scan.pdf")
    assert document.status == document.Status.INDEXED
    assert "Invoice number 4711" in document.chunks.get().text
    client.force_login(ann)
    address = reverse("knowledge:show-document", args=[document.workspace.slug, document.pk])
    assert "Pages that could not be read: 2." in client.get(address).content.decode()


# Reading order


def lines(*places, height=20, letter=10):
    return [Line(text, x, y, x + letter * len(text), y + height) for x, y, text in places]


def test_columns_are_read_one_after_the_other_below_their_title():
    title = lines((100, 0, "A title over both of the columns"))
    left = lines(*((0, 60 + 25 * at, f"left column line {at} goes on") for at in range(6)))
    right = lines(*((330, 60 + 25 * at, f"right column line {at} goes on") for at in range(6)))
    foot = lines((0, 260, "A line under both of the columns that ends the page"))
    mixed = [line for pair in zip(left, right, strict=True) for line in pair]
    text = " ".join(arranged([*foot, *mixed, *title]).split())
    assert text.startswith("A title over both of the columns left column line 0 goes on left column line 1")
    assert "left column line 5 goes on right column line 0 goes on" in text
    assert text.endswith("line 5 goes on A line under both of the columns that ends the page")


def test_cells_of_a_row_stay_beside_each_other():
    rows = lines(
        *((x, 30 * y, f"{name}{y}") for y in range(6) for x, name in ((0, "item"), (200, "price"), (400, "sum")))
    )
    assert arranged(rows[::-1]).splitlines()[:2] == ["item0  price0  sum0", "item1  price1  sum1"]


def test_vertical_writing_is_read_from_right_to_left():
    columns = [
        Line(text, x, 0, x + 20, 200)
        for x, text in ((100, "春はあけぼの"), (60, "やうやう白く"), (20, "なりゆく山ぎは"))
    ]
    assert arranged(columns[::-1]).replace("\n", "") == "春はあけぼのやうやう白くなりゆく山ぎは"
