"""Questions with their answers: as they are stored, as Markdown, and as CSV. Pure text."""

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from apps.common.text import legible
from apps.knowledge.parsers.delimited import delimiter_of
from apps.knowledge.parsers.encodings import decode

CONTENT_TYPE = "application/vnd.knowsphere.questions+json"
MOST_PAIRS = 5_000
LONGEST_QUESTION, LONGEST_ANSWER = 500, 20_000
LARGEST_LIST = 4 << 20  # bytes: what is kept comes back in one form, to be changed
HEADS = {"question", "questions", "q", "问题", "问", "提问"}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*%?")
HEADING = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)", re.MULTILINE)
UNDERLINE = re.compile(r"^( {0,3})(=+|-+)[ \t]*$", re.MULTILINE)


class Pair(NamedTuple):
    """A question and its answer."""

    question: str
    answer: str


def cleaned(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of which both halves say something."""
    found = []
    for pair in pairs:
        question = " ".join(legible(pair.question).split())
        answer = legible(pair.answer).replace("\r\n", "\n").strip()
        if question and answer:
            found.append(Pair(question, answer))
    return found


def stored(pairs: Sequence[Pair]) -> bytes:
    """Return the pairs as they lie in the file store."""
    return json.dumps([pair._asdict() for pair in pairs], ensure_ascii=False, indent=1).encode()


def read(content: bytes) -> list[Pair]:
    """Return the pairs that ``stored`` wrote."""
    return [Pair(item["question"], item["answer"]) for item in json.loads(content)]


def markdown(pairs: Sequence[Pair]) -> str:
    """Return one section a pair, headed by its question, so that each is a passage of its own.

    What would be a heading inside an answer is escaped: it would begin another section.
    """
    return "\n\n".join(f"## {pair.question}\n\n{_without_headings(pair.answer)}" for pair in pairs) + "\n"


def _without_headings(answer: str) -> str:
    return UNDERLINE.sub(r"\1\\\2", HEADING.sub(r"\1\\\2", answer))


def from_csv(content: bytes) -> list[Pair]:
    """Return the pairs of a table of two columns, in any usual encoding, with or without a row of heads."""
    text, _ = decode(content)
    delimiter = delimiter_of(text)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:  # a quotation mark that never ends
        rows = [line.split(delimiter) for line in text.splitlines()]
    pairs = [Pair(_as_typed(row[0]), _as_typed(row[1])) for row in rows if len(row) >= 2]
    if pairs and pairs[0].question.strip().lower() in HEADS:
        del pairs[0]
    return cleaned(pairs)


def to_csv(pairs: Sequence[Pair]) -> bytes:
    """Return the pairs for a spreadsheet program: with a byte order mark, and nothing that it would compute."""
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(Pair._fields)
    writer.writerows([_inert(pair.question), _inert(pair.answer)] for pair in pairs)
    return written.getvalue().encode("utf-8-sig")


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell


def _as_typed(cell: str) -> str:
    """Return a cell without what ``to_csv`` puts before it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell
