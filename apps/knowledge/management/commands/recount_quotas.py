"""``manage.py recount_quotas``: count documents and storage anew, such as after an upgrade or a restored backup."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.knowledge.services.counting import recount_quotas


class Command(BaseCommand):
    """May be run at any time; ``setup`` runs it too."""

    help = "Count each workspace's and person's documents and storage anew."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{recount_quotas()} counters were wrong and are right now.")
