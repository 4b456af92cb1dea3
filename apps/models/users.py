"""Who uses configured models. Apps above register their own answer in ``AppConfig.ready``."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, OuterRef

from apps.common.registry import Registry
from apps.models.jobs import WORK
from apps.models.models import ModelConfig
from apps.workspaces.models import User


@dataclass(frozen=True, slots=True)
class Use:
    """One thing that a model cannot be taken from; ``name`` is empty where the asker may not see it."""

    kind: str  # "knowledge_base", "agent", "model", "default"
    name: str


# Of many models at once, in as many statements as of one: pairs of a model's id and what uses it.
Finder = Callable[[Collection[ModelConfig], User], Iterable[tuple[UUID, Use]]]
USERS = Registry[Finder]("user of models", {"models": "apps.models.users.find_in_models"})


def uses_of_each(models: Collection[ModelConfig], asker: User) -> dict[UUID, list[Use]]:
    """Return what uses each model, by its id; what the asker may not see is counted, not named."""
    found: defaultdict[UUID, list[Use]] = defaultdict(list)
    for name in USERS:
        for pk, use in USERS.get(name)(models, asker):
            found[pk].append(use)
    return found


def uses_of(model: ModelConfig, asker: User) -> list[Use]:
    """Return everything that uses a model; what the asker may not see is counted, not named."""
    return uses_of_each([model], asker).get(model.pk, [])


def find_in_models(models: Collection[ModelConfig], asker: User) -> Iterable[tuple[UUID, Use]]:
    """Find the jobs that each was chosen for, and the models that it stands in for."""
    seen = Exists(ModelConfig.objects.visible_to(asker).filter(pk=OuterRef("pk")))
    covered = ModelConfig.objects.filter(fallback__in=models).annotate(seen=seen)
    for fallback, name, is_seen in covered.values_list("fallback__pk", "name", "seen"):
        yield fallback, Use("model", name if is_seen else "")
    for model in models:
        for work in WORK.values():
            if work.kind == model.kind and getattr(model, work.role):
                yield model.pk, Use("default", str(work.name))
