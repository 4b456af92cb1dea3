"""Jupyter notebooks: text cells as they are, code and what it printed in fences."""

import base64
import json
from typing import Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.encodings import decode
from apps.knowledge.parsers.illustrations import illustrate
from apps.knowledge.parsers.parsed import Parsed, ParseFailure, tidy

LONGEST_OUTPUT = 4_000  # characters of one output; logs and arrays go on for ever


def parse_notebook(file: BinaryIO) -> Parsed:
    """Read a notebook. Raises ParseFailure: broken_file, empty_file."""
    text, encoding = decode(file.read())
    try:
        notebook = json.loads(text)
        sheets = notebook.get("worksheets") or [notebook]  # the third format kept its cells a level deeper
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        language = notebook.get("metadata", {}).get("kernelspec", {}).get("language") or "python"
        blocks = [block for cell in cells for block in _blocks(cell, str(language))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseFailure("broken_file", reason="no notebook") from error
    markdown = tidy(legible("\n\n".join(blocks)))
    if not markdown.strip():
        raise ParseFailure("empty_file")
    return Parsed(markdown, metadata={"encoding": encoding})


def _blocks(cell: dict[str, Any], language: str) -> list[str]:
    source = _joined(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") != "code":
        return [source] if source.strip() else []
    blocks = [f"```{language}\n{source}\n```"] if source.strip() else []
    for output in cell.get("outputs") or ():
        data = output.get("data") or {}
        text = _joined(output.get("text") or data.get("text/markdown") or data.get("text/plain") or "")
        if output.get("output_type") == "error":
            text = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        shown = (illustrate(_picture(data.get(kind))) for kind in ("image/png", "image/jpeg"))
        blocks.extend(filter(None, shown))
        if text.strip():
            blocks.append(f"```text\n{text.strip()[:LONGEST_OUTPUT]}\n```")
    return blocks


def _picture(written: Any) -> bytes | None:
    try:
        return base64.b64decode(_joined(written)) if written else None
    except ValueError:
        return None


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)
