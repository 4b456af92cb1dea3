"""Text with a markup of its own (.rst, .adoc, .org, .tex): headings made Markdown's, the words left as they are.

Line by line, and nothing is followed: an include is a line of text.
"""

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.links import linked, without_addresses
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

RST_RULE = re.compile(r"([=\-~`^\"'#*+:.<>_])\1{2,}[ \t]*$")
ADOC_HEADING = re.compile(r"(={1,6})[ \t]+(\S.*)$")
ADOC_BLOCKS = ("----", "....", "++++", "////")
ORG_HEADING = re.compile(r"(\*{1,6})[ \t]+(\S.*)$")
ORG_LINK = re.compile(r"\[\[([^\[\]]*)\](?:\[([^\[\]]*)\])?\]")
ORG_KEY = re.compile(
    r"#\+(title|author|date|subtitle|begin_src|end_src|begin_example|end_example)\b:?[ \t]*(.*)$", re.I
)
TEX_HEADING = re.compile(r"\\(part|chapter|section|subsection|subsubsection|paragraph|title)\*?\{([^{}]*)\}")
TEX_LEVELS = {"title": 1, "part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
TEX_ARGUMENT = re.compile(
    r"\\(?:textbf|textit|emph|texttt|underline|textsc|textrm|textsf|url|caption|footnote)\{([^{}]*)\}"
)
TEX_LINK = re.compile(r"\\href\{([^{}]*)\}\{([^{}]*)\}")
TEX_SILENT = re.compile(
    r"\\(?:begin|end|label|usepackage|documentclass|bibliographystyle|vspace|hspace|pagestyle)(?:\[[^\[\]]*\])?\{[^{}]*\}"
    r"(?:\[[^\[\]]*\])?|\\(?:maketitle|centering|noindent|newpage|clearpage|tableofcontents|hline|toprule|midrule|bottomrule)\b"
)
TEX_COMMENT = re.compile(r"(?<!\\)%.*$", re.MULTILINE)
TEX_ITEM = re.compile(r"^[ \t]*\\item(?:\[([^\[\]]*)\])?[ \t]*", re.MULTILINE)


def parse_rst(file: BinaryIO) -> Parsed:
    """Read reStructuredText."""
    return _parsed(file, lambda text: "\n".join(_rst(text.split("\n"))))


def parse_asciidoc(file: BinaryIO) -> Parsed:
    """Read AsciiDoc."""
    return _parsed(file, lambda text: "\n".join(_asciidoc(text.split("\n"))))


def parse_org(file: BinaryIO) -> Parsed:
    """Read an Org file."""
    return _parsed(file, lambda text: "\n".join(_org(text.split("\n"))))


def parse_tex(file: BinaryIO) -> Parsed:
    """Read LaTeX: formulas stay as they are written."""
    return _parsed(file, _tex)


def _parsed(file: BinaryIO, convert: Callable[[str], str]) -> Parsed:
    text, encoding = decode(file.read())
    markdown = tidy(legible(convert(tidy(text)))).strip()
    if not markdown:
        raise ParseFailure("empty_file")
    title = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    return Parsed(markdown, metadata={"encoding": encoding, **({"title": title.group(1)[:300]} if title else {})})


def _rst(lines: list[str]) -> Iterator[str]:
    """Yield lines; a line with a rule under it, perhaps over it too, is a heading of the level that rule first had."""
    levels: dict[tuple[str, bool], int] = {}
    at = 0
    while at < len(lines):
        over = bool(RST_RULE.match(lines[at])) and at + 2 < len(lines)
        text = lines[at + 1] if over else lines[at]
        under = lines[at + 1 + over] if at + 1 + over < len(lines) else ""
        rule = RST_RULE.match(under)
        framed = over and rule is not None and lines[at].strip() == under.strip()
        plain = not over and rule is not None and not text.startswith((" ", "|", "+", ".. "))
        if (framed or plain) and rule and text.strip() and len(under.strip()) >= len(text.strip()) // 2:
            level = levels.setdefault((rule.group(1), framed), len(levels) + 1)
            yield from ("", f"{'#' * min(level, 6)} {text.strip()}", "")
            at += 2 + framed
        else:
            yield lines[at]
            at += 1


def _asciidoc(lines: list[str]) -> Iterator[str]:
    inside = ""
    for line in lines:
        mark = line.rstrip()
        if mark[:4] in ADOC_BLOCKS and len(set(mark)) == 1:
            if not inside or inside == mark[:4]:
                inside = "" if inside else mark[:4]
            yield "```" if mark[:4] in ("----", "....") else ""
        elif not inside and (heading := ADOC_HEADING.match(line)):
            yield from ("", f"{'#' * len(heading.group(1))} {heading.group(2).strip()}", "")
        elif not inside and line.startswith(".") and line[1:2].isalnum():
            yield from ("", line[1:])
        elif inside != "////":
            yield line


def _org(lines: list[str]) -> Iterator[str]:
    for line in lines:
        key = ORG_KEY.match(line.strip())
        if key and key.group(1).lower() == "title":
            yield from (f"# {key.group(2)}", "")
        elif key and "_" in key.group(1):
            begins = key.group(1).lower().startswith("begin")
            yield f"```{key.group(2).split()[0] if begins and key.group(2).split() else ''}"
        elif heading := ORG_HEADING.match(line):
            yield from (
                "",
                f"{'#' * min(len(heading.group(1)) + 1, 6)} {without_addresses(_org_links(heading.group(2)))}",
                "",
            )
        else:
            yield _org_links(line)


def _org_links(text: str) -> str:
    return ORG_LINK.sub(lambda link: linked(link.group(2) or link.group(1), link.group(1)), text)


def _tex(text: str) -> str:
    body = TEX_COMMENT.sub("", text)
    title = TEX_HEADING.search(body.partition("\\begin{document}")[0])
    if "\\begin{document}" in body:
        body = body.partition("\\begin{document}")[2].partition("\\end{document}")[0]
        if title:
            body = f"{title.group(0)}\n{body}"
    body = TEX_LINK.sub(lambda link: linked(link.group(2), link.group(1)), body)
    for _ in range(4):  # one inside the other
        body = TEX_ARGUMENT.sub(r"\1", body)
    body = TEX_HEADING.sub(
        lambda found: f"\n\n{'#' * TEX_LEVELS[found.group(1)]} {' '.join(found.group(2).split())}\n\n", body
    )
    body = TEX_ITEM.sub(lambda item: f"- {item.group(1)}: " if item.group(1) else "- ", TEX_SILENT.sub("", body))
    return re.sub(r"\\([%&$#_{}])", r"\1", body).replace("\\\\", "\n").replace("``", "“").replace("''", "”")
