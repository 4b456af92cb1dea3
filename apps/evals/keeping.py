"""Writes to data sets: made, filled, changed, deleted."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from apps.common.errors import InvalidInput, NotFound
from apps.common.text import display_name, legible, storable
from apps.evals.errors import DatasetNameTaken
from apps.evals.models import Case, Dataset
from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces import audit
from apps.workspaces.exporting import as_lines
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import require
from apps.workspaces.services import Subject, share


def create_dataset(
    *,
    workspace: Workspace,
    name: str,
    kind: str,
    actor: User,
    knowledge_base: KnowledgeBase | None = None,
    restricted: bool = False,
) -> Dataset:
    """Make an empty data set; whoever makes it may manage it. The base came through the actor's ``visible_to``.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace; the base is another workspace's.
        DatasetNameTaken: the workspace has one of this name.
        InvalidInput: no name, or a set of the kind "retrieval" without a base to ask.
    """
    require("create_dataset", actor=actor, workspace=workspace)
    if knowledge_base is not None and knowledge_base.workspace_id != workspace.pk:
        raise NotFound
    if kind == Dataset.Kind.RETRIEVAL and knowledge_base is None:
        raise InvalidInput(field="knowledge_base", reason="it is missing")
    name = _named(name)
    try:
        with transaction.atomic():
            made = Dataset.objects.create(
                workspace=workspace, name=name, kind=kind, knowledge_base=knowledge_base, restricted=restricted,
                created_by=actor,
            )  # fmt: skip
            share(row=made, subject=Subject(user=actor), level="manage", actor=actor)
            audit.record("dataset.made", who=actor, workspace_id=workspace.pk, target=made, name=name)
    except IntegrityError as error:
        raise DatasetNameTaken(name=name) from error
    return made


def rename_dataset(*, dataset: Dataset, name: str, actor: User) -> None:
    """Give a data set that came through ``editable_by`` another name. Raises DatasetNameTaken, InvalidInput."""
    dataset.name = _named(name)
    try:
        with transaction.atomic():
            dataset.save(update_fields=["name"])
            audit.did("dataset.changed", dataset, who=actor, fields=["name"])
    except IntegrityError as error:
        raise DatasetNameTaken(name=dataset.name) from error


@transaction.atomic
def delete_dataset(*, dataset: Dataset, actor: User) -> None:
    """Delete a data set with its cases and shares; runs stay, with its name."""
    audit.did("dataset.deleted", dataset, who=actor)
    dataset.delete()


@transaction.atomic
def add_case(*, dataset: Dataset, text: str, actor: User, intent: str = "", documents: Sequence[UUID] = ()) -> Case:
    """Add a question to a data set that came through ``editable_by``.

    Raises:
        InvalidInput: no text, or no answer of the set's kind.
        NotFound: one of the documents is not in the set's base, or not the actor's to read.
    """
    if not legible(text).strip():
        raise InvalidInput(field="text", reason="it is empty")
    wanted = set(documents)
    if dataset.kind == Dataset.Kind.INTENT and not intent.strip():
        raise InvalidInput(field="intent", reason="it is missing")
    if dataset.kind == Dataset.Kind.RETRIEVAL and not wanted:
        raise InvalidInput(field="documents", reason="there must be at least one")
    readable = Document.objects.visible_to(actor).filter(knowledge_base=dataset.knowledge_base_id, pk__in=wanted)
    if wanted and readable.count() != len(wanted):
        raise NotFound
    case = Case.objects.create(
        dataset=dataset, text=storable(text.strip()), intent=storable(intent.strip()), documents=sorted(wanted)
    )
    audit.did("dataset.case_added", dataset, who=actor, case=str(case.pk))
    return case


@transaction.atomic
def delete_case(*, case: Case, actor: User) -> None:
    """Delete a case that came through ``editable_by``."""
    audit.did("dataset.case_deleted", case.dataset, who=actor, case=str(case.pk))
    case.delete()


def export(workspace: Workspace, actor: User) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Export data sets and their cases, as far as the actor may read them."""
    mine = Dataset.objects.visible_to(actor).filter(workspace=workspace).order_by("created_at")
    yield "datasets.jsonl", as_lines(list(mine.values("id", "name", "kind", "knowledge_base_id", "created_at")))
    cases: Any = Case.objects.filter(dataset__in=mine.order_by()).order_by("dataset", "created_at")
    yield "dataset-cases.jsonl", as_lines(list(cases.values("id", "dataset_id", "text", "intent", "documents")))


def _named(name: str) -> str:
    if not legible(name).strip():
        raise InvalidInput(field="name", reason="it is empty")
    return display_name(name, limit=100)
