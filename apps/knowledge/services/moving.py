"""A base moved to another embedding model: its passages are embedded beside those that answer, then switched at once.

Vectors of two models cannot be compared, so until the last one is there search goes on with the old model
and its vectors, and what is added meanwhile is indexed with it too.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.tasks import async_task
from pgvector import HalfVector

from apps.common.errors import InvalidInput
from apps.common.text import storable
from apps.knowledge.errors import JobActive
from apps.knowledge.index_text import EMBEDDED_LEVELS, POSTED_LEVELS, embedding_input
from apps.knowledge.models import Chunk, Job, KnowledgeBase, NextVector, PassageTokens
from apps.knowledge.querysets import ChunkQuerySet, JobQuerySet
from apps.knowledge.retrieval import vector_indexes
from apps.knowledge.storage_moves import alone, switch_vectors
from apps.models import gateway
from apps.models.accounting import Caller, charged_to
from apps.models.chat import ResolvedModel
from apps.models.errors import ModelUnavailable
from apps.models.models import Kind, ModelConfig
from apps.models.resolution import BUILTIN, from_environment
from apps.workspaces import audit
from apps.workspaces.models import User

logger = logging.getLogger(__name__)

TURN = "apps.knowledge.tasks.advance_moves"
SLICE_S = 10.0  # of one turn; then other work has its turn
BATCH, PAGE = 32, 1_024
LOCK = 0x6D6F7665  # advisory, with the base's id: one worker at a time embeds for a base


def move_to_model(*, knowledge_base: KnowledgeBase, model: str, actor: User) -> Job:
    """Begin to move a base to another embedding model, named by its ``reference``; search goes on as it is.

    Raises:
        InvalidInput: none is named, it is the base's own, not configured, or not theirs to choose.
        JobActive: the base is moving already.
        ModelError: the model does not answer. Nothing was begun.
    """
    wanted = _wanted(knowledge_base, storable(model), actor)
    with charged_to(Caller(knowledge_base.workspace_id, actor.pk)):
        probe = gateway.embed_now(wanted, ["dimension"], purpose="passage")
    job = Job(
        workspace_id=knowledge_base.workspace_id,
        knowledge_base=knowledge_base,
        kind=Job.Kind.EMBED,
        scope="embed",
        payload={"model": wanted.reference},
        total=_to_embed(knowledge_base).count(),
        created_by=actor,
    )
    try:
        with transaction.atomic():
            job.save(force_insert=True)
            locked = KnowledgeBase.objects.select_for_update(no_key=True).get(pk=knowledge_base.pk)
            kept = NextVector.objects.filter(knowledge_base_id=knowledge_base.pk)
            if locked.next_model != wanted.reference:  # else what an earlier try has embedded is kept
                kept.delete()
            else:
                Job.objects.filter(pk=job.pk).update(position=kept.count())
            knowledge_base.next_model, knowledge_base.next_dimensions = (
                wanted.reference,
                (wanted.dimensions or probe.shape[1]),
            )
            knowledge_base.save(update_fields=["next_model", "next_dimensions"])
            place, name = knowledge_base.workspace_id, knowledge_base.name
            audit.record("base.moved", who=actor, workspace_id=place, target=knowledge_base, name=name, model=model)
            async_task(TURN)
    except IntegrityError as error:
        raise JobActive from error
    return job


def models_for(*, knowledge_base: KnowledgeBase, actor: User) -> list[ResolvedModel]:
    """Return the embedding models that ``move_to_model`` takes from this person, by name."""
    rows = ModelConfig.objects.visible_to(actor).usable_in(knowledge_base.workspace_id)
    named = rows.filter(kind=Kind.EMBEDDING, enabled=True).order_by().values_list("name", flat=True).distinct()
    given = [model for model in (from_environment(Kind.EMBEDDING), BUILTIN[Kind.EMBEDDING]) if model]
    found: dict[str, ResolvedModel] = {}
    for reference in (*(f"openai_compatible:{name}" for name in named), *(model.reference for model in given)):
        try:
            found.setdefault(reference, _wanted(knowledge_base, reference, actor))
        except InvalidInput:
            continue
    return sorted(found.values(), key=lambda model: model.name)


def _wanted(base: KnowledgeBase, reference: str, actor: User) -> ResolvedModel:
    """Return the model of this reference. Raises InvalidInput where the base may not be moved to it by them."""
    if not reference:
        raise InvalidInput(field="model", reason=_("it is empty"))
    try:
        wanted = gateway.resolve_reference("embedding", reference, workspace_id=base.workspace_id)
    except ModelUnavailable:
        raise InvalidInput(field="model", reason=_("it is not configured any more")) from None
    if wanted.reference == base.embedding_model:
        raise InvalidInput(field="model", reason=_("it is the one in use"))
    # The very row that is called: another one of its name may be open to them.
    if wanted.id and not ModelConfig.objects.visible_to(actor).filter(pk=wanted.id).exists():
        raise InvalidInput(field="model", reason=_("it is not configured any more"))
    return wanted


@transaction.atomic
def dismiss_move(*, knowledge_base: KnowledgeBase, actor: User) -> None:
    """Put a move that failed away, with what it had embedded; without one there is nothing to do.

    Raises:
        JobActive: the move goes on; it can be cancelled.
    """
    locked = KnowledgeBase.objects.select_for_update(no_key=True).get(pk=knowledge_base.pk)
    if Job.objects.active().filter(knowledge_base=locked, kind=Job.Kind.EMBED).exists():
        raise JobActive
    if locked.next_model:
        audit.did("base.move_dismissed", locked, who=actor, model=locked.next_model)
        abandon(locked)
    knowledge_base.refresh_from_db(fields=["next_model", "next_dimensions"])


def advance(job: Job) -> bool:
    """Embed for a while, and switch when all is there; False if another worker is at it, or the job has ended."""
    with alone(LOCK, job.knowledge_base_id) as mine:
        if not mine or job.knowledge_base.deleted_at:
            return False
        base = job.knowledge_base
        job.refresh_from_db(fields=["position", "total"])  # another worker may have been at it until now
        until = time.monotonic() + SLICE_S
        try:
            model = gateway.resolve_reference("embedding", base.next_model, workspace_id=base.workspace_id)
            with charged_to(Caller(base.workspace_id, job.created_by_id)):
                while time.monotonic() < until:
                    page = _page(base)
                    if not page:
                        # What is in an index has its dimensions, and goes in slowly.
                        with vector_indexes.without(base.pk, base.dimensions or 0) as mine:
                            if mine and _switch(job, base):
                                return True
                            if not mine:  # an index is being built: the sweeper's next round goes on
                                return True
                    for at in range(0, len(page), BATCH):
                        if not _note(job, _embed(job, page[at : at + BATCH], model)):
                            return False
                        if time.monotonic() >= until:
                            break
        except gateway.ModelError as error:  # what is embedded stays for another try
            logger.warning("job %s: %s", job.pk, error.code)
            _end(job, Job.Status.FAILED, error_code=error.code, error_details=error.details)
            return True
    async_task(TURN)
    return True


def _to_embed(base: KnowledgeBase) -> ChunkQuerySet:
    return Chunk.objects.filter(knowledge_base=base, level__in=EMBEDDED_LEVELS, disabled=False)


def _missing(base: KnowledgeBase) -> ChunkQuerySet:
    there = NextVector.objects.filter(chunk_id=OuterRef("pk"))
    return _to_embed(base).filter(~Exists(there))


def _page(base: KnowledgeBase) -> list[Chunk]:
    found = list(_missing(base).select_related("document").order_by("document", "level", "ordinal")[:PAGE])
    return sorted(found, key=lambda chunk: len(chunk.text))  # texts of like length go together: least padding


def _embed(job: Job, chunks: Sequence[Chunk], model: ResolvedModel) -> int:
    """Keep the vectors of these chunks, unless the job has ended while the model made them; return how many."""
    import numpy as np

    base = job.knowledge_base
    texts = [embedding_input(chunk.document.name, chunk.heading, chunk.text) for chunk in chunks]
    vectors, tokens = gateway.embed_with_tokens_now(model, texts)
    refused = sum(not len(vector) or bool(np.isnan(vector).any()) for vector in vectors)
    if refused == len(texts) > 1:  # one odd passage may have no vector; a model that takes none is no model
        raise gateway.ModelRefused(model=model.name, reason=_("it refused every passage"))
    rows = [
        NextVector(
            chunk_id=chunk.pk,
            knowledge_base_id=base.pk,
            document_id=chunk.document_id,
            embedding=None if np.isnan(vector).any() or not len(vector) else HalfVector(vector),
        )
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]
    signs = [
        PassageTokens(chunk=chunk, document_id=chunk.document_id, signs=each)
        for chunk, each in zip(chunks, tokens, strict=True)
        if each and chunk.level in POSTED_LEVELS
    ]
    with transaction.atomic():
        # Who stops the move has been here before, or waits until these are written and then deletes them.
        locked = KnowledgeBase.objects.select_for_update(no_key=True).get(pk=base.pk)
        if locked.next_model != model.reference or not _unstopped(job).exists():
            return 0
        # A document that is indexed anew meanwhile has taken its chunks along: what is kept must have a chunk.
        alive = set(
            _to_embed(base)
            .filter(pk__in=[row.pk for row in rows])
            .select_for_update(no_key=True)
            .values_list("pk", flat=True)
        )
        NextVector.objects.bulk_create([row for row in rows if row.pk in alive], ignore_conflicts=True)
        PassageTokens.objects.bulk_create([row for row in signs if row.pk in alive], ignore_conflicts=True)
    return len(alive)


def _note(job: Job, embedded: int) -> bool:
    """Write down how far the job is, by what was embedded since; False if it was stopped.

    Nothing is counted: of a large base that would cost more with every batch. The end counts once.
    """
    job.position += embedded
    job.total = max(job.total, job.position)
    return bool(
        _unstopped(job).update(
            status=Job.Status.RUNNING,
            stage="embedding",
            position=job.position,
            total=job.total,
            result={"done": job.position},
            changed_at=timezone.now(),
        )
    )


@transaction.atomic
def _switch(job: Job, base: KnowledgeBase) -> bool:
    """Put all new vectors in the place of the old ones; False if a chunk has come meanwhile that has none.

    The base's row is locked: a document that is being stored waits, and is then told that the model is another.
    """
    locked = KnowledgeBase.objects.select_for_update(no_key=True).get(pk=base.pk)
    if _missing(base).exists() or not _end(job, Job.Status.SUCCEEDED):
        return False
    switch_vectors(base.pk, locked.next_model)
    NextVector.objects.filter(knowledge_base_id=base.pk).delete()
    locked.embedding_model, locked.dimensions = locked.next_model, locked.next_dimensions
    locked.next_model, locked.next_dimensions = "", None
    locked.save(update_fields=["embedding_model", "dimensions", "next_model", "next_dimensions"])
    return True


def abandon(base: KnowledgeBase) -> None:
    """Forget what a move that was stopped has embedded. In a transaction of the caller's."""
    NextVector.objects.filter(knowledge_base_id=base.pk).delete()
    KnowledgeBase.objects.filter(pk=base.pk).update(next_model="", next_dimensions=None)


def _unstopped(job: Job) -> JobQuerySet:
    return Job.objects.filter(pk=job.pk, cancel_requested=False).active()


def _end(job: Job, status: Job.Status, **fields: Any) -> int:
    now = timezone.now()
    count = NextVector.objects.filter(knowledge_base_id=job.knowledge_base_id).count()
    fields |= {"finished_at": now, "changed_at": now, "position": count, "total": count, "result": {"done": count}}
    return _unstopped(job).update(status=status, stage="", **fields)
