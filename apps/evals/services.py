"""Run an evaluation and store it: the product's own ingestion, the product's own search, for one person."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any
from uuid import UUID

from django.core.files.base import ContentFile
from django.utils.translation import gettext as _

from apps.common.database import close_pool
from apps.common.errors import KnowSphereError, NotFound
from apps.common.text import storable
from apps.evals.datasets import IntentSet, Passage, read_intent_set, read_retrieval_set
from apps.evals.errors import BrokenDataset, UnknownEvaluation
from apps.evals.metrics import DEPTH, Score, score_labels, score_rankings
from apps.evals.models import Case, Dataset, EvalRun
from apps.knowledge import services as knowledge
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.retrieval.search import search
from apps.models import connections, gateway
from apps.models.chat import ResolvedModel
from apps.models.decision import decide_intent
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import require

Progress = Callable[[str, int, int], None]  # stage, done, of how many
POLL_S = 0.2
OVERFETCH = 3  # a document may have several passages among the first: fetch more, keep each document's best


def run_evaluation(
    *,
    kind: str,
    folder: Path,
    workspace: Workspace,
    actor: User,
    extra: tuple[Path, ...] = (),
    progress: Progress = lambda stage, done, total: None,
) -> EvalRun:
    """Run a data set, store the run with its metrics, and return it.

    Args:
        kind: "retrieval" or "intent".
        folder: the data set.
        workspace: where the run is stored and the temporary base lives.
        actor: who searches, and whom the run belongs to.
        extra: for retrieval, folders whose corpora are mixed in to make it harder.
        progress: told after each step.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace.
        BrokenDataset: before anything ran.
        UnknownEvaluation: no such kind.
    """
    require("run_evaluation", actor=actor, workspace=workspace)
    began = perf_counter()
    if kind == "retrieval":
        score, configuration = _run_retrieval(folder, extra, workspace, actor, progress)
    elif kind == "intent":
        score, configuration = _run_intent(folder, workspace, progress)
    else:
        raise UnknownEvaluation(kind=kind)
    return EvalRun.objects.create(
        workspace=workspace,
        kind=kind,
        dataset=storable(folder.name),
        n=score.n,
        scored=score.scored,
        failed=score.failed,
        metrics=score.metrics,
        configuration=configuration | {"extra": [other.name for other in extra], "valid": score.valid},
        seconds=round(perf_counter() - began, 2),
        created_by=actor,
    )


def run_dataset(*, dataset: Dataset, actor: User, progress: Progress = lambda stage, done, total: None) -> EvalRun:
    """Run a data set of the workspace that came through ``visible_to``: its own base, searched as the actor.

    A question whose documents are gone, or not the actor's to read, counts as failed.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace; the base is gone.
        BrokenDataset: there is no case in it.
    """
    require("run_evaluation", actor=actor, workspace=dataset.workspace)
    cases = list(Case.objects.visible_to(actor).filter(dataset=dataset).order_by("created_at", "pk"))
    if not cases:
        raise BrokenDataset(file=dataset.name, line=0, reason=_("it has no questions"))
    began = perf_counter()
    if dataset.kind == Dataset.Kind.RETRIEVAL:
        score, configuration = _search_own(dataset, cases, actor, progress)
    else:
        items = tuple((case.text, case.intent) for case in cases)
        score, configuration = _score_intents(IntentSet(dataset.name, items), dataset.workspace, progress)
    return EvalRun.objects.create(
        workspace=dataset.workspace,
        kind=dataset.kind,
        dataset=dataset.name,
        n=score.n,
        scored=score.scored,
        failed=score.failed,
        metrics=score.metrics,
        configuration=configuration | {"dataset": str(dataset.pk), "valid": score.valid},
        seconds=round(perf_counter() - began, 2),
        created_by=actor,
    )


def _search_own(
    dataset: Dataset, cases: Sequence[Case], actor: User, progress: Progress
) -> tuple[Score, dict[str, Any]]:
    base = KnowledgeBase.objects.visible_to(actor).filter(pk__in=[dataset.knowledge_base_id]).first()
    if base is None:
        raise NotFound
    readable = Document.objects.visible_to(actor).filter(knowledge_base=base, status=Document.Status.INDEXED)
    there = set(readable.values_list("pk", flat=True))
    relevant = {str(case.pk): {str(pk): 1 for pk in case.documents} for case in cases}
    askable = {str(case.pk): case.text for case in cases if there.issuperset(case.documents)}
    rankings: dict[str, list[str] | None] = dict.fromkeys(relevant)
    rows_of = {pk: [str(pk)] for pk in there}
    rankings |= asyncio.run(_rankings(actor, base.pk, askable, rows_of, progress))
    configuration = {"embedding_model": base.embedding_model, "chunker": base.chunker, "corpus": len(there)}
    return score_rankings(rankings, relevant), configuration


def _run_retrieval(
    folder: Path, extra: tuple[Path, ...], workspace: Workspace, actor: User, progress: Progress
) -> tuple[Score, dict[str, Any]]:
    dataset = read_retrieval_set(folder, extra=extra)
    with _temporary_base(workspace, actor) as base:
        rows_of = _ingest(base, dataset.corpus.items(), actor, progress)
        base.refresh_from_db()
        there = {row for rows in rows_of.values() for row in rows}
        # A question whose document never got in would measure the reading, not the search: it failed.
        askable = {key: dataset.queries[key] for key, rows in dataset.relevant.items() if there.issuperset(rows)}
        rankings: dict[str, list[str] | None] = dict.fromkeys(dataset.relevant)
        rankings |= asyncio.run(_rankings(actor, base.pk, askable, rows_of, progress))
        configuration = {
            "embedding_model": base.embedding_model,
            "chunker": base.chunker,
            "corpus": len(dataset.corpus),
            "failed_documents": len(dataset.corpus) - len(there),
        }
    return score_rankings(rankings, dataset.relevant), configuration


@contextmanager
def _temporary_base(workspace: Workspace, actor: User) -> Iterator[KnowledgeBase]:
    """Make a base that only its maker and the workspace's managers may read, and delete it in every case."""
    base = knowledge.create_knowledge_base(
        workspace=workspace, name=f"evaluation {uuid.uuid4().hex[:8]}", actor=actor, restricted=True
    )
    try:
        yield base
    finally:
        knowledge.delete_knowledge_base(knowledge_base=base, actor=actor)


