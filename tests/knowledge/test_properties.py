"""What files say of themselves, under the same names whatever the format; and OpenDocument files under a password."""

import base64
import hashlib
import io
import struct
import zipfile
import zlib

import pytest
from cryptography.hazmat.decrepit.ciphers import algorithms as old
from cryptography.hazmat.decrepit.ciphers import modes as old_modes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from apps.knowledge.errors import DocumentFailure
from apps.knowledge.extraction import extract
from apps.knowledge.parsers.properties import facts, language_of
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.parsers.xlsb import _date_styles
from apps.knowledge.remarks import remarks
from apps.knowledge.sandbox import reader
from tests.knowledge.files import MC, TYPES, W, p, pdf
from tests.knowledge.test_files_in_files import odt
from tests.knowledge.test_more_formats import zipped
from tests.knowledge.test_parsers import read, refused

CORE = (
    '<c xmlns:d="d"><d:title> The  plan </d:title><d:creator>Ann</d:creator><d:created>2024-05-06T07:08:09Z</d:created>'
    "<d:modified>2024-06-01</d:modified><d:language>de-DE</d:language></c>"
)
SAID = {
    "title": "The plan",
    "author": "Ann",
    "created": "2024-05-06T07:08:09Z",
    "modified": "2024-06-01",
    "language": "de-DE",
}


def test_office_files():
    word = {
        "[Content_Types].xml": TYPES,
        "word/document.xml": f"<w:document {W} {MC}><w:body>{p('Text')}</w:body></w:document>",
    }
    assert read(zipped({**word, "docProps/core.xml": CORE}), "a.docx").metadata == SAID
    assert read(zipped({**word, "docProps/core.xml": "<broken"}), "a.docx").metadata == {}


def test_pdf_opendocument_pages_and_mail():
    data = pdf([[(50, 700, 12, "A page of text.")]])
    about = b"<</Author(Bea)/CreationDate(D:20240203040506+01'00')>>"
    data = data.replace(b"/Root 1 0 R>>", b"/Root 1 0 R/Info 99 0 R>>").replace(
        b"xref\n", b"99 0 obj\n" + about + b"\nendobj\nxref\n", 1
    )
    assert read(data, "a.pdf").metadata == {
        "page_count": 1,
        "author": "Bea",
        "created": "2024-02-03T04:05:06+01:00",
    }
    meta = "<m><title>Rules</title><initial-creator>Cy</initial-creator>"
    meta += "<creation-date>2020-01-02T03:04:05.6</creation-date></m>"
    out = io.BytesIO(odt("<text:p>x</text:p>"))
    with zipfile.ZipFile(out, "a") as package:
        package.writestr("meta.xml", meta)
    assert read(out.getvalue(), "a.odt").metadata == {
        "title": "Rules",
        "author": "Cy",
        "created": "2020-01-02T03:04:05.6",
    }
    page = '<html lang="fr"><head><title>T</title><meta name="author" content="Di"></head><body><p>x</p></body></html>'
    assert read(page, "a.html").metadata == {"encoding": "utf-8", "title": "T", "language": "fr", "author": "Di"}
    mail = "From: Ed <ed@x.test>\nSubject: S\nDate: Mon, 06 May 2024 07:08:09 +0200\n\nbody\n"
    assert read(mail, "a.eml").metadata == {
        "title": "S",
        "author": "Ed <ed@x.test>",
        "created": "2024-05-06T07:08:09+02:00",
    }


def test_dates_are_dates_or_nothing():
    for written, iso in (
        ("D:2024", "2024-01-01"),
        ("D:20240203040506Z", "2024-02-03T04:05:06Z"),
        ("2024-02-03 04:05", "2024-02-03 04:05"),
        ("yesterday", ""),
        ("D:x", ""),
    ):
        assert facts([("created", written)]).get("created", "") == iso
    assert facts([("language", "<b>"), ("language", "en_GB"), ("title", " "), ("title", "x" * 999)]) == {
        "language": "en_GB",
        "title": "x" * 300,
    }


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("知识库里的文件会被切成段落，每一段都有标题。", "zh"),
        ("これは日本語の文書です。漢字もあります。", "ja"),
        ("이 문서는 한국어로 되어 있습니다.", "ko"),
        ("The heating of the house is switched on in October and off in April. " * 3, "en"),
        ("Die Heizung wird im Oktober eingeschaltet und im April wieder abgeschaltet. " * 3, ""),
        ("4711", ""),
    ],
)
def test_the_language_of_a_text_is_told_where_it_is_clear(text, language):
    assert language_of(text) == language


