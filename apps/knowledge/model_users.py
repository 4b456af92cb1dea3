"""Which knowledge bases hold vectors of configured models, move to them, or are put in order by them."""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from apps.knowledge.models import KnowledgeBase
from apps.models.models import Kind, ModelConfig
from apps.models.resolution import from_row
from apps.models.users import Use
from apps.workspaces.models import User


def find_in_knowledge_bases(models: Collection[ModelConfig], asker: User) -> Iterable[tuple[UUID, Use]]:
    """Find the bases that could not be searched as they are; those that the asker may not see have no name."""
    embedding = [(from_row(model).reference, model) for model in models if model.kind == Kind.EMBEDDING]
    reranking = [(str(model.pk), model) for model in models if model.kind == Kind.RERANK]
    if not embedding and not reranking:
        return
    order = "search_profile__chosen__rerank_model"
    references = [key for key, _ in embedding]
    wanted = Q(embedding_model__in=references) | Q(next_model__in=references)
    wanted |= Q(**{f"{order}__in": [key for key, _ in reranking]})
    seen = Exists(KnowledgeBase.objects.visible_to(asker).filter(pk=OuterRef("pk")))
    bases = KnowledgeBase.objects.filter(wanted).annotate(seen=seen)
    for workspace, name, reference, following, reranker, is_seen in bases.values_list(
        "workspace", "name", "embedding_model", "next_model", order, "seen"
    ):
        for key, model in (*embedding, *reranking):
            if key in (reference, following, reranker) and model.workspace_id in (None, workspace):
                yield model.pk, Use("knowledge_base", name if is_seen else "")
