"""Small files of each format, made by hand: what is in them is what the test says."""

import io
import zipfile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
TYPES = '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def docx(body, **parts):
    """Return a Word file; ``parts`` are further parts of word/, such as ``footnotes='<w:footnotes …>'``."""
    links = "".join(
        f'<Relationship Id="{name}" Type="{RELATIONS}/{name}" Target="{name}.xml"/>' for name in sorted(parts)
    )
    files = {
        "[Content_Types].xml": TYPES,
        "word/document.xml": f"<w:document {W} {MC}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f"<Relationships>{links}</Relationships>",
        **{f"word/{name}.xml": text for name, text in parts.items()},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in files.items():
            package.writestr(name, text)
    return out.getvalue()


def p(text, properties=""):
    """Return a paragraph."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def written(x, y, size, text):
    """Return the PDF operators that write a line of text."""
    return f"BT /F {size} Tf {x} {y} Td ({text.replace('(', chr(92) + '(').replace(')', chr(92) + ')')}) Tj ET"


def ruled(rows, top, *, left=60, width=120, height=20):
    """Return the entries of a page that draw a ruled table; a cell that is None belongs to the one on its left."""
    across, down = len(rows[0]), len(rows)
    lines = [f"{left} {top - height * at} m {left + width * across} {top - height * at} l S" for at in range(down + 1)]
    entries = []
    for y, row in enumerate(rows):
        for x, cell in enumerate([*row, ""]):
            if cell is not None:
                place = left + width * x
                lines.append(f"{place} {top - height * y} m {place} {top - height * (y + 1)} l S")
        entries += [
            (left + width * x + 4, top - height * y - 14, 10, cell) for x, cell in enumerate(row) if cell is not None
        ]
    return [*lines, *entries]


def pdf(pages):
    """Return a PDF; a page is None for a picture alone, or a list of (x, y, size, Latin text) and operators."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    objects.append(
        "<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>"
        "\nstream\nA\nendstream"
    )
    kids = []
    for page in pages:
        if page is None:
            content = "q 500 0 0 700 50 50 cm /I Do Q"
        else:
            content = "\n".join(one if isinstance(one, str) else written(*one) for one in page)
        objects.append(f"<</Length {len(content)}>>\nstream\n{content}\nendstream")
        resources = "<</Font<</F 3 0 R>>/XObject<</I 4 0 R>>>>"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {len(objects)} 0 R/Resources{resources}>>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    out, places = "%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF"
    return f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")
