"""Stored events, fit for who reads them now: what was quoted from documents goes by today's rights."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import orjson
from django.core.exceptions import EmptyResultSet
from psycopg.rows import DictRow

from apps.conversations import rows
from apps.knowledge.models import Document
from apps.workspaces.principals import Principal


async def fit_for(reader: Principal, events: Sequence[DictRow], connection: rows.Connection) -> Sequence[DictRow]:
    """Return the events with the snippets of documents emptied that ``reader`` may not read any more.

    The answer itself stays: it was said to them. One query, and only where sources are among the events.
    """
    named = {place: orjson.loads(event["data"]) for place, event in enumerate(events) if event["type"] == "sources"}
    wanted = {item["document_id"] for data in named.values() for item in data["sources"] if item["document_id"]}
    if not wanted:
        return events
    door = Document.objects.visible_to(reader).filter(pk__in=wanted).values("id")
    readable: set[str] = set()
    with suppress(EmptyResultSet):  # a key that reads no documents at all
        found = await (await connection.execute(*rows.compiled(door))).fetchall()
        readable = {str(row["id"]) for row in found}
    fit = list(events)
    for place, data in named.items():
        sources = [_without_text(item, readable) for item in data["sources"]]
        fit[place] = {**events[place], "data": orjson.dumps({**data, "sources": sources}).decode()}
    return fit


def _without_text(item: dict[str, Any], readable: set[str]) -> dict[str, Any]:
    if item["document_id"] is None or item["kind"] == "attachment" or item["document_id"] in readable:
        return item
    return {**item, "snippet": "", "heading": ""}
