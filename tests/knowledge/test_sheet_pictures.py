"""Pictures in spreadsheets stand after the cells of their sheet, from top to bottom."""

import io

import openpyxl
from openpyxl.drawing.image import Image as Drawn
from PIL import Image

from apps.knowledge.parsers.illustrations import collected
from apps.knowledge.parsers.spreadsheets import parse_spreadsheet


def png(colour, side=64):
    out = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(out, "PNG")
    out.seek(0)
    return out


def workbook():
    book = openpyxl.Workbook()
    plan = book.active
    plan.title = "Plan"
    plan["A1"] = "budget"
    plan.add_image(Drawn(png("red")), "C9")
    plan.add_image(Drawn(png("blue")), "A2")
    plan.add_image(Drawn(png("red", side=8)), "A1")  # an icon
    book.create_sheet("Only").add_image(Drawn(png("red")), "A1")
    hidden = book.create_sheet("Secret")
    hidden.sheet_state = "hidden"
    hidden.add_image(Drawn(png("green")), "A1")
    return saved(book)


def saved(book):
    out = io.BytesIO()
    book.save(out)
    out.seek(0)
    return out


def test_each_sheet_has_its_own_in_order_and_hidden_ones_none():
    with collected() as album:
        markdown = parse_spreadsheet(workbook()).markdown
    by_colour = {colour(one): one.name for one in album.pictures.values()}
    red, blue = by_colour["red"], by_colour["blue"]
    first, second = markdown.split("## Only")
    assert [first.count(name) for name in (red, blue)] == [1, 1]
    assert first.index("budget") < first.index(blue) < first.index(red)
    assert red in second
    assert "Secret" not in markdown
    assert set(by_colour) == {"red", "blue"}


def colour(picture):
    with Image.open(io.BytesIO(picture.data)) as opened:
        return {(255, 0, 0): "red", (0, 0, 255): "blue"}.get(opened.convert("RGB").getpixel((0, 0)), "another")


def test_a_workbook_of_pictures_alone_is_not_empty_and_nobody_pays_who_wants_none():
    book = openpyxl.Workbook()
    book.active.add_image(Drawn(png("red")), "A1")
    with collected() as album:
        assert "](image:" in parse_spreadsheet(saved(book)).markdown
    assert len(album.pictures) == 1
    assert "image:" not in parse_spreadsheet(workbook()).markdown
