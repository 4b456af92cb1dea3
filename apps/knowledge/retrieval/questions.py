"""The question as vectors: once for each embedding model among the selected bases."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from psycopg.rows import DictRow

from apps.common.database import in_db
from apps.common.errors import KnowSphereError
from apps.knowledge.retrieval import outage
from apps.models import gateway
from apps.models.chat import ResolvedModel
from apps.models.errors import ModelTimeout

IN_PROCESS = "builtin:"
PATIENCE_S = 12.0  # for the question's vector: then the words answer alone

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Group:
    """Bases of one embedding model, and the question in its space as PostgreSQL writes vectors."""

    bases: list[UUID]
    vector: str


@dataclass(slots=True)
class Embedded:
    """The question for each group of bases; ``failed`` has a cause for each group whose model did not answer."""

    vectors: list[Group] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


async def embed_question(query: str, bases: Sequence[DictRow]) -> Embedded:
    """Embed a question with each model that one of ``bases`` is embedded by, all at the same time.

    Args:
        query: the question.
        bases: rows of ``scope.BASE_COLUMNS``; a base without a model holds nothing yet and is left out.
    """
    ours = all(not base["embedding_model"] or base["embedding_model"].startswith(IN_PROCESS) for base in bases)
    models, failed = _resolved(bases) if ours else await in_db(_resolved, bases)  # ours need no row
    answers = await asyncio.gather(*(_embed(model, query) for model, _bases in models))
    embedded = Embedded(failed=failed)
    for (_model, members), answer in zip(models, answers, strict=True):
        if answer.startswith("["):
            embedded.vectors.append(Group(members, answer))
        else:
            embedded.failed.append(answer)
    return embedded


def _resolved(bases: Sequence[DictRow]) -> tuple[list[tuple[ResolvedModel, list[UUID]]], list[str]]:
    """Find each base's model again. Returns models with their bases, and a cause for each that is gone."""
    references: defaultdict[tuple[UUID, str], list[UUID]] = defaultdict(list)
    for base in bases:
        if base["embedding_model"]:
            references[base["workspace_id"], base["embedding_model"]].append(base["id"])
    models: dict[tuple[str, str, str, UUID | None], tuple[ResolvedModel, list[UUID]]] = {}
    failed = []
    for (workspace_id, reference), members in references.items():
        try:
            model = gateway.resolve_reference("embedding", reference, workspace_id=workspace_id)
        except KnowSphereError as error:
            logger.warning("the model %s of some bases cannot be used: %s", reference, error.code)
            failed.append(outage.GONE)
            continue
        key = (model.provider, model.name, model.base_url, model.id)
        models.setdefault(key, (model, []))[1].extend(members)
    return list(models.values()), failed


async def _embed(model: ResolvedModel, query: str) -> str:
    """Return the question's vector as text, "[…]", or why there is none."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            vectors = await gateway.embed(model, [query], purpose="query")
    except KnowSphereError as error:
        logger.warning("a question could not be embedded: %s", error.code)
        return error.code
    except (OSError, ValueError) as error:  # too late, or the built-in model's files cannot be read
        logger.warning("a question could not be embedded by %s", model.name, exc_info=True)
        return ModelTimeout.code if isinstance(error, TimeoutError) else outage.UNREADABLE
    return "[" + ",".join(f"{number:.6f}" for number in gateway.across_languages(model, vectors[0]).tolist()) + "]"
