"""Rich Text (.rtf): its words with paragraphs and tables; code pages by font, surrogates joined."""

import re
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.tables import markdown_table

TOKEN = re.compile(rb"\\([a-z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)")
SILENT = frozenset(
    {
        "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "datastore", "themedata",
        "colorschememapping", "latentstyles", "listtable", "listoverridetable", "rsidtbl", "generator", "xmlnstbl",
        "fldinst", "filetbl", "revtbl", "bkmkstart", "bkmkend", "nonshppict", "pgptbl", "wgrffmtfilter"
    }
)  # fmt: skip
SPOKEN = frozenset({"shptxt", "shpinst", "shprslt"})  # after \* and yet text
MARKS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ",
}  # fmt: skip
CHARSETS = {
    0: "cp1252", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5hkscs", 161: "cp1253", 162: "cp1254",
    177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
CODE_PAGES = {932: "cp932", 936: "gb18030", 949: "cp949", 950: "big5hkscs", 65001: "utf-8", 10000: "mac_roman"}
DEEPEST = 2_000


def parse_rtf(file: BinaryIO) -> Parsed:
    """Read a Rich Text file. Raises ParseFailure: broken_file, empty_file."""
    reader = _Reader()
    reader.read(file.read())
    markdown = tidy(legible("\n\n".join(reader.blocks))).strip()
    if not markdown:
        raise ParseFailure("empty_file")
    return Parsed(markdown)


class _Reader:
    """One pass over one file."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.rows: list[list[str]] = []
        self.cells: list[str] = []
        self.words: list[str] = []  # of the paragraph that is being read
        self.pending = bytearray()  # bytes in the font's code page, not yet decoded
        self.page = "cp1252"
        self.fonts: dict[int, str] = {}
        self.defining = -1  # a font in the font table
        self.stack: list[tuple[bool, int, str, bool]] = []
        self.silent, self.skip, self.encoding, self.in_fonts = False, 1, "", False
        self.to_skip = 0  # characters that stand in for a Unicode one before them
        self.starred = False

    def read(self, data: bytes) -> None:
        """Go through the file."""
        at = 0
        while match := TOKEN.match(data, at):
            at = match.end()
            word, number, byte, sign, brace, text = match.groups()
            if word:
                self.word(word.decode(), int(number) if number else None)
                if word == b"bin" and number:
                    at += max(int(number), 0)
            elif byte:
                self.bytes(bytes([int(byte, 16)]))
            elif sign:
                self.sign(sign)
            elif brace:
                self.brace(brace == b"{")
            elif text:
                self.bytes(text)
        self.paragraph()
        self.table()

    def brace(self, opens: bool) -> None:
        """Enter or leave a group."""
        self.flush()
        self.to_skip = 0
        if opens:
            if len(self.stack) > DEEPEST:
                raise ParseFailure("broken_file", reason="nested too deeply")
            self.stack.append((self.silent, self.skip, self.encoding, self.in_fonts))
        elif self.stack:
            self.silent, self.skip, self.encoding, self.in_fonts = self.stack.pop()
        self.starred = False

    def sign(self, sign: bytes) -> None:
        """Take a control symbol."""
        if sign == b"*":
            self.starred = True
        elif sign in b"{}\\":
            self.bytes(sign)
        elif sign in (b"~", b"_"):
            self.say(" " if sign == b"~" else "-")
        elif sign in (b"\r", b"\n") and not self.silent:
            self.paragraph()

    def word(self, word: str, number: int | None) -> None:
        """Take a control word."""
        starred, self.starred = self.starred, False
        if word in SILENT or (starred and word not in SPOKEN):
            self.flush()
            self.silent = True
            self.in_fonts = self.in_fonts or word == "fonttbl"
        elif word == "ansicpg" and number:
            self.page = _code_page(number)
        elif word == "uc":
            self.skip = number if number is not None else 1
        elif word == "u" and number is not None:
            self.say(chr(number % 0x10000))
            self.to_skip = self.skip
        elif word == "f" and number is not None:
            self.flush()
            self.defining = number
            self.encoding = self.fonts.get(number, "")
        elif word == "fcharset" and self.in_fonts and number in CHARSETS:
            self.fonts[self.defining] = CHARSETS[number or 0]
        elif self.silent:
            return
        elif word in ("par", "sect", "page"):
            self.paragraph()
        elif word in ("cell", "nestcell"):
            self.cell()
        elif word in ("row", "nestrow"):
            self.row()
        elif word in MARKS:
            self.say(MARKS[word])

    def bytes(self, data: bytes) -> None:
        """Take text in the code page."""
        if self.to_skip:
            gone = min(self.to_skip, len(data))
            self.to_skip -= gone
            data = data[gone:]
        if not self.silent:
            self.pending += data

    def say(self, text: str) -> None:
        """Append text that needs no code page."""
        if not self.silent:
            self.flush()
            self.words.append(text)

    def flush(self) -> None:
        """Decode the bytes read so far: a letter may be written in two tokens."""
        if self.pending:
            encoding = self.encoding if self.encoding not in ("", "cp1252") else self.page
            self.words.append(bytes(self.pending).decode(encoding, "replace"))
            self.pending.clear()

    def taken(self) -> str:
        """Return the paragraph's text and begin a new one."""
        self.flush()
        text = "".join(self.words).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self.words = []
        return text.strip()

    def paragraph(self) -> None:
        """End a paragraph; inside a row it goes on with its cell."""
        text = self.taken()
        if self.cells and text:
            self.cells.append(text)
        elif text:
            self.table()
            self.blocks.append(text)

    def cell(self) -> None:
        """End a cell."""
        self.cells.append(self.taken())

    def row(self) -> None:
        """End a row."""
        if self.cells:
            self.rows.append(self.cells)
        self.cells = []

    def table(self) -> None:
        """End a table, if there is one."""
        self.row()
        if self.rows:
            self.blocks.append(markdown_table(self.rows))
        self.rows = []


def _code_page(number: int) -> str:
    return CODE_PAGES.get(number) or (
        f"cp{number}" if number in range(1250, 1259) or number in (437, 850, 874) else "cp1252"
    )
