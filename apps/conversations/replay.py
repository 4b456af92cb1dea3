"""Events of turns, fit for who reads them now: what was quoted from documents goes by today's rights."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import orjson
import psycopg
from django.core.exceptions import EmptyResultSet
from psycopg.rows import DictRow

from apps.conversations import rows
from apps.knowledge.models import Document
from apps.workspaces.principals import Principal

SOURCES, HEAD = '"type":"sources"', 120  # within so many characters a frame says what it is


async def fit_for(reader: Principal, events: Sequence[DictRow], connection: rows.Connection) -> Sequence[DictRow]:
    """Return stored events with the snippets of documents emptied that ``reader`` may not read any more.

    The answer itself stays: it was said to them. One query, and only where sources are among the events.
    """
    named = {place: orjson.loads(event["data"]) for place, event in enumerate(events) if event["type"] == "sources"}
    wanted = _documents(named.values())
    if not wanted:
        return events
    readable = await _readable(reader, wanted, connection)
    fit = list(events)
    for place, data in named.items():
        fit[place] = {**events[place], "data": orjson.dumps(_fitted(data, readable)).decode()}
    return fit


async def fit_frames(reader: Principal, frames: list[str]) -> list[str]:
    """Do the same to frames on their way; a database that does not answer counts as a right that went."""
    named = {place: orjson.loads(text) for place, text in enumerate(frames) if SOURCES in text[:HEAD]}
    wanted = _documents(named.values())
    if not wanted:
        return frames
    readable: set[str] = set()
    with suppress(psycopg.Error):
        async with rows.connected() as connection:
            readable = await _readable(reader, wanted, connection)
    fit = list(frames)
    for place, frame in named.items():
        fit[place] = orjson.dumps(_fitted(frame, readable)).decode()
    return fit


def _documents(found: Iterable[dict[str, Any]]) -> set[str]:
    return {item["document_id"] for data in found for item in data["sources"] if item["document_id"]}


async def _readable(reader: Principal, wanted: set[str], connection: rows.Connection) -> set[str]:
    door = Document.objects.visible_to(reader).filter(pk__in=wanted).values("id")
    with suppress(EmptyResultSet):  # a key that reads no documents at all
        found = await (await connection.execute(*rows.compiled(door))).fetchall()
        return {str(row["id"]) for row in found}
    return set()


def _fitted(data: dict[str, Any], readable: set[str]) -> dict[str, Any]:
    return {**data, "sources": [_without_text(item, readable) for item in data["sources"]]}


def _without_text(item: dict[str, Any], readable: set[str]) -> dict[str, Any]:
    if item["document_id"] is None or item["kind"] == "attachment" or item["document_id"] in readable:
        return item
    return {**item, "snippet": "", "heading": ""}
