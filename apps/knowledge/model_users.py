"""Which knowledge bases hold vectors of a configured model, or have their passages put in order by it."""

from apps.knowledge.models import KnowledgeBase
from apps.models.models import Kind, ModelConfig
from apps.models.resolution import from_row
from apps.models.users import Use
from apps.workspaces.models import User


def find_in_knowledge_bases(model: ModelConfig, asker: User) -> list[Use]:
    """Find the bases that could not be searched as they are; those that the asker may not see have no name."""
    if model.kind == Kind.EMBEDDING:
        bases = KnowledgeBase.objects.filter(embedding_model=from_row(model).reference)
    elif model.kind == Kind.RERANK:
        bases = KnowledgeBase.objects.filter(search_profile__chosen__rerank_model=str(model.pk))
    else:
        return []
    if model.workspace_id is not None:
        bases = bases.filter(workspace=model.workspace_id)
    visible = set(
        KnowledgeBase.objects.visible_to(asker).filter(pk__in=bases.values("pk")).values_list("pk", flat=True)
    )
    return [Use("knowledge_base", base.name if base.pk in visible else "") for base in bases]
