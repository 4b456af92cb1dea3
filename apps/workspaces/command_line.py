"""Who a command acts as: ``--workspace SLUG`` and ``--as EMAIL``, the same for every command."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import QuerySet

from apps.common.text import storable
from apps.workspaces.models import Membership, Role, User, Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command the two options that ``acting`` reads."""
    parser.add_argument(
        "--workspace", type=storable, metavar="SLUG", default="", help="the workspace; needed where there are several"
    )
    parser.add_argument(
        "--as",
        dest="email",
        type=storable,
        metavar="EMAIL",
        default="",
        help="the person to act as (default: an owner)",
    )


def acting(options: dict[str, Any]) -> tuple[Workspace, User]:
    """Return the workspace and the person that the options name; the doors do the rest.

    Without ``--workspace`` there must be only one that fits. Raises CommandError.
    """
    _require_current_tables()
    email, slug = options["email"].strip().lower(), options["workspace"]
    people = Membership.objects.filter(user__is_active=True).select_related("workspace", "user")
    people = people.filter(user__email=email) if email else people.filter(role=Role.OWNER)
    if slug:
        people = people.filter(workspace__slug=slug)
    found = list(people.order_by("created_at")[:50])
    slugs = sorted({membership.workspace.slug for membership in found})
    if not found:
        raise CommandError(_missing(email, slug, Workspace.objects.all()))
    if len(slugs) > 1:
        raise CommandError(f"There are several workspaces; name one with --workspace: {', '.join(slugs)}")
    return found[0].workspace, found[0].user


def _require_current_tables() -> None:
    """Say it in one sentence where the code is newer than the database, before anything half works."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError("The database is older than this version of KnowSphere. Run `make setup`, then try again.")


def _missing(email: str, slug: str, workspaces: QuerySet[Workspace]) -> str:
    if slug and not workspaces.filter(slug=slug).exists():
        return f"There is no workspace “{slug}”."
    if email:
        return f"{email} is in no such workspace."
    return "There is no workspace yet; sign up in the browser or run `manage.py demo`."