def _ingest(base: KnowledgeBase, corpus: Any, actor: User, progress: Progress) -> dict[UUID, list[str]]:
    """Put each row of a corpus in as a document of its own; return the rows of each document that was indexed.

    Two rows of the same title and text are one document, as they are for everybody.
    """
    rows_of: dict[UUID, list[str]] = {}
    total = len(corpus)
    for done, (key, row) in enumerate(corpus, start=1):
        document = knowledge.add_document(
            knowledge_base=base, file=ContentFile(_as_text(row)), name=_file_name(row), actor=actor
        )
        rows_of.setdefault(document.pk, []).append(key)
        knowledge.ingest_document(document.pk)
        progress("ingest", done, total)
    _settle(base)
    indexed = Document.objects.filter(knowledge_base=base, status=Document.Status.INDEXED)
    there = set(indexed.values_list("pk", flat=True))
    return {pk: keys for pk, keys in rows_of.items() if pk in there}


def _settle(base: KnowledgeBase) -> None:
    """Wait for what a worker beside us has in hand; what it dropped is ours again when its lease is over."""
    unsettled = Document.objects.filter(knowledge_base=base).exclude(status__in=Document.FINAL)
    while waiting := list(unsettled.values_list("pk", flat=True)):
        for pk in waiting:
            knowledge.ingest_document(pk)
        sleep(POLL_S)


def _as_text(row: Passage) -> bytes:
    return row.text.encode()


def _file_name(row: Passage) -> str:
    return f"{row.title or row.id}.md"


async def _rankings(
    actor: User, base: UUID, questions: dict[str, str], rows_of: dict[UUID, list[str]], progress: Progress
) -> dict[str, list[str] | None]:
    """Ask each question as everybody does; None where the search or one of its two main legs failed."""
    rankings: dict[str, list[str] | None] = {}
    try:
        for done, (key, question) in enumerate(questions.items(), start=1):
            try:
                result = await search(actor, question, knowledge_bases=[base], top_k=DEPTH * OVERFETCH)
            except KnowSphereError:
                rankings[key] = None
            else:
                documents = dict.fromkeys(passage.document_id for passage in result.passages)
                failed = {"vector", "lexical"} & set(result.degraded)
                rankings[key] = None if failed else [row for pk in documents for row in rows_of.get(pk, ())]
            progress("search", done, len(questions))
    finally:
        await connections.close()
        await close_pool()
    return rankings


def _run_intent(folder: Path, workspace: Workspace, progress: Progress) -> tuple[Score, dict[str, Any]]:
    return _score_intents(read_intent_set(folder), workspace, progress)


def _score_intents(dataset: IntentSet, workspace: Workspace, progress: Progress) -> tuple[Score, dict[str, Any]]:
    model = gateway.resolve("chat", workspace_id=workspace.pk, fast=True)
    given = asyncio.run(_intents(model, [text for text, _intent in dataset.items], progress))
    return score_labels([intent for _text, intent in dataset.items], given), {"model": model.reference}


async def _intents(model: ResolvedModel, texts: list[str], progress: Progress) -> list[str | None]:
    labels: list[str | None] = []
    for done, text in enumerate(texts, start=1):
        try:
            labels.append((await decide_intent(text, model=model, has_knowledge=True)).label)
        except KnowSphereError:
            labels.append(None)
        progress("intent", done, len(texts))
    await connections.close()
    return labels
