"""``manage.py document_errors``: write docs/errors.md from the error classes, so that it cannot lie."""

import importlib
import pkgutil
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import translation

from apps.common.errors import KnowSphereError

HEAD = """# Errors

Every failure that KnowSphere foresees has a stable code for programs and a sentence for people; REST, pages,
sockets, tools and tasks translate it in one place each (apps/common/errors.py). A program may rely on the
code, never on the sentence. This page is written by `manage.py document_errors`; a test compares.

| code | status | worth a retry | what people read |
|---|---|---|---|
"""
SKIPPED = {"migrations", "management", "sandbox"}


def classes() -> list[type[KnowSphereError]]:
    """Return every error class of the apps, by code."""
    import apps

    for module in pkgutil.walk_packages(apps.__path__, "apps."):
        if not SKIPPED & set(module.name.split(".")):
            importlib.import_module(module.name)
    found, rest = [], [KnowSphereError]
    while rest:
        error = rest.pop()
        found.append(error)
        rest.extend(error.__subclasses__())
    return sorted((e for e in found if e.__module__.startswith("apps.")), key=lambda e: (e.code, e.__qualname__))


def page() -> str:
    """Return the page."""
    with translation.override("en"):
        rows = {
            error.code: f"| `{error.code}` | {error.status} | {'yes' if error.retryable else 'no'} | "
            f"{str(error.user_message).replace('|', chr(92) + '|')} |"
            for error in classes()
        }
    return HEAD + "\n".join(rows.values()) + "\n"


class Command(BaseCommand):
    help = "Write docs/errors.md from the error classes."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        (settings.BASE_DIR / "docs" / "errors.md").write_text(page(), encoding="utf-8")
