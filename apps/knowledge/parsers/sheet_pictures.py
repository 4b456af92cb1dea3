"""Pictures in spreadsheets (.xlsx, .xlsm, .ods): which sheet shows which, from top to bottom."""

from typing import Any

from apps.knowledge.parsers.illustrations import illustrate, wanted, without_file_name
from apps.knowledge.parsers.packages import Package


def pictures_of(package: Package) -> dict[str, list[str]]:
    """Return what stands for the pictures of each sheet, by the sheet's name; nothing where nobody collects them.

    Raises:
        ParseFailure: broken_file, suspicious_file.
    """
    if not wanted():
        return {}
    workbook = package.xml("xl/workbook.xml")
    if workbook is not None:
        relations = package.relations("xl/workbook.xml")
        shown = [sheet for sheet in workbook.iter("{*}sheet") if sheet.get("state", "visible") == "visible"]
        sheets = {sheet.get("name", ""): _reference(sheet, "id") for sheet in shown}
        found = {name: _drawn(package, relations.get(key, ("", ""))[1]) for name, key in sheets.items()}
    else:
        found = _of_open_document(package)
    return {name: pictures for name, pictures in found.items() if pictures}


def _drawn(package: Package, sheet: str) -> list[str]:
    """Return the pictures of a sheet of Excel's: they float, each anchored to a cell."""
    placed: list[tuple[int, str]] = []
    for kind, drawing in package.relations(sheet).values() if sheet else ():
        root = package.xml(drawing) if kind == "drawing" else None
        images = package.relations(drawing) if root is not None else {}
        for anchor in () if root is None else root:
            row = anchor.findtext("{*}from/{*}row") or ""
            for picture in anchor.iter("{*}pic"):
                blip = next(picture.iter("{*}blip"), None)
                kind, target = images.get(_reference(blip, "embed"), ("", ""))
                said = next((name.get("descr", "") for name in picture.iter("{*}cNvPr")), "")
                text = illustrate(package.picture(target) if kind == "image" else None, without_file_name(said))
                if text:
                    placed.append((int(row) if row.isdecimal() else 0, text))
    return [text for _row, text in sorted(placed, key=lambda each: each[0])]


def _of_open_document(package: Package) -> dict[str, list[str]]:
    root = package.xml("content.xml")
    found: dict[str, list[str]] = {}
    for table in () if root is None else root.iter("{*}table"):
        name = next((value for key, value in table.attrib.items() if key.endswith("}name")), "")
        targets = [_reference(image, "href") for image in table.iter("{*}image")]
        texts = [illustrate(package.picture(target)) for target in targets if target]
        found[name] = [text for text in texts if text]
    return found


def _reference(element: Any, name: str) -> str:
    """Return an attribute by its name, of whichever namespace."""
    attributes = {} if element is None else element.attrib
    return next((str(value) for key, value in attributes.items() if key.rpartition("}")[2] == name), "")
