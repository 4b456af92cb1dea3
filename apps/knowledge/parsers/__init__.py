"""File formats KnowSphere reads. To add one: write ``parsers/<format>.py``, add its row in ``formats.py``.

A parser is a function from an open file to ``Parsed``. It runs in the sandbox (no database, no
network, limits on time and memory), so it imports no Django, and raises ParseFailure with a code of
``apps.knowledge.errors``.
"""

from apps.common.registry import Registry
from apps.knowledge.parsers import content_types as kind
from apps.knowledge.parsers.content_types import DOCX as DOCX
from apps.knowledge.parsers.formats import FORMATS
from apps.knowledge.parsers.parsed import Parse

PARSERS = Registry[Parse](
    "parser",
    {
        "text/plain": "apps.knowledge.parsers.plain_text.parse_text",
        "text/markdown": "apps.knowledge.parsers.plain_text.parse_markdown",
        "text/html": "apps.knowledge.parsers.html.parse_html",
        "text/csv": "apps.knowledge.parsers.delimited.parse_delimited",
        "text/tab-separated-values": "apps.knowledge.parsers.delimited.parse_delimited",
        kind.PDF: "apps.knowledge.parsers.pdf.parse_pdf",
        kind.DOCX: "apps.knowledge.parsers.docx.parse_docx",
        kind.XLSX: "apps.knowledge.parsers.spreadsheets.parse_spreadsheet",
        kind.XLSB: "apps.knowledge.parsers.spreadsheets.parse_spreadsheet",
        kind.XLS: "apps.knowledge.parsers.spreadsheets.parse_spreadsheet",
        kind.ODS: "apps.knowledge.parsers.spreadsheets.parse_spreadsheet",
        kind.PPTX: "apps.knowledge.parsers.pptx.parse_pptx",
        kind.FB2: "apps.knowledge.parsers.xml.parse_xml_text",
        "application/xml": "apps.knowledge.parsers.xml.parse_xml_text",
        "application/json": "apps.knowledge.parsers.structured.parse_json",
        "application/x-ndjson": "apps.knowledge.parsers.structured.parse_json_lines",
        "application/yaml": "apps.knowledge.parsers.structured.parse_yaml",
        "application/x-ipynb+json": "apps.knowledge.parsers.notebook.parse_notebook",
        "text/x-rst": "apps.knowledge.parsers.markup.parse_rst",
        "text/asciidoc": "apps.knowledge.parsers.markup.parse_asciidoc",
        "text/x-org": "apps.knowledge.parsers.markup.parse_org",
        "application/x-tex": "apps.knowledge.parsers.markup.parse_tex",
        "text/vtt": "apps.knowledge.parsers.subtitles.parse_subtitles",
        "application/x-subrip": "apps.knowledge.parsers.subtitles.parse_subtitles",
        kind.ODT: "apps.knowledge.parsers.odf.parse_odf",
        kind.ODP: "apps.knowledge.parsers.odf.parse_odf",
        kind.EPUB: "apps.knowledge.parsers.epub.parse_epub",
        kind.ZIP: "apps.knowledge.parsers.archive.parse_zip",
        kind.MSG: "apps.knowledge.parsers.msg.parse_msg",
        "message/rfc822": "apps.knowledge.parsers.mail.parse_mail",
        "application/mbox": "apps.knowledge.parsers.mail.parse_mbox",
        "multipart/related": "apps.knowledge.parsers.mail.parse_saved_page",
        kind.DOC: "apps.knowledge.parsers.doc.parse_doc",
        kind.PPT: "apps.knowledge.parsers.ppt.parse_ppt",
        kind.RTF: "apps.knowledge.parsers.rtf.parse_rtf",
        kind.DBF: "apps.knowledge.parsers.dbf.parse_dbf",
        kind.XPS: "apps.knowledge.parsers.layouts.parse_xps",
        kind.VSDX: "apps.knowledge.parsers.layouts.parse_vsdx",
        kind.PAGES: "apps.knowledge.parsers.layouts.parse_apple_pages",
        kind.HWP: "apps.knowledge.parsers.hwp.parse_hwp",
        kind.ONE: "apps.knowledge.parsers.onenote.parse_onenote",
        **dict.fromkeys(kind.PICTURES, "apps.knowledge.parsers.pictures.parse_picture"),
        **dict.fromkeys(kind.RECORDINGS, "apps.knowledge.parsers.recordings.parse_recording"),
        **{one.content_type: one.parser for one in FORMATS},
        kind.ENCRYPTED_OFFICE: "apps.knowledge.parsers.encrypted.parse_encrypted_office",
    },
)

# Formats that are text to the last byte: one long-lived sandbox process reads many such files.
# Everything else gets a process of its own.
TEXT_TYPES = frozenset(kind.TEXT_ENDINGS.values()) - {"message/rfc822", "application/mbox", "multipart/related"}
