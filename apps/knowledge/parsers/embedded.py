"""Files inside files: attachments and the entries of archives, read by their own parsers within one budget."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from apps.common.text import legible
from apps.knowledge.parsers.content_types import PDF, PICTURES, sniff
from apps.knowledge.parsers.parsed import ParseFailure

DEEPEST = 3
MOST_FILES = 1_000
MOST_BYTES = 512 << 20
EDGE_BYTES = 1 << 20
TINY = "picture"  # one that is too small to be kept: the sign of a firm, a dot that tells who reads


@dataclass(slots=True)
class _Budget:
    """What is left for all that is inside one uploaded file."""

    files: int = MOST_FILES
    bytes: int = MOST_BYTES
    depth: int = 0
    unread: list[str] = field(default_factory=list)  # names of files that could not be read


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def one_budget() -> Iterator[None]:
    """Let everything inside one file, at whatever depth, draw on one budget; the outermost call makes it."""
    token = _budget.set(_Budget()) if _budget.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _budget.reset(token)


def unread_inside(*more: str) -> dict[str, str]:
    """Return what a document's metadata say of files inside it that could not be read. Called within ``one_budget``."""
    budget = _budget.get()
    names = dict.fromkeys([*more, *(budget.unread if budget else ())])
    return {"unread": ", ".join(legible(name) for name in names)} if names else {}


def read_inside(data: bytes, name: str) -> tuple[str, str]:
    """Return (Markdown, "") of a file inside the one that is being read, or ("", why there is none).

    Never fails for what is inside: a broken attachment does not cost the message. Called within ``one_budget``.

    Raises:
        ParseFailure: suspicious_file where the whole goes beyond all measure.
    """
    budget = _budget.get() or _Budget()
    text, reason = _read_inside(budget, data, name)
    if reason not in ("", TINY):
        budget.unread.append(name or reason)
    return text, reason


def _read_inside(budget: _Budget, data: bytes, name: str) -> tuple[str, str]:
    from apps.knowledge.parsers import PARSERS

    budget.files -= 1
    budget.bytes -= len(data)
    if budget.files < 0 or budget.bytes < 0:
        raise ParseFailure("suspicious_file", reason="files inside files")
    kind = sniff(data[:EDGE_BYTES], data[-EDGE_BYTES:] if len(data) > EDGE_BYTES else b"", name)
    if kind not in PARSERS or budget.depth >= DEEPEST:
        return "", kind
    budget.depth += 1
    try:
        parsed = PARSERS.get(kind)(io.BytesIO(data))
        markdown = parsed.markdown
        if kind == PDF and parsed.unread:
            from apps.knowledge.parsers.pdf_pictures import drawn

            markdown = "\n\n".join(filter(None, (markdown, drawn(data, parsed.unread))))
        return markdown, "" if markdown.strip() else TINY if kind in PICTURES else "needs_ocr"
    except ParseFailure as failure:
        if failure.code == "suspicious_file":
            raise
        return "", failure.code
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (whatever a library throws at an attachment)
        return "", "broken_file"
    finally:
        budget.depth -= 1
