"""Files as real programs write them badly, or attackers well: each ends with its text or its word."""

import hashlib
import io
import re
import zipfile

import pytest

from apps.knowledge.errors import DocumentFailure
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.sandbox import reader
from tests.knowledge.files import TYPES, W, docx, p, pdf

PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def read(data, name, **more):
    file = io.BytesIO(data)
    return reader.read(file, sniff_file(file, name), **more)


def rc4(key, data):
    state, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def locked(text, user=b""):
    """Return a PDF of one line, encrypted (40 bits) with an owner's password and perhaps a user's."""
    pad = lambda word: (word + PAD)[:32]  # noqa: E731
    owner = rc4(hashlib.md5(pad(b"owner")).digest()[:5], pad(user))
    rights, mark = -44, b"0123456789abcdef"
    key = hashlib.md5(pad(user) + owner + rights.to_bytes(4, "little", signed=True) + mark).digest()[:5]
    content = f"BT /F 12 Tf 60 700 Td ({text}) Tj ET".encode()
    stream = rc4(hashlib.md5(key + (4).to_bytes(3, "little") + bytes(2)).digest()[:10], content)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d>>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Filter/Standard/V 1/R 2/P %d/O<%s>/U<%s>>>" % (rights, owner.hex().encode(), rc4(key, PAD).hex().encode()),
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size 7/Root 1 0 R/Encrypt 6 0 R/ID[<%s><%s>]>>" % (mark.hex().encode(), mark.hex().encode())
    return out + b"xref\n0 7\n0000000000 65535 f \n" + table + trailer + b"\nstartxref\n%d\n%%%%EOF" % len(out)


def test_an_owners_password_keeps_nobody_from_reading_and_a_users_does():
    assert "Rights are restricted" in read(locked("Rights are restricted"), "a.pdf").markdown
    with pytest.raises(DocumentFailure) as refused:
        read(locked("Nobody reads this", b"secret"), "a.pdf")
    assert refused.value.code == "password_required"
    assert "Nobody reads this" in read(locked("Nobody reads this", b"secret"), "a.pdf", password="secret").markdown


def packed(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in entries:
            package.writestr(name, data)
    return out.getvalue()


def test_packages_of_too_many_entries_or_beyond_their_ratio_are_refused():
    body = f"<w:document {W}><w:body>{p('x')}</w:body></w:document>"
    many = [("[Content_Types].xml", TYPES), ("word/document.xml", body)]
    many += [(f"word/media/{at}.xml", "") for at in range(20_000)]
    dense = [("[Content_Types].xml", TYPES), ("word/document.xml", body[:-30] + " " * (90 << 20))]
    for entries in (many, dense):
        with pytest.raises(DocumentFailure) as refused:
            read(packed(entries), "a.docx")
        assert refused.value.code == "suspicious_file"


def test_broken_pdf_parts_cost_no_more_than_themselves():
    """An inline image without its end, an outline that is its own next, an image of absurd size."""
    line = (60, 700, 12, "Still readable")
    endless = pdf([[line, "BI /W 4 /H 4 /BPC 8 /CS /G ID \x01\x02\x03"], [line]])
    circle = pdf([[line]]).replace(b"/Type/Catalog", b"/Type/Catalog/Outlines 1 0 R/First 1 0 R/Next 1 0 R")
    huge = pdf([[line, "q 500 0 0 500 50 50 cm /I Do Q"]]).replace(b"/Width 1/Height 1", b"/Width 99999/Height 99999")
    for data in (endless, circle, huge):
        assert "Still readable" in read(data, "a.pdf").markdown


def test_a_page_that_is_broken_costs_itself_and_is_named():
    from apps.knowledge.extraction import extract

    data = pdf([[(60, 700, 12, "The first page")], [(60, 700, 12, "The second page")]])
    second = list(re.finditer(rb"<</Type/Page/Parent[^\n]*>>", data))[1].group()
    found = extract(io.BytesIO(data.replace(second, b"(x)".ljust(len(second)))), "application/pdf")
    assert found.markdown == "The first page"
    assert found.metadata["unread_pages"] == [2]


def test_a_table_that_goes_on_without_its_header_belongs_to_what_it_began_with():
    from tests.knowledge.files import ruled

    rows = [[f"{at}", f"value {at}"] for at in range(1, 41)]
    first, second = ruled([["No", "What"], *rows[:20]], 760), ruled(rows[20:], 760)
    text = read(pdf([first, second]), "a.pdf").markdown
    assert len(re.findall(r"value \d+", text)) == 40
    assert re.findall(r"\| No \|[^\n]*What", text)


def test_right_to_left_lines_keep_their_logical_order():
    assert "السعر 604 ريال" in read(docx(p("السعر 604 ريال")), "a.docx").markdown
