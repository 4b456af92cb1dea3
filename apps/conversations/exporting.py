"""A conversation as a file: Markdown to read, JSON to go on with; each answer with its sources.

What was quoted from a document goes along only while its reader may read the document.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from apps.conversations import pages, rows_branches
from apps.conversations.markdown import NUMBER
from apps.conversations.models import Citation, Conversation, Turn
from apps.conversations.rendering import shown_numbers
from apps.knowledge.models import Document
from apps.workspaces.models import User

MOST = 10_000  # turns
CODE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`)", re.DOTALL)
SPACED_MARKER = re.compile(r"\s?\[\[c(\d+)\]\]")


def as_markdown(conversation: Conversation, *, reader: User, leaf: Turn | None = None) -> str:
    """Return one branch (of ``leaf``, or the one asked last) as Markdown with footnotes."""
    start = leaf.pk if leaf else conversation.turns.order_by("-number").values_list("pk", flat=True).first()
    ids = rows_branches.path_to(start, limit=MOST) if start else []
    turns = _turns(Turn.objects.filter(pk__in=ids))
    readable = _readable(turns, reader)
    lines = [f"# {conversation.title or _('Conversation')}", ""]
    lines += [_("Exported on %(date)s") % {"date": date_format(timezone.localtime(), "DATETIME_FORMAT")}, ""]
    for turn in turns:
        citations, text = _answer(turn)
        numbers = shown_numbers(text, citations)
        lines += [f"## {_one_line(turn.question)}", ""]
        if turn.question != _one_line(turn.question):
            lines += ["\n".join(f"> {line}" for line in turn.question.splitlines()), ""]
        lines += [_with_footnotes(text, turn, numbers), ""]
        notes = sorted((numbers[row.n], row) for row in citations if row.n in numbers)
        lines += [f"[^{turn.number}-{shown}]: {_source_line(row, readable)}" for shown, row in notes]
        lines += [""] if notes else []
    return "\n".join(lines)


def as_json(conversation: Conversation, *, reader: User) -> dict[str, Any]:
    """Return all turns, whatever their branch, with ids, sources, usage and what was thought of them."""
    turns = _turns(conversation.turns.all())
    readable = _readable(turns, reader)
    return {
        "id": str(conversation.pk),
        "title": conversation.title,
        "created_at": conversation.created_at.isoformat(),
        "exported_at": timezone.now().isoformat(),
        "turns": [_turn_as_json(turn, readable) for turn in turns],
    }


def _turns(turns: Any) -> list[Turn]:
    return list(pages.with_parts(turns).order_by("number")[:MOST])


def _answer(turn: Turn) -> tuple[list[Citation], str]:
    for message in turn.messages.all():
        if message.role == "assistant" and turn.status not in Turn.ACTIVE:
            return list(message.citations.all()), message.text
    return [], ""


def _readable(turns: Sequence[Turn], reader: User) -> set[str]:
    """Return the ids of the cited documents that the reader may read now; one query."""
    wanted = {row.document_id for turn in turns for row in _answer(turn)[0] if row.document_id}
    found = Document.objects.visible_to(reader).filter(pk__in=wanted).values_list("pk", flat=True)
    return {str(pk) for pk in found}


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:199]}…"


def _with_footnotes(text: str, turn: Turn, numbers: dict[int, int]) -> str:
    """Put footnotes in the markers' places, and drop markers that stand for nothing; code stays as it is."""

    def footnote(found: re.Match[str]) -> str:
        shown = numbers.get(int(found[1]))
        return f"[^{turn.number}-{shown}]" if shown else ""

    parts = CODE.split(text)
    return "".join(part if at % 2 else SPACED_MARKER.sub(footnote, part) for at, part in enumerate(parts))


def _may_quote(row: Citation, readable: Iterable[str]) -> bool:
    """Files of the conversation itself, and pages of the web, are its reader's anyway."""
    return row.document_id is None or row.kind == "attachment" or str(row.document_id) in readable


def _source_line(row: Citation, readable: set[str]) -> str:
    parts = [_one_line(row.document or row.url)]
    if row.page:
        parts.append(_("page %(page)s") % {"page": row.page})
    if not _may_quote(row, readable):
        return f"{', '.join(parts)} ({_('not shared with you any more')})"
    if row.heading:
        parts.append(_one_line(row.heading))
    if row.url and row.document:
        parts.append(row.url)
    quote = _one_line(row.text)
    return f"{', '.join(parts)}{f': “{quote}”' if quote else ''}"


def _turn_as_json(turn: Turn, readable: set[str]) -> dict[str, Any]:
    citations, text = _answer(turn)
    numbers = shown_numbers(text, citations)
    feedback = getattr(turn, "feedback", None)
    return {
        "id": str(turn.pk),
        "parent": str(turn.parent_id) if turn.parent_id else None,
        "number": turn.number,
        "asked_at": turn.started_at.isoformat(),
        "finished_at": turn.finished_at.isoformat() if turn.finished_at else None,
        "status": turn.status,
        "question": turn.question,
        "answer": NUMBER.sub(lambda found: found[0] if int(found[1]) in numbers else "", text),
        "model": turn.model,
        "usage": turn.usage,
        "error": turn.error,
        "feedback": {"good": feedback.good, "reason": feedback.reason, "comment": feedback.comment}
        if feedback
        else None,
        "sources": [_source_as_json(row, numbers[row.n], readable) for row in citations if row.n in numbers],
    }


def _source_as_json(row: Citation, shown: int, readable: set[str]) -> dict[str, Any]:
    allowed = _may_quote(row, readable)
    return {
        "n": row.n,
        "shown": shown,
        "kind": row.kind,
        "document": row.document,
        "document_id": str(row.document_id) if row.document_id else None,
        "chunk_id": str(row.chunk_id) if row.chunk_id else None,
        "page": row.page,
        "url": row.url,
        "readable": allowed,
        "heading": row.heading if allowed else "",
        "text": row.text if allowed else "",
    }
