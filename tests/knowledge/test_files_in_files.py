"""Mail, archives, books and OpenDocument files, read in the sandbox: what is inside them comes out, bounded."""

from email.message import EmailMessage

from apps.knowledge.parsers.embedded import MOST_FILES
from tests.knowledge.files import docx, p
from tests.knowledge.test_more_formats import zipped
from tests.knowledge.test_parsers import read, refused

TEXT = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
OFFICE = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
TABLE = 'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
ODT = "application/vnd.oasis.opendocument.text"


def mail(subject="会议 notes"):
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "Ann <ann@example.org>", "bea@example.org"
    message.set_content("Plain body.\n")
    message.add_alternative("<p>Rich body</p>", subtype="html")
    message.add_attachment(docx(p("MARK_ATTACHED")), maintype="application", subtype="msword", filename="a b.docx")
    return message.as_bytes()


def odt(body, styles="<s/>", manifest="<m/>"):
    content = (
        f"<office:c {OFFICE} {TEXT} {TABLE}><office:body><office:text>{body}</office:text></office:body></office:c>"
    )
    return zipped({"mimetype": ODT, "content.xml": content, "styles.xml": styles, "META-INF/manifest.xml": manifest})


def test_a_message_is_its_headers_its_body_once_and_its_attachments():
    parsed = read(mail(), "a.eml")
    assert parsed.markdown == (
        "# 会议 notes\n\nFrom: Ann <ann@example.org>\nTo: bea@example.org\n\n"
        "Plain body.\n\n## a b.docx\n\nMARK_ATTACHED"
    )
    assert parsed.metadata["title"] == "会议 notes"


def test_attachments_that_could_not_be_read_are_named():
    message = EmailMessage()
    message["Subject"] = "Tools"
    message.set_content("See below.\n")
    for name, data in (("tool.exe", b"MZ\x90\x00" + bytes(300)), ("b.pdf", b"%PDF-1.4 broken")):
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    assert read(message.as_bytes(), "a.eml").metadata["unread"] == "tool.exe, b.pdf"
    packed = read(zipped({"inner.eml": message.as_bytes(), "c.exe": b"MZ\x90\x00" + bytes(300)}), "a.zip")
    assert packed.metadata["unread"] == "tool.exe, b.pdf, c.exe"


def test_a_damaged_entry_costs_no_other_and_names_differ_by_case():
    texts = {"a.txt": "The first text.", "b.txt": "Damaged " * 40, "B.txt": "Another text.", "c.md": "Last."}
    parsed = read(damaged(zipped(texts)), "a.zip")
    assert parsed.metadata["unread"] == "b.txt"
    assert parsed.markdown == "# a.txt\n\nThe first text.\n\n# B.txt\n\nAnother text.\n\n# c.md\n\nLast."
    assert refused(damaged(zipped({"b.txt": "Damaged " * 40})), "a.zip") == "broken_file"


def damaged(packed):
    at = packed.index(b"b.txt") + 5
    return packed[:at] + b"\xff\xfe\xfd" + packed[at + 3 :]


def test_a_mailbox_is_its_messages():
    box = b"From a@b Mon Jan 1 00:00:00 2024\n" + mail("One") + b"\nFrom c@d Tue Jan 2 00:00:00 2024\n" + mail("Two")
    parsed = read(box, "a.mbox")
    assert parsed.markdown.index("# One") < parsed.markdown.index("# Two")
    assert parsed.metadata["messages"] == 2


def test_mail_in_an_undeclared_encoding_is_read():
    raw = b"Subject: " + "产品价格的通知".encode("gbk") + b"\n\n" + "我们的产品价格有变化".encode("gbk")
    assert read(raw, "a.eml").markdown == "# 产品价格的通知\n\n我们的产品价格有变化"


