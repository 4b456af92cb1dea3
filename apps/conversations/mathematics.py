"""Formulas in Markdown: ``$…$``, ``\\(…\\)``, ``$$…$$`` and ``\\[…\\]``, as MathML.

A formula never crosses a blank line, and a block of one that is not closed ends there as well: so a
text that is still being written has the same blocks as the whole one.
"""

import re
from functools import lru_cache

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

LONGEST = 2_000  # characters of one formula; what is longer is shown as it is written
# Between single dollars: no blank inside the ends, no digit behind (prices), nothing that looks like a marker.
DOLLARS = re.compile(r"\$(?![\s$])((?:\\.|[^\\$\n]|\n(?!\s*\n)){1,2000}?)(?<![\s\\])\$(?![\d$])")
DOUBLE = re.compile(r"\$\$((?:\\.|[^\\$]|\$(?!\$)){1,2000}?)\$\$")
ROUND = re.compile(r"\\\(((?:\\(?!\))|[^\\]){1,2000}?)\\\)")
SQUARE = re.compile(r"\\\[((?:\\(?!\])|[^\\]){1,2000}?)\\\]")
BLOCK_ENDS = {"$$": "$$", "\\[": "\\]"}


def _inline(state: StateInline, silent: bool) -> bool:
    here = state.src[state.pos]
    if here == "$":
        found = DOUBLE.match(state.src, state.pos) or DOLLARS.match(state.src, state.pos)
        display = state.src.startswith("$$", state.pos)
    elif here == "\\":
        found = ROUND.match(state.src, state.pos) or SQUARE.match(state.src, state.pos)
        display = state.src.startswith("\\[", state.pos)
    else:
        return False
    if found is None or found.end() > state.posMax or not found[1].strip():
        return False
    if not silent:
        state.push("html_inline", "", 0).content = to_mathml(found[1], display=display, source=found[0])
    state.pos = found.end()
    return True


def _block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Take a formula that begins its line; it ends with the line that closes it, or before a blank one."""
    if state.is_code_block(start_line):
        return False
    first = state.src[state.bMarks[start_line] + state.tShift[start_line] : state.eMarks[start_line]]
    close = BLOCK_ENDS.get(first[:2])
    if close is None or (close in first[2:] and not first[2:].rstrip().endswith(close)):
        return False
    if silent:
        return True
    lines, line, closed = [first[2:]], start_line, first[2:].rstrip().endswith(close)
    while not closed and line + 1 < end_line and not state.isEmpty(line + 1):
        if state.sCount[line + 1] < state.blkIndent:
            break
        line += 1
        lines.append(state.src[state.bMarks[line] : state.eMarks[line]])
        closed = lines[-1].rstrip().endswith(close)
    written = "\n".join(lines)
    body = written.rstrip()[: -len(close)] if closed else written
    state.line = line + 1
    token = state.push("html_block", "", 0)
    token.map = [start_line, state.line]
    source = f"{first[:2]}{written}"
    html = to_mathml(body, display=True, source=source) if closed and body.strip() else f"{escape(source)}"
    token.content = f"<p>{html}</p>\n"
    return True


@lru_cache(maxsize=256)
def to_mathml(latex: str, *, display: bool, source: str) -> str:
    """Return a formula as MathML, still to be sanitised; as code where it cannot be read."""
    if len(latex) <= LONGEST:
        from latex2mathml.converter import convert  # a quarter of a second, for those who write formulas

        try:
            return str(convert(latex.strip(), display="block" if display else "inline"))
        except Exception:  # noqa: BLE001, S110 (a model's slip, in whatever way the library trips over it)
            pass
    return f"<code>{escape(source)}</code>"


def mathematics(parser: MarkdownIt) -> None:
    """Teach a parser formulas."""
    parser.inline.ruler.before("escape", "mathematics", _inline)
    parser.block.ruler.before("fence", "mathematics", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
