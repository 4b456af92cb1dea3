"""Tables as text (.csv, .tsv): the delimiter is found, the first row is the header."""

import csv
import io
from collections import Counter
from typing import Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.parsed import Parsed, ParseFailure
from apps.knowledge.parsers.tables import WIDEST, data_table

DELIMITERS = ",;\t|"
SAMPLE_ROWS = 50
LONGEST_FIELD = 1 << 20


def parse_delimited(file: BinaryIO) -> Parsed:
    """Read a table. Raises ParseFailure(empty_file) where there is no text."""
    text, encoding = decode(file.read())
    text = legible(text.replace("\r\n", "\n").replace("\r", "\n"))
    csv.field_size_limit(LONGEST_FIELD)
    lines = text.split("\n", 1)
    if lines[0].lower().startswith("sep=") and len(lines[0]) == 5 and len(lines) == 2:  # Excel's own hint
        delimiter, text = lines[0][4], lines[1]
    else:
        delimiter = delimiter_of(text)
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:  # a quotation mark that never ends
        rows = [line.split(delimiter) for line in text.split("\n")]
    markdown = data_table(rows)
    if not markdown:
        raise ParseFailure("empty_file")
    metadata: dict[str, Any] = {"encoding": encoding, "rows": sum(any(row) for row in rows)}
    if (widest := max(map(len, rows))) > WIDEST:
        metadata["truncated"] = f"{widest - WIDEST} of {widest} columns"
    return Parsed(markdown, metadata=metadata)


def delimiter_of(text: str) -> str:
    """Return the sign that cuts the first rows into most columns of one and the same number."""
    sample = "\n".join(text.split("\n", SAMPLE_ROWS)[:SAMPLE_ROWS])
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        try:
            widths = Counter(len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if row)
        except csv.Error:
            continue
        if not widths:
            continue
        width, rows = widths.most_common(1)[0]
        score = (rows / widths.total()) ** 2 * min(width - 1, 5)
        if score > best_score:
            best, best_score = delimiter, score
    return best
