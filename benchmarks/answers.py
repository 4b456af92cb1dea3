"""Answers of the built-in answerer on public questions, at one operating point.

``python -m benchmarks.answers FOLDER [--limit N]``, FOLDER with ``retrieval/xquad_en``, ``retrieval/xquad_zh`` and
``unanswerable``. The corpora go through the product's own ingestion into a workspace of their own; each question
through its search and the answerer's choice of sentences. Questions are halved by a hash of their ids: on one half the
operating point may be chosen (the script says which it would choose), the other half is what is reported.
"""

import argparse
import asyncio
import hashlib
import json
import os
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from knowsphere import postgres

READ = 4  # passages, as the answerer reads
LANGUAGES = ("en", "zh")
Row = tuple[str, bool, float, bool]  # half, has an answer, confidence, a sentence holds it


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def half(identity: str) -> str:
    """Return "tune" or "report", by the id alone."""
    return ("tune", "report")[hashlib.sha256(identity.encode()).digest()[0] % 2]


def normal(text: str) -> str:
    """Return text without what two ways to write it may differ in."""
    return "".join(unicodedata.normalize("NFKC", text).lower().split())


def make_base(folder: Path, language: str) -> Any:
    """Ingest a corpus; return (person, base)."""
    from django.core.files.base import ContentFile

    from apps.knowledge import services
    from apps.knowledge.models import KnowledgeBase
    from apps.workspaces.models import User
    from apps.workspaces.services import create_workspace

    person = User.objects.create_user(f"{uuid4().hex}@answers.example")
    workspace = create_workspace(name=f"Answers {language}", owner=person)
    base = KnowledgeBase.objects.create(workspace=workspace, name=language, created_by=person)
    for row in lines(folder / "corpus.jsonl"):
        name = f"{row['id']}.md"
        file = ContentFile(f"# {row['title']}\n\n{row['text']}\n".encode(), name=name)
        document = services.add_document(knowledge_base=base, file=file, name=name, actor=person)
        services.ingest_document(document.pk)
    return person, base


def questions(folder: Path, language: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (id, question, accepted answers) of the set, then of those whose passage is not there (no answers)."""
    own = folder / "retrieval" / f"xquad_{language}"
    accepted = {row["id"]: row["answers"] for row in lines(own / "answers.jsonl")}
    for row in lines(own / "queries.jsonl"):
        yield row["id"], row["text"], accepted[row["id"]]
    for row in lines(folder / "unanswerable" / "queries.jsonl"):
        if str(row.get("lang", "en")).startswith(language):
            yield row["id"], row["text"], []


async def measure(folder: Path, language: str, person: Any, base: Any, limit: int) -> list[Row]:
    """Search and choose sentences for each question."""
    from apps.knowledge.retrieval.search import search
    from apps.models.builtin.extraction import Text, extract

    taken: dict[tuple[str, bool], int] = {}
    found = []
    for identity, question, accepted in questions(folder, language):
        group = (half(identity), bool(accepted))
        if taken.get(group, 0) >= limit:
            continue
        taken[group] = taken.get(group, 0) + 1
        hits = await search(person, question, knowledge_bases=(base.pk,), top_k=8)
        passages = [Text(n, hit.text, hit.heading) for n, hit in enumerate(hits.passages[:READ], start=1)]
        extraction = await extract(question, passages)
        said = normal(" ".join(sentence.text for sentence in extraction.sentences))
        right = any(normal(answer) in said for answer in accepted)
        found.append((*group, extraction.confidence, right))
    return found


def shares(rows: list[Row], which: str, point: float) -> dict[str, float]:
    """Return the shares of one half at an operating point."""
    answerable = [row for row in rows if row[0] == which and row[1]]
    foreign = [row for row in rows if row[0] == which and not row[1]]
    return {
        "answerable": len(answerable),
        "cited sentence with the answer": sum(c >= point and right for _h, _a, c, right in answerable)
        / len(answerable),
        "unanswerable": len(foreign),
        "refused": sum(c < point for _h, _a, c, _r in foreign) / len(foreign),
    }


def choose(rows: list[Row]) -> float:
    """Return the point of the tuning half at which the lesser of the two margins above their bars is greatest."""

    def margin(point: float) -> float:
        told = shares(rows, "tune", point)
        return min(told["refused"] - 0.90, told["cited sentence with the answer"] - 0.70)

    return max((step / 20 for step in range(-80, 41)), key=margin)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=10_000, help="questions of each half and kind")
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "knowsphere.settings")
    os.environ.setdefault("KNOWSPHERE_HOME", str(Path(__file__).parent.parent / "var" / "bench"))
    postgres.hold()
    import django

    django.setup()
    from django.core.management import call_command

    from apps.models.builtin.extraction import ANSWERABLE

    call_command("setup", verbosity=0)
    everything = []
    for language in LANGUAGES:
        person, base = make_base(given.folder / "retrieval" / f"xquad_{language}", language)
        rows = asyncio.run(measure(given.folder, language, person, base, given.limit))
        everything += rows
        print(json.dumps({"language": language, "point": ANSWERABLE, **shares(rows, "report", ANSWERABLE)}), flush=True)
        print(json.dumps({"language": language, "half": "tune", **shares(rows, "tune", ANSWERABLE)}), flush=True)
    print(json.dumps({"point that the tuning half would choose": choose(everything)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