def test_a_saved_page_is_the_page():
    page = (
        b"From: <Saved>\nSubject: The page\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\n"
        b"Content-Type: text/html; charset=gb2312\nContent-Transfer-Encoding: quoted-printable\n\n"
        b"<html><body><h1>=CD=A8=D6=AA=BC=DB=B8=F1=B5=C4</h1><script>no</script></body></html>\n--x--\n"
    )
    assert read(page, "a.mhtml").markdown == "# The page\n\n# 通知价格的"


def test_an_archive_is_its_files_under_their_names():
    parsed = read(zipped({"a/one.txt": "first", "b.docx": docx(p("second")), "c.bin": bytes(64)}), "a.zip")
    assert parsed.markdown == ("# a/one.txt\n\nfirst\n\n# b.docx\n\nsecond\n\n# c.bin\n\n(application/octet-stream)")
    assert parsed.metadata["unread"] == "c.bin"
    assert refused(zipped({}), "a.zip") == "empty_file"


def test_archives_in_archives_end_and_a_flood_is_refused():
    data = zipped({"core.txt": "MARK_CORE"})
    for _ in range(20):
        data = zipped({"inner.zip": data})
    assert "MARK_CORE" not in read(data, "a.zip").markdown
    flood = zipped({f"{at}.txt": "x" for at in range(MOST_FILES // 2)})
    assert refused(zipped({f"{at}.zip": flood for at in range(3)}), "a.zip") == "suspicious_file"
    assert refused(zipped({"bomb.txt": "x" * (64 << 20)}), "a.zip") == "suspicious_file"
    assert refused(zipped({"a.zip": zipped({"bomb.txt": "x" * (64 << 20)})}), "a.zip") == "suspicious_file"


def test_a_book_is_its_chapters_in_reading_order():
    container = '<container><rootfiles><rootfile full-path="O/b.opf"/></rootfiles></container>'
    book = (
        "<package><metadata><title>The book</title></metadata><manifest>"
        '<item id="one" href="1.html" media-type="text/html"/>'
        '<item id="two" href="t/2%20x.html" media-type="text/html"/></manifest>'
        '<spine><itemref idref="two"/><itemref idref="one"/></spine></package>'
    )
    chapter = "<html><body><h1>{}</h1><p>words</p></body></html>"
    data = zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "O/b.opf": book,
            "O/1.html": chapter.format("One"),
            "O/t/2 x.html": chapter.format("Two"),
        }
    )
    parsed = read(data, "a.epub")
    assert parsed.markdown == "# Two\n\nwords\n\n# One\n\nwords"
    assert parsed.metadata["title"] == "The book"


def test_an_opendocument_text_keeps_its_structure():
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    body = (
        "<text:tracked-changes><text:p>MARK_GONE</text:p></text:tracked-changes>"
        '<text:h text:outline-level="2">Rules</text:h>'
        "<text:p>One<text:s text:c='2'/>two<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>said</text:p></text:note-body></text:note></text:p>"
        "<text:list><text:list-item><text:p>a</text:p><text:list><text:list-item><text:p>b</text:p></text:list-item>"
        "</text:list></text:list-item></text:list><table:table><table:table-row>"
        + cell.format(' table:number-columns-spanned="2"', "wide") + "<table:covered-table-cell/></table:table-row>"
        "<table:table-row>" + cell.format("", "1") + cell.format("", "2")
        + '<table:table-cell table:number-columns-repeated="16000"/></table:table-row></table:table>'
    )  # fmt: skip
    foot = f"<s {TEXT} xmlns:style='x'><style:footer><text:p>Footer</text:p></style:footer></s>"
    assert read(odt(body, foot), "a.odt").markdown == (
        "## Rules\n\nOne  two (said)\n\n- a\n  - b\n\n| wide | wide |\n| --- | --- |\n| 1 | 2 |\n\nFooter"
    )


def test_a_locked_opendocument_file_asks_for_its_password():
    assert refused(odt("<text:p>x</text:p>", manifest="<m><encryption-data/></m>"), "a.odt") == "password_required"
