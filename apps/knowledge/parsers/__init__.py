"""File formats KnowSphere reads. To add one: write ``parsers/<format>.py``, add its line here.

A parser is a function from an open file to ``Parsed``. It runs in the sandbox (no database, no
network, limits on time and memory), so it imports no Django, and raises ParseFailure with a code of
``apps.knowledge.errors``. ``sniffing`` has to know the format's content type too.
"""

from apps.common.registry import Registry
from apps.knowledge.parsers.parsed import Parse

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

PARSERS = Registry[Parse](
    "parser",
    {
        "text/plain": "apps.knowledge.parsers.plain_text.parse_text",
        "text/markdown": "apps.knowledge.parsers.plain_text.parse_markdown",
        "text/html": "apps.knowledge.parsers.html.parse_html",
        "application/pdf": "apps.knowledge.parsers.pdf.parse_pdf",
        DOCX: "apps.knowledge.parsers.docx.parse_docx",
    },
)

# Formats that are text to the last byte: one long-lived sandbox process reads many such files.
# Everything else gets a process of its own.
TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/html"})