def test_a_document_without_a_language_gets_that_of_its_text(db):
    file = io.BytesIO("# 手册\n\n知识库里的文件会被切成段落。".encode())
    assert extract(file, sniff_file(file, "a.md")).metadata["language"] == "zh"


def test_what_was_left_out_is_said_in_sentences():
    assert remarks({"page_count": 3, "title": "x"}) == []
    assert remarks({"unread_pages": [9, 3, 7, 8], "recognised_pages": 1, "hidden_sheets": "a"}) == [
        "Pages that could not be read: 3, 7–9. The rest of the document is searchable.",
        "Hidden sheets that were left out: a.",
        "The text of 1 page was recognised from its picture and may hold mistakes.",
    ]
    every = (
        "unread",
        "truncated",
        "tables_skipped",
        "not_described",
        "pictures_left_out",
        "best_effort",
        "transcribed_by",
    )
    assert len(remarks(dict.fromkeys(every, 2))) == len(every)


# Locked


def locked(content, password, cipher="aes"):
    """Return an OpenDocument text as LibreOffice (aes) or OpenOffice 2 (blowfish) locks it."""
    salt, vector = bytes(range(16)), bytes(range(16 if cipher == "aes" else 8))
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packed.compress(content.encode()) + packed.flush()
    digest = "sha256" if cipher == "aes" else "sha1"
    if cipher == "aes":
        data += bytes(-len(data) % 16)
    begun = hashlib.new(digest, password.encode()).digest()
    key = hashlib.pbkdf2_hmac("sha1", begun, salt, 1000, 32 if cipher == "aes" else 16)
    if cipher == "aes":
        machine = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    else:
        machine = Cipher(old.Blowfish(key), old_modes.CFB(vector)).encryptor()

    def b(raw):
        return base64.b64encode(raw).decode()

    lock = (
        f'<encryption-data checksum-type="{digest}-1k" checksum="{b(hashlib.new(digest, data[:1024]).digest())}">'
        f'<algorithm algorithm-name="{"#aes256-cbc" if cipher == "aes" else "Blowfish CFB"}" '
        f'initialisation-vector="{b(vector)}"/>'
        f'<key-derivation iteration-count="1000" key-size="{len(key)}" salt="{b(salt)}"/>'
        f'<start-key-generation start-key-generation-name="#{digest}"/></encryption-data>'
    )
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": f'<manifest><file-entry full-path="content.xml">{lock}</file-entry></manifest>',
            "content.xml": machine.update(data) + machine.finalize(),
        }
    )


@pytest.mark.parametrize("cipher", ["aes", "blowfish"])
def test_a_locked_opendocument_file_opens_with_its_password(cipher):
    plain = zipfile.ZipFile(io.BytesIO(odt("<text:p>behind a lock</text:p>"))).read("content.xml").decode()
    data = locked(plain, "秘密 1", cipher)
    assert refused(data, "a.odt") == "password_required"
    file = io.BytesIO(data)
    kind = sniff_file(file, "a.odt")
    assert reader.read(file, kind, password="秘密 1").markdown == "behind a lock"
    with pytest.raises(DocumentFailure) as caught:
        reader.read(file, kind, password="other")
    assert caught.value.code == "password_required"


# Dates of binary workbooks


def test_styles_of_binary_workbooks_tell_dates_from_numbers():
    def record(kind, body):
        code = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
        return code + bytes([len(body)]) + body

    def words(text):
        return struct.pack("<I", len(text)) + text.encode("utf-16-le")

    data = record(44, struct.pack("<H", 164) + words("yyyy\\-mm\\-dd"))
    data += record(44, struct.pack("<H", 165) + words('0.00 "day"'))
    data += record(47, struct.pack("<HH", 0, 14))  # of a named style, not of a cell
    data += record(617, b"")
    data += b"".join(record(47, struct.pack("<HH", 0, number)) for number in (0, 14, 164, 165, 2, 22))
    data += record(618, b"")
    assert _date_styles(data) == {1, 2, 5}
