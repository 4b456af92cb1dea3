"""Data sets as folders of files, read whole and checked before anything runs. No database."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from apps.common.text import storable
from apps.evals.errors import BrokenDataset

INTENT_FIELDS = ("intent", "coarse")  # the first that an item has is its label


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of a corpus: a document of its own."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Passages, questions, and which passage answers which question, how well (above 0)."""

    name: str
    corpus: Mapping[str, Passage]
    queries: Mapping[str, str]
    relevant: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class IntentSet:
    """Texts with the intent that they have."""

    name: str
    items: tuple[tuple[str, str], ...]


def read_retrieval_set(folder: Path, *, extra: tuple[Path, ...] = ()) -> RetrievalSet:
    """Read ``corpus.jsonl``, ``queries.jsonl`` and ``qrels.tsv``; mix in the corpora of ``extra``.

    Ids are unique within a folder; an extra corpus may repeat those of another and stays apart.

    Raises:
        BrokenDataset: a file is missing, empty or not what it should be, or an id is unknown or twice there.
    """
    corpus = _corpus(folder)
    for other in extra:
        corpus |= {f"{other.name}/{key}": passage for key, passage in _corpus(other).items()}
    queries: dict[str, str] = {}
    path = folder / "queries.jsonl"
    for line, row in _json_lines(path):
        key = _new(path, line, row, queries)
        queries[key] = _text(path, line, row, "text", may_be_blank=True)  # asked all the same, and counted as failed
    relevant: dict[str, dict[str, int]] = {}
    path = folder / "qrels.tsv"
    for line, content in _lines(path):
        parts = content.split("\t")
        if len(parts) != 3 or not parts[2].strip().lstrip("-").isdecimal():
            raise BrokenDataset(file=str(path), line=line, reason=_("expected query, document and relevance, by tabs"))
        query, document, relevance = parts[0], parts[1], int(parts[2])
        for known, key in ((queries, query), (corpus, document)):
            if key not in known:
                raise BrokenDataset(file=str(path), line=line, reason=_("unknown id %(id)s") % {"id": key})
        if relevance > 0:
            relevant.setdefault(query, {})[document] = relevance
    if not relevant:
        raise BrokenDataset(file=str(path), line=0, reason=_("no question has an answer"))
    return RetrievalSet(folder.name, corpus, queries, relevant)


def read_intent_set(folder: Path) -> IntentSet:
    """Read ``items.jsonl`` with a text and an intent each.

    Raises:
        BrokenDataset: the file is missing, empty or not what it should be.
    """
    path = folder / "items.jsonl"
    items = []
    for line, row in _json_lines(path):
        field = next((name for name in INTENT_FIELDS if name in row), INTENT_FIELDS[0])
        items.append((_text(path, line, row, "text"), _text(path, line, row, field)))
    return IntentSet(folder.name, tuple(items))


def _corpus(folder: Path) -> dict[str, Passage]:
    path = folder / "corpus.jsonl"
    corpus: dict[str, Passage] = {}
    for line, row in _json_lines(path):
        key = _new(path, line, row, corpus)
        title = row.get("title") or ""
        if not isinstance(title, str):
            raise BrokenDataset(file=str(path), line=line, reason=_("“%(field)s” is not a text") % {"field": "title"})
        corpus[key] = Passage(key, storable(title), _text(path, line, row, "text"))
    return corpus


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1; at least one."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except OSError:
        raise BrokenDataset(file=str(path), line=0, reason=_("the file is missing or cannot be read")) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BrokenDataset(file=str(path), line=line, reason=_("it is not UTF-8")) from None
    lines = [(number, line.rstrip("\r")) for number, line in enumerate(content.split("\n"), start=1) if line.strip()]
    if not lines:
        raise BrokenDataset(file=str(path), line=0, reason=_("the file is empty"))
    yield from lines


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(path):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BrokenDataset(file=str(path), line=number, reason=_("it is not JSON")) from error
        if not isinstance(row, dict):
            raise BrokenDataset(file=str(path), line=number, reason=_("it is not a JSON object"))
        yield number, row


def _new(path: Path, line: int, row: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    key = _text(path, line, row, "id")
    if key in known or any(character in key for character in "\t\n"):
        raise BrokenDataset(file=str(path), line=line, reason=_("the id %(id)s is there twice") % {"id": key})
    return key


def _text(path: Path, line: int, row: Mapping[str, Any], field: str, *, may_be_blank: bool = False) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not (may_be_blank or value.strip()):
        raise BrokenDataset(file=str(path), line=line, reason=_("“%(field)s” is missing or empty") % {"field": field})
    return storable(value)
