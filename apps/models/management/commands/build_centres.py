"""``manage.py build_centres``: what the built-in embedder's vectors share, and what tells its languages apart.

From ``parallel.jsonl``: paragraphs of all kinds that say the same in Chinese and in English, written for this. Stored
signs belong to the centre that they were made with, so this is for a new model only.
"""

from typing import Any

import numpy as np
from django.core.management.base import BaseCommand

from apps.models.builtin import embedder, late_interaction


class Command(BaseCommand):
    help = "Write the centre and the directions of languages of the built-in embedder's vectors."

    def handle(self, *args: Any, **options: Any) -> None:
        pairs = late_interaction.pairs()
        np.save(late_interaction.CENTRES, embedder.centres(pairs))
        self.stdout.write(f"centres of {len(pairs)} pairs of paragraphs")
