"""``manage.py build_sample``: make the sample base's vectors anew, after its texts or the chunker changed."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.knowledge.services import sample


class Command(BaseCommand):
    help = "Make the sample base's vectors anew."

    def handle(self, *args: Any, **options: Any) -> None:
        count = sample.build()
        self.stdout.write(f"{count} vectors, {sample.VECTORS.stat().st_size // 1024} KB")
