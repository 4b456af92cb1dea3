"""Encrypt every stored key with the newest MASTER_KEY.

Put the new key into MASTER_KEY and the old one into MASTER_KEY_FALLBACKS, restart, run this, and then take the
old one away. It may be stopped and run again at any time: each row says by itself which key it was made with.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import models, transaction

from apps.common.fields import EncryptedField, SecretUnreadable
from apps.common.rotation import HOLDERS, Held


class Command(BaseCommand):
    """Re-encrypts row by row, each in a transaction of its own."""

    help = "Encrypt every stored key with the newest MASTER_KEY; the earlier ones can then go."

    def handle(self, *args: Any, **options: Any) -> None:
        renewed, current, unreadable = 0, 0, 0
        for held in chain(_in_columns(), *(HOLDERS.get(name)() for name in HOLDERS)):
            try:
                changed = held.renew()
            except SecretUnreadable:
                unreadable += 1
                self.stderr.write(f"{held.name}: no key that is set decrypts it; enter it again")
                continue
            renewed, current = renewed + changed, current + (not changed)
        self.stdout.write(f"{renewed} encrypted anew, {current} were already.")
        if unreadable:
            raise CommandError(f"{unreadable} could not be read.")


def _in_columns() -> Iterator[Held]:
    for model in apps.get_models():
        names = [field.name for field in model._meta.concrete_fields if isinstance(field, EncryptedField)]
        for name in names:
            for pk in model._base_manager.exclude(**{f"{name}__isnull": True}).values_list("pk", flat=True):
                yield Held(f"{model._meta.label} {pk}", partial(_renew, model, name, pk))


@transaction.atomic
def _renew(model: type[models.Model], name: str, pk: Any) -> bool:
    """Encrypt one value anew; the row is locked, so that a key which is entered meanwhile is not lost."""
    row = model._base_manager.select_for_update(no_key=True).filter(pk=pk).first()
    secret = getattr(row, name) if row is not None else None
    if secret is None or secret.is_current:
        return False
    setattr(row, name, secret.renewed())
    row.save(update_fields=[name])  # type: ignore[union-attr]
    return True
