"""``manage.py demo``: a person to sign in as, with a workspace and the guide as its first knowledge base.

May be run as often as anybody likes. The password is made once and kept, for the owner of the state
folder alone, in ``secrets/demo-password``; that file is written last, so that a run that was cut short
is done again.
"""

import argparse
import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from apps.agents.services import default_agent
from apps.knowledge.capability import knowledge_capability_enabled
from apps.knowledge.services.sample import create_sample_base
from apps.workspaces.models import User, Workspace
from apps.workspaces.services import create_workspace

EMAIL = "demo@knowsphere.local"
SLUG = "demo"
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that looks like another


class Command(BaseCommand):
    help = "Create the demo person, workspace and sample knowledge base."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--if-empty", action="store_true", help="do nothing if there are workspaces and no half-made demo"
        )

    def handle(self, *args: Any, if_empty: bool, **options: Any) -> None:
        kept = Path(settings.HOME) / "secrets" / "demo-password"
        half_made = User.objects.filter(email=EMAIL).exists() and not kept.exists()
        if if_empty and Workspace.objects.exists() and not half_made:
            return
        password = kept.read_text().strip() if kept.exists() else _new_password()
        workspace, person = _workspace(password, keep_password=kept.exists())
        default_agent(workspace)
        if knowledge_capability_enabled():
            create_sample_base(workspace=workspace, actor=person)
        if not kept.exists():
            _write_private(kept, password)
        self.stdout.write(f"Sign in as {EMAIL}; the password is in {kept}")


@transaction.atomic
def _workspace(password: str, *, keep_password: bool) -> tuple[Workspace, User]:
    """Return the demo workspace and its owner, made where they are missing."""
    person = User.objects.filter(email=EMAIL).first()
    if person is None:
        operator = settings.ENVIRONMENT == "local"  # who starts it on a machine of their own also runs it
        person = User.objects.create_user(EMAIL, password, name="Demo", is_staff=operator, is_superuser=operator)
    elif not keep_password:
        person.set_password(password)
        person.save(update_fields=["password"])
    workspace = Workspace.objects.visible_to(person).filter(slug__startswith=SLUG).order_by("created_at").first()
    return workspace or create_workspace(name="Demo", owner=person, slug=SLUG), person


def _new_password() -> str:
    return "-".join("".join(secrets.choice(ALPHABET) for _ in range(4)) for _ in range(3))


def _write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"{text}\n")
    draft.replace(path)
