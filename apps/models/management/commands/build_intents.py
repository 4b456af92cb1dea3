"""``manage.py build_intents``: embed the sentences of the local intent classifier, after a change to them."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.models.builtin import intent


class Command(BaseCommand):
    help = "Write the centroids of the local intent classifier from its sentences."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{intent.build()} centroids in {intent.CENTROIDS.name}")
