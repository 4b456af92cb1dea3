"""``manage.py build_token_centre``: what token vectors of the built-in embedder share, and what tells languages apart.

From texts of the project's own, in Chinese and English alike: the guide's paragraphs and the sentences of the intent
classifier. Stored signs belong to the centre that they were made with, so this is for a new model only.
"""

from typing import Any

import numpy as np
from django.core.management.base import BaseCommand

from apps.knowledge.services import sample
from apps.models.builtin import embedder, intent, late_interaction


class Command(BaseCommand):
    help = "Write the centre of the built-in embedder's token vectors."

    def handle(self, *args: Any, **options: Any) -> None:
        sentences = [sentence for _label, group in intent.groups() for sentence in group]
        pages = [path.read_text(encoding="utf-8") for path in sorted(sample.FOLDER.glob("*/*.md"))]
        paragraphs = [part for page in pages for part in page.split("\n\n") if part.strip()]
        np.save(late_interaction.CENTRE, embedder.token_means([sentences, paragraphs]))
        chinese, english = (
            embedder.embed_now([part for part in paragraphs if _is_chinese(part) == side], purpose="passage").mean(
                axis=0
            )
            for side in (True, False)
        )
        away = chinese - english
        np.save(late_interaction.LANGUAGE, (away / np.linalg.norm(away)).astype(np.float32))
        self.stdout.write(f"centre of {len(sentences)} sentences and {len(paragraphs)} paragraphs")


def _is_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)
