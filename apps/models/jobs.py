"""Which model does which job in a workspace right now, and who says so."""

from dataclasses import dataclass
from uuid import UUID

from apps.models.errors import ModelUnavailable
from apps.models.models import Kind
from apps.models.resolution import resolve


@dataclass(frozen=True, slots=True)
class Job:
    """``source``: "builtin", "environment", "operator" or "workspace"; empty where no model does it."""

    kind: str
    model: str
    source: str


def jobs_of(workspace_id: UUID) -> list[Job]:
    """Return the jobs, in the order of Kind."""
    return [_job(kind, workspace_id) for kind in Kind]


def _job(kind: Kind, workspace_id: UUID) -> Job:
    try:
        model = resolve(kind, workspace_id=workspace_id)
    except ModelUnavailable:
        return Job(str(kind.label), "", "")
    if model.provider == "builtin":
        return Job(str(kind.label), model.name, "builtin")
    source = "environment" if model.id is None else "workspace" if model.guarded else "operator"
    return Job(str(kind.label), model.name, source)
