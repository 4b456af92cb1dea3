"""Data as text: JSON, JSON lines and YAML. Records become tables, nested data an outline of keys and values."""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy
from apps.knowledge.parsers.tables import WIDEST, data_table

DEEPEST_HEADING = 3
DEEPEST = 100


def parse_json(file: BinaryIO) -> Parsed:
    """Read JSON; what is no valid JSON (comments, a stray comma) is kept as the text it is."""
    text, encoding = _decoded(file)
    try:
        data = json.loads(text)
    except ValueError:
        return Parsed(_fenced("json", text), metadata={"encoding": encoding, "invalid": True})
    return _as_parsed(data, encoding)


def parse_json_lines(file: BinaryIO) -> Parsed:
    """Read JSON lines; a line that is not valid is kept as text."""
    text, encoding = _decoded(file)
    found: list[Any] = []
    for line in text.split("\n"):
        try:
            if line.strip():
                found.append(json.loads(line))
        except ValueError:
            found.append(line)
    return _as_parsed(found, encoding)


def parse_yaml(file: BinaryIO) -> Parsed:
    """Read YAML as the text it is, which is how people read it; nothing in it is expanded."""
    text, encoding = _decoded(file)
    return Parsed(_fenced("yaml", text), metadata={"encoding": encoding})


def _decoded(file: BinaryIO) -> tuple[str, str]:
    text, encoding = decode(file.read())
    text = tidy(legible(text))
    if not text.strip():
        raise ParseFailure("empty_file")
    return text, encoding


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _as_parsed(data: Any, encoding: str) -> Parsed:
    markdown = tidy(legible("\n".join(_outline(data, 1, ""))))
    if not markdown.strip():
        raise ParseFailure("empty_file")
    return Parsed(markdown, metadata={"encoding": encoding})


def _outline(data: Any, depth: int, indent: str) -> Iterator[str]:
    """Yield lines: headings for the keys of the first levels, lists below, a table where all are flat records."""
    if depth > DEEPEST:
        raise ParseFailure("broken_file", reason="nested too deeply")
    if isinstance(data, list) and (table := _table(data)):
        yield from ("", table, "")
    elif isinstance(data, dict):
        for key, one in data.items():
            yield from _entry(str(key), one, depth, indent)
    elif isinstance(data, list):
        for at, one in enumerate(data, start=1):
            if isinstance(one, dict | list):
                yield from _entry(str(at), one, depth, indent)
            else:
                yield f"{indent}- {_scalar(one)}"
    else:
        yield f"{indent}{_scalar(data)}"


def _entry(key: str, data: Any, depth: int, indent: str) -> Iterator[str]:
    nested = isinstance(data, dict | list) and bool(data)
    name = " ".join(key.split())
    if nested and depth <= DEEPEST_HEADING:
        yield from ("", f"{'#' * depth} {name}", "")
        yield from _outline(data, depth + 1, "")
        yield ""
    elif nested:
        yield f"{indent}- {name}:"
        yield from _outline(data, depth + 1, indent + "  ")
    else:
        yield f"{indent}- {name}: {_scalar(data)}"


def _scalar(data: Any) -> str:
    text = data if isinstance(data, str) else "" if data in ([], {}) else json.dumps(data)
    return " ".join(text.split())


def _table(data: list[Any]) -> str:
    """Return a table of records without anything nested in them, "" where these are not."""
    if len(data) < 2 or not all(isinstance(one, dict) for one in data):
        return ""
    if any(isinstance(field, dict | list) for one in data for field in one.values()):
        return ""
    columns = list(dict.fromkeys(key for one in data for key in one))
    if not 1 < len(columns) <= WIDEST:
        return ""
    rows = [[_scalar(one[key]) if key in one else "" for key in columns] for one in data]
    return data_table([[str(key) for key in columns], *rows])
