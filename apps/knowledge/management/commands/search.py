"""Search knowledge bases: the very function behind the agent's ``doc_retrieval``."""

import asyncio
import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from apps.common.database import close_pool
from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.retrieval.passages import SearchResult
from apps.knowledge.retrieval.search import search
from apps.models import connections
from apps.workspaces import command_line
from apps.workspaces.models import User, Workspace


class Command(BaseCommand):
    help = "Search knowledge bases and print the passages found."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("query", type=storable)
        parser.add_argument(
            "--kb", type=storable, nargs="+", action="extend", metavar="NAME", required=True, help="knowledge bases"
        )
        parser.add_argument("--top-k", type=int, metavar="N", help="passages; without it as many as the profile says")
        parser.add_argument("--no-rerank", action="store_true")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        command_line.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace, user = command_line.acting(options)
        bases = named_bases(user, workspace, options["kb"])
        try:
            result = asyncio.run(_search(user, options, bases))
        except KnowSphereError as error:
            raise CommandError(error.message) from error
        if options["json"]:
            self.stdout.write(json.dumps(as_json(result), ensure_ascii=False))
        else:
            self._print(result)

    def _print(self, result: SearchResult) -> None:
        for number, passage in enumerate(result.passages, start=1):
            page = f"p. {passage.page}" if passage.page else ""
            place = " · ".join(part for part in (passage.document, passage.heading, page) if part)
            self.stdout.write(f"{number}. {place}  ({passage.score:.3f})\n{passage.text}\n")
        if result.degraded:
            self.stderr.write(_("Without: %(legs)s") % {"legs": ", ".join(result.degraded)})
        if not result.passages:
            self.stderr.write(_("Nothing found (%(reason)s).") % {"reason": result.empty_reason})


async def _search(user: User, options: dict[str, Any], bases: list[UUID]) -> SearchResult:
    try:
        return await search(
            user,
            options["query"],
            knowledge_bases=bases,
            top_k=options["top_k"],
            rerank=not options["no_rerank"],
        )
    finally:
        await connections.close()
        await close_pool()


def named_bases(user: User, workspace: Workspace, names: list[str]) -> list[UUID]:
    """Return the bases of those names that the person may read.

    Raises:
        CommandError: one of them does not exist for this person.
    """
    visible = KnowledgeBase.objects.visible_to(user).filter(workspace=workspace, name__in=names)
    found = dict(visible.values_list("name", "pk"))
    if missing := [name for name in names if name not in found]:
        raise CommandError(_("No knowledge base of this name is visible: %(names)s") % {"names": ", ".join(missing)})
    return list(found.values())


def as_json(result: SearchResult) -> dict[str, Any]:
    """Return the JSON shape of a search."""
    hits = [
        {
            "chunk_id": str(passage.chunk_id),
            "document_id": str(passage.document_id),
            "document": passage.document,
            "text": passage.text,
            "page": passage.page,
            "heading": passage.heading,
            "score": passage.score,
            "ranks": {"vector": None, "lexical": None} | passage.ranks,
            "rerank_score": passage.rerank_score,
        }
        for passage in result.passages
    ]
    stages = [{"name": stage.name, "ms": stage.ms, "in": stage.entered, "out": stage.left} for stage in result.stages]
    meta = {"stages": stages, "degraded": list(result.degraded), "empty_reason": result.empty_reason}
    return {"hits": hits, "meta": meta}
