"""Who uses a configured model. Apps above register their own answer in ``AppConfig.ready``."""

from collections.abc import Callable
from dataclasses import dataclass

from apps.common.registry import Registry
from apps.models.jobs import WORK
from apps.models.models import ModelConfig
from apps.workspaces.models import User


@dataclass(frozen=True, slots=True)
class Use:
    """One thing that a model cannot be taken from; ``name`` is empty where the asker may not see it."""

    kind: str  # "knowledge_base", "agent", "model", "default"
    name: str


Finder = Callable[[ModelConfig, User], list[Use]]
USERS = Registry[Finder]("user of models", {"models": "apps.models.users.find_in_models"})


def uses_of(model: ModelConfig, asker: User) -> list[Use]:
    """Return everything that uses a model; what the asker may not see is counted, not named."""
    return [use for name in USERS for use in USERS.get(name)(model, asker)]


def find_in_models(model: ModelConfig, asker: User) -> list[Use]:
    """Find the jobs that it was chosen for, and the models that it stands in for."""
    covered = ModelConfig.objects.filter(fallback=model)
    visible = set(ModelConfig.objects.visible_to(asker).filter(fallback=model).values_list("pk", flat=True))
    uses = [Use("model", row.name if row.pk in visible else "") for row in covered]
    done = [work for work in WORK.values() if work.kind == model.kind and getattr(model, work.role)]
    return [*uses, *(Use("default", str(work.name)) for work in done)]
