"""``manage.py mcp``: the MCP server on standard input and output, for an assistant on this machine."""

import argparse
import asyncio
from typing import Any

from django.core.management.base import BaseCommand

from apps.workspaces import command_line
from apps.workspaces.models import User, Workspace


class Command(BaseCommand):
    help = "Serve the Model Context Protocol on standard input and output."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        command_line.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace, user = command_line.acting(options)
        asyncio.run(_serve(workspace, user))


async def _serve(workspace: Workspace, user: User) -> None:
    from mcp.server.stdio import stdio_server

    from apps.agents import runner
    from apps.common.database import close_pool
    from apps.conversations.engine import ENGINE
    from apps.interop.mcp_server import build
    from apps.interop.mcp_tools import Caller
    from apps.models.connections import Connections

    server = build(lambda _context: Caller(user, workspace.pk))
    await ENGINE.start()
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await ENGINE.stop()
        await runner.stop()
        await Connections().stop()
        await close_pool()
