"""Links of a document lead on from its text: their addresses stay, and stand in the way of nothing."""

import io
import zipfile

import pytest

from apps.knowledge import services
from apps.knowledge.index_text import embedding_input, postings, said
from apps.knowledge.parsers.docx import parse_docx
from apps.knowledge.parsers.html import parse_html
from apps.knowledge.parsers.links import linked
from apps.knowledge.parsers.markup import parse_org, parse_tex
from apps.knowledge.parsers.odf import parse_odf
from apps.knowledge.parsers.pptx import parse_pptx
from tests.knowledge.files import RELATIONS, docx, p

HERE = "https://example.com/rules?id=4&x=(1)"
WRITTEN = "https://example.com/rules?id=4&x=%281%29"


def html(text, head=""):
    return parse_html(io.BytesIO(f"<html><head>{head}</head><body>{text}</body></html>".encode())).markdown


def package(source, files):
    """Return a zip package with some of its parts replaced or added."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as written:
        kept = zipfile.ZipFile(io.BytesIO(source)) if source else None
        for name in kept.namelist() if kept else ():
            if name not in files:
                written.writestr(name, kept.read(name))
        for name, text in files.items():
            written.writestr(name, text)
    return io.BytesIO(out.getvalue())


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        (HERE, WRITTEN),
        ("mailto:a@example.com", "mailto:a@example.com"),
        ("HTTP://EXAMPLE.com", "HTTP://EXAMPLE.com"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("#below", ""),
        ("/rules", ""),
        ("rules.html", ""),
        ("https://", ""),
        ("https://example.com/" + "x" * 2_000, ""),
        ("https://a b", ""),
        (None, ""),
    ],
)
def test_only_what_leads_to_the_web_or_a_mailbox_is_kept(address, kept):
    assert linked(" the rules ", address) == (f" [the rules]({kept}) " if kept else " the rules ")


def test_words_that_say_the_address_or_cannot_be_written_stay():
    assert linked("https://example.com", "https://example.com") == "https://example.com"
    assert linked("a@example.com", "mailto:a@example.com") == "a@example.com"
    assert linked("[1]", HERE) == "[1]"
    assert linked("", HERE) == ""


def test_of_a_page():
    assert html(f'<p>See <a href="{HERE}">the rules</a>, <a href="#x">below</a>.</p>') == (
        f"See [the rules]({WRITTEN}), below."
    )
    assert html(f'<h2><a href="{HERE}">Rules</a></h2><p>Text.</p>') == "## Rules\n\nText."
    canonical = '<link rel="canonical" href="https://example.com/a/b">'
    assert html('<p>See <a href="../rules">the rules</a> <a href="#x">here</a>.</p>', canonical) == (
        "See [the rules](https://example.com/rules) here."
    )
    assert html('<p><a href="http://[broken">the rules</a></p>', canonical) == "the rules"


def test_of_office_files():
    address = HERE.replace("&", "&amp;")
    link = f'<Relationship Id="r1" Type="{RELATIONS}/hyperlink" Target="{address}" TargetMode="External"/>'
    run = "<w:hyperlink r:id='r1' xmlns:r='r'><w:r><w:t>the rules</w:t></w:r></w:hyperlink>"
    word = docx(f"<w:p><w:r><w:t xml:space='preserve'>See </w:t></w:r>{run}</w:p>" + p("Ends."))
    read = parse_docx(package(word, {"word/_rels/document.xml.rels": f"<Relationships>{link}</Relationships>"}))
    assert read.markdown == f"See [the rules]({WRITTEN})\n\nEnds."

    text = (
        '<o xmlns:office="o" xmlns:text="t" xmlns:xlink="l"><office:body><office:text>'
        f'<text:p>See <text:a xlink:href="{address}">the rules</text:a>.</text:p>'
        "</office:text></office:body></o>"
    )
    mimetype = "application/vnd.oasis.opendocument.text"
    assert parse_odf(package(b"", {"mimetype": mimetype, "content.xml": text})).markdown == (
        f"See [the rules]({WRITTEN})."
    )

    click = "<a:r><a:rPr><a:hlinkClick r:id='r1'/></a:rPr><a:t>the rules</a:t></a:r>"
    body = f"<a:p><a:r><a:t>See </a:t></a:r>{click}</a:p><a:p><a:r><a:t>More.</a:t></a:r></a:p>"
    slide = f"<p:cSld><p:spTree><p:sp><p:txBody>{body}</p:txBody></p:sp></p:spTree></p:cSld>"
    names = f'xmlns:p="p" xmlns:a="a" xmlns:r="{RELATIONS}"'
    shown = {
        "ppt/presentation.xml": f"<p:p {names}><p:sldIdLst><p:sldId r:id='s'/></p:sldIdLst></p:p>",
        "ppt/_rels/presentation.xml.rels": f'<Relationships><Relationship Id="s" Type="{RELATIONS}/slide"'
        ' Target="slides/1.xml"/></Relationships>',
        "ppt/slides/1.xml": f"<p:sld {names}>{slide}</p:sld>",
        "ppt/slides/_rels/1.xml.rels": f"<Relationships>{link}</Relationships>",
    }
    assert parse_pptx(package(b"", shown)).markdown == f"## Slide 1\n\nSee [the rules]({WRITTEN})\n\nMore."


def test_of_markup():
    org = parse_org(io.BytesIO(f"* A [[{WRITTEN}][title]]\nSee [[{WRITTEN}][the rules]] [[#x][below]].".encode()))
    assert org.markdown == f"## A title\n\nSee [the rules]({WRITTEN}) below."
    tex = parse_tex(io.BytesIO(rb"See \href{https://example.com/rules}{the rules}."))
    assert tex.markdown == "See [the rules](https://example.com/rules)."


def test_addresses_are_neither_embedded_nor_searched_and_no_link_is_cut(add, embedder):
    text = f"See [the rules]({WRITTEN}) and [another](https://example.org/one)."
    assert said(text) == "See the rules and another."
    assert embedding_input("a.md", "", text) == "a\nSee the rules and another."
    assert "example" not in " ".join(postings(said(text)))
    document = add("The council decides on the heating. ".replace("council", f"[council]({WRITTEN})") * 40, "linked.md")
    services.ingest_document(document.pk)
    rows = list(document.chunks.all())
    assert len(rows) > 3
    assert all("](https://example.com/" in row.text and "example" not in said(row.text) for row in rows), (
        "a link is cut"
    )
    assert all("example" not in text for request in embedder.requests for text in request.body["input"])
