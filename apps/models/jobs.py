"""Which model does which job in a workspace right now, who says so, how long it takes and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.models.errors import ModelUnavailable
from apps.models.models import Kind, ModelConfig
from apps.models.resolution import default_of


@dataclass(frozen=True, slots=True)
class Work:
    """A kind of work that a model is chosen for."""

    key: str
    kind: Kind
    name: str | Promise
    what: str | Promise
    fast: bool = False

    @property
    def role(self) -> str:
        """The field of a configured model that says it was chosen for this."""
        return "is_fast" if self.fast else "is_default"


WORK = {
    work.key: work
    for work in (
        Work("answering", Kind.CHAT, _("Answering questions"), _("Writes the cited answer")),
        Work("quick", Kind.CHAT, _("Quick work"), _("Understands the question, rewrites, summarises"), fast=True),
        Work("meaning", Kind.EMBEDDING, _("Meaning search"), _("Turns passages into vectors; for new knowledge bases")),
        Work("reranking", Kind.RERANK, _("Reranking"), _("Orders passages by relevance")),
        Work("pictures", Kind.VISION, _("Pictures"), _("Describes images and scanned pages")),
        Work("recordings", Kind.SPEECH, _("Recordings"), _("Writes down what is said")),
    )
}


@dataclass(frozen=True, slots=True)
class Job:
    """``source``: "builtin", "environment", "operator" or "workspace"; empty where no model does it.

    ``without`` is the model that would do it if the workspace chose none. ``ms`` and ``costs`` are of the
    time that ``sums`` of ``jobs_of`` cover.
    """

    work: Work
    model: str
    source: str
    chosen: UUID | None
    choices: list[ModelConfig]
    without: str
    fallback: str
    ms: float | None
    costs: list[tuple[str, Decimal]]


def jobs_of(models: Sequence[ModelConfig], sums: Sequence[dict[str, Any]]) -> list[Job]:
    """Return the jobs in the order of WORK, without asking the database.

    ``models``: all that a workspace can use, with what stands in for them; ``sums``: of ``by_model``.
    """
    return [
        _job(work, [row for row in models if row.kind == work.kind and row.enabled], sums) for work in WORK.values()
    ]


def _job(work: Work, models: Sequence[ModelConfig], sums: Sequence[dict[str, Any]]) -> Job:
    own = [row for row in models if row.workspace_id]
    chosen = next((row.pk for row in own if getattr(row, work.role)), None)
    name, source, reference, fallback = _resolved(work, models)
    found = [row for row in sums if row["model"] == reference and row["kind"] == work.kind]
    main = next((row.name for row in own if row.is_default), "") if work.fast else ""
    without = name if chosen is None else main or _resolved(work, [row for row in models if not row.workspace_id])[0]
    calls = sum(row["calls"] for row in found)
    return Job(
        work=work,
        model=name,
        source=source,
        chosen=chosen,
        choices=own,
        without=without,
        fallback=fallback,
        ms=sum(row["ms"] * row["calls"] for row in found) / calls if calls else None,
        costs=[(row["currency"], row["cost"]) for row in found if row["cost"]],
    )


def _resolved(work: Work, models: Sequence[ModelConfig]) -> tuple[str, str, str, str]:
    """Return (name, source, reference, what stands in for it); empty texts where no model does it."""
    try:
        model = default_of(work.kind, [row for row in models if row.is_default or row.is_fast], fast=work.fast)
    except ModelUnavailable:
        return "", "", "", ""
    if model.provider == "builtin":
        return model.name, "builtin", model.reference, ""
    source = "environment" if model.id is None else "workspace" if model.guarded else "operator"
    return model.name, source, model.reference, model.fallback.name if model.fallback else ""
