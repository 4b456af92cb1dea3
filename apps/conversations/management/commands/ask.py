"""``manage.py ask QUESTION``: one turn in this process, streamed to the terminal."""

import argparse
import asyncio
import signal
import sys
from contextlib import aclosing
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.core.management.base import BaseCommand, CommandError

from apps.agents import runner
from apps.agents.models import Agent
from apps.common.database import close_pool
from apps.common.errors import KnowSphereError
from apps.common.text import storable
from apps.conversations import services
from apps.conversations.engine import ENGINE
from apps.conversations.frames import Ask
from apps.conversations.models import Conversation
from apps.knowledge.models import KnowledgeBase
from apps.models.connections import Connections
from apps.workspaces import command_line
from apps.workspaces.models import User, Workspace


class Command(BaseCommand):
    help = "Ask a question; the answer streams here, then its sources."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("question")
        parser.add_argument(
            "--agent", type=storable, metavar="NAME", default="", help="the agent (default: the workspace's)"
        )
        parser.add_argument(
            "--kb",
            type=storable,
            metavar="NAME",
            action="append",
            default=[],
            help="a knowledge base; repeat for more (default: all)",
        )
        parser.add_argument("--conversation", metavar="ID", type=UUID, help="go on with a conversation")
        parser.add_argument("--web", action="store_true", help="allow web search")
        parser.add_argument("--json", action="store_true", help="print the websocket's events, one a line")
        command_line.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace, user = command_line.acting(options)
        try:
            bases = self._bases(workspace, user, options["kb"])
            conversation = self._conversation(workspace, user, options)
            ask = Ask(text=options["question"], client_id=uuid4().hex, knowledge_bases=bases, web=options["web"])
            end = asyncio.run(self._ask(conversation, ask, user, as_json=options["json"]))
        except KnowSphereError as error:
            raise CommandError(f"{error.message} ({error.code})") from None
        if end.get("status") != "succeeded":
            reason = (end.get("error") or {}).get("message", "The answer is not complete.")
            raise CommandError(f"{reason} ({end.get('status')})")

    def _conversation(self, workspace: Workspace, user: User, options: dict[str, Any]) -> Conversation:
        if options["conversation"]:
            mine = Conversation.objects.visible_to(user).filter(workspace=workspace, pk=options["conversation"])
            if (found := mine.first()) is None:
                raise CommandError("There is no such conversation of this person.")
            return found
        agent = None
        if options["agent"]:
            agent = Agent.objects.visible_to(user).filter(workspace=workspace, name=options["agent"]).first()
            if agent is None:
                raise CommandError(f"There is no agent “{options['agent']}”.")
        return services.start_conversation(workspace=workspace, actor=user, agent=agent)

    def _bases(self, workspace: Workspace, user: User, names: list[str]) -> list[UUID]:
        visible = KnowledgeBase.objects.visible_to(user).filter(workspace=workspace)
        found = dict(visible.filter(name__in=names).values_list("name", "pk"))
        if missing := [name for name in names if name not in found]:
            raise CommandError(f"There is no knowledge base “{missing[0]}” that this person may read.")
        return [found[name] for name in names]

    async def _ask(self, conversation: Conversation, ask: Ask, user: User, *, as_json: bool) -> dict[str, Any]:
        """Run the turn to its end and print it. Returns the last event."""
        await ENGINE.start()
        try:
            turn = await services.start_turn(conversation, ask, actor=user)
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, ENGINE.stop_here, turn.pk)
            printed = Printed(as_json=as_json)
            async with aclosing(ENGINE.follow(turn.pk)) as batches:
                async for batch in batches:
                    for frame in batch:
                        printed.show(frame)
            return printed.end
        finally:
            await ENGINE.stop()
            await runner.stop()
            await Connections().stop()
            await close_pool()


class Printed:
    """Shows frames as they come: all of them as JSON, or the text and then its sources."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.end: dict[str, Any] = {}
        self._sources: dict[int, dict[str, Any]] = {}
        self._text: list[str] = []

    def show(self, frame: str) -> None:
        """Print what a frame brings."""
        event = orjson.loads(frame)
        if self.as_json:
            _write(frame + "\n")
        elif event["type"] == "token":
            self._text.append(event["text"])
            _write(event["text"])
        elif event["type"] == "sources":
            self._sources.update({source["n"]: source for source in event["sources"]})
        if event["type"] == "turn.finished":
            self.end = event
            if not self.as_json:
                self._show_sources()

    def _show_sources(self) -> None:
        text = "".join(self._text)
        lines = [
            f"[[c{n}]] {source['document'] or source['url']}" + (f", page {source['page']}" if source["page"] else "")
            for n, source in sorted(self._sources.items())
            if f"[[c{n}]]" in text
        ]
        _write("\n" + ("\n" + "\n".join(lines) + "\n" if lines else ""))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
