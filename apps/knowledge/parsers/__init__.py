"""File formats KnowSphere reads. To add one: write ``parsers/<format>.py``, add its line here.

A parser is a function from an open file to ``Parsed``. It runs in the sandbox (no database, no
network, limits on time and memory), so it imports no Django, and raises ParseFailure with a code of
``apps.knowledge.errors``. ``content_types`` has to know the format's content type too.
"""

from apps.common.registry import Registry
from apps.knowledge.parsers import content_types as kind
from apps.knowledge.parsers.content_types import DOCX as DOCX
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
        kind.ENCRYPTED_OFFICE: "apps.knowledge.parsers.encrypted.parse_encrypted_office",
    },
)

# Formats that are text to the last byte: one long-lived sandbox process reads many such files.
# Everything else gets a process of its own.
TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/html", "text/csv", "text/tab-separated-values"})
