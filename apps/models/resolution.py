"""Which model a call goes to: the one named, the workspace's default, the operator's, the environment's, ours."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeGuard
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext as _
from pydantic import ValidationError as SchemaError

from apps.common.compiled import CompiledQuery
from apps.common.fields import Secret
from apps.models.chat import FREE, ResolvedModel
from apps.models.configuration import Configuration
from apps.models.errors import ModelUnavailable
from apps.models.models import Kind, ModelConfig
from apps.models.providers import CUSTOM, VENDORS, facts, vendor_at
from apps.models.querysets import ModelConfigQuerySet

BUILTIN = {
    Kind.CHAT: ResolvedModel(Kind.CHAT, "builtin", "extractive", capabilities=frozenset({"tools"}), price=FREE),
    Kind.EMBEDDING: ResolvedModel(
        Kind.EMBEDDING, "builtin", "multilingual-e5-small", dimensions=384, max_input=510, max_batch=256, price=FREE
    ),
}


class _Variables(NamedTuple):
    """The settings that name a kind's model, its address and its key."""

    names: tuple[str, ...]
    base_url: str = "OPENAI_BASE_URL"
    key: str = "OPENAI_API_KEY"


ENVIRONMENT = {
    Kind.CHAT: _Variables(("CHAT_MODEL",)),
    Kind.EMBEDDING: _Variables(("EMBEDDING_MODEL",), "EMBEDDING_BASE_URL", "EMBEDDING_API_KEY"),
    Kind.RERANK: _Variables(("RERANK_MODEL",), "RERANK_BASE_URL", "RERANK_API_KEY"),
    Kind.VISION: _Variables(("VISION_MODEL",)),
    Kind.SPEECH: _Variables(("ASR_MODEL",), "ASR_BASE_URL", "ASR_API_KEY"),
}
FAST = _Variables(("FAST_MODEL", "CHAT_MODEL"))  # small questions: intent, titles, summaries
GRADE = _Variables(("GRADE_MODEL", "FAST_MODEL", "CHAT_MODEL"))  # whether evidence is good enough


def resolve(
    kind: str,
    *,
    workspace_id: UUID | None,
    explicit: UUID | None = None,
    fast: bool = False,
    grade: bool = False,
) -> ResolvedModel:
    """Choose the model for a call: explicit, workspace's default, operator's, environment's, built-in.

    An explicit model that is gone, disabled or another workspace's is an error, never replaced by
    another. ``fast`` prefers at each step the fast model beside the main one; ``grade`` is the same,
    except that the environment has a model of its own for it.

    Raises:
        ModelUnavailable: there is none of this kind, or the explicit one cannot be used.
    """
    usable = ModelConfig.objects.usable_in(workspace_id).filter(kind=kind).select_related("fallback")
    if explicit is not None:
        row = usable.filter(pk=explicit).first()
        if row is None or not row.enabled:
            reason = _("it was removed") if row is None else _("it is switched off")
            raise ModelUnavailable(model=row.name if row else "", reason=reason)
        return from_row(row)
    found = (
        list(_defaults(kind, None)) if workspace_id is None else DEFAULTS[Kind(kind)].rows(workspace_id=workspace_id)
    )
    return default_of(kind, found, fast=fast, grade=grade)


def default_of(kind: str, rows: Iterable[ModelConfig], *, fast: bool = False, grade: bool = False) -> ResolvedModel:
    """Choose among a place's defaults, else the environment's model, else the built-in one.

    Raises:
        ModelUnavailable: there is none of this kind.
    """
    default = _first(rows, fast=fast or grade)
    if default is not None:
        return from_row(default)
    found = from_environment(kind, fast=fast, grade=grade) or BUILTIN.get(Kind(kind))
    if found is None:
        raise ModelUnavailable(model=str(Kind(kind).label), reason=_("no model of this kind is configured"))
    return found


def _first(rows: Iterable[ModelConfig], *, fast: bool) -> ModelConfig | None:
    """Return the first default; of each place's two chat models the fast one, where that is wanted."""
    suitable = [row for row in rows if row.is_default or fast]
    return min(suitable, key=lambda row: (row.workspace_id is None, fast and not row.is_fast), default=None)


def _defaults(kind: str, workspace_id: UUID | None) -> ModelConfigQuerySet:
    usable = ModelConfig.objects.usable_in(workspace_id)
    return usable.filter(Q(is_default=True) | Q(is_fast=True), kind=kind, enabled=True).own_first()


DEFAULTS = {kind: CompiledQuery(partial(_defaults, kind)) for kind in Kind}


def defaults_statement(kind: str, workspace_id: UUID) -> tuple[str, tuple[object, ...]]:
    """Return the statement whose rows ``default_of`` chooses among, to run beside others."""
    return DEFAULTS[Kind(kind)].statement(workspace_id=workspace_id)


def resolve_reference(kind: str, reference: str, *, workspace_id: UUID | None) -> ResolvedModel:
    """Find again the model that a ``ResolvedModel.reference`` stands for, such as a base's embedder.

    An empty reference means whatever ``resolve`` would choose now.

    Raises:
        ModelUnavailable: no model of that name is configured any more.
    """
    if not reference:
        return resolve(kind, workspace_id=workspace_id)
    provider, _colon, name = reference.partition(":")
    builtin = BUILTIN.get(Kind(kind))
    if builtin is not None and builtin.reference == reference:
        return builtin
    rows = ModelConfig.objects.usable_in(workspace_id).filter(kind=kind, name=name, enabled=True)
    row = rows.own_first().first() if provider == "openai_compatible" else None
    if row is not None:
        return from_row(row)
    from_env = from_environment(kind)
    if from_env is not None and from_env.reference == reference:
        return from_env
    raise ModelUnavailable(model=name, reason=_("it is not configured any more"))


def from_row(row: ModelConfig) -> ResolvedModel:
    """Return a configured model as a value; its key stays sealed until it is sent."""
    instead = row.fallback if row.fallback_id else None
    return replace(_alone(row), fallback=_alone(instead) if _may_stand_in(instead, row) else None)


def _alone(row: ModelConfig) -> ResolvedModel:
    configuration = row.configuration if isinstance(row.configuration, dict) else {}
    known = {**facts(row.provider, row.kind, row.name), **configuration}
    remote = _remote(row.kind, row.name, row.base_url, row.api_key, known, row.provider, row.pk)
    return replace(remote, guarded=row.workspace_id is not None)


def _may_stand_in(instead: ModelConfig | None, row: ModelConfig) -> TypeGuard[ModelConfig]:
    """Vectors of two models cannot be compared; of other kinds one model may answer for another."""
    if instead is None or not instead.enabled or instead.pk == row.pk:
        return False
    return instead.kind == row.kind != Kind.EMBEDDING and instead.workspace_id in (None, row.workspace_id)


def from_environment(kind: str, *, fast: bool = False, grade: bool = False) -> ResolvedModel | None:
    """Return the model that the environment names for a kind, or None."""
    variables = ENVIRONMENT[Kind(kind)]
    if kind == Kind.CHAT and (fast or grade):
        variables = GRADE if grade else FAST
    name = next((value for each in variables.names if (value := getattr(settings, each))), "")
    if not name:
        return None
    key = getattr(settings, variables.key)
    address = getattr(settings, variables.base_url)
    vendor = vendor_at(address)
    return _remote(kind, name, address, Secret(key) if key else None, facts(vendor, str(kind), name), vendor)


def _remote(
    kind: str,
    name: str,
    base_url: str,
    key: Secret | None,
    configuration: dict[str, Any],
    vendor: str,
    pk: UUID | None = None,
) -> ResolvedModel:
    try:
        known = Configuration.model_validate(configuration)
    except SchemaError:
        raise ModelUnavailable(model=name, reason=_("its limits and capabilities cannot be read")) from None
    habits = VENDORS.get(vendor, VENDORS[CUSTOM])
    return ResolvedModel(
        kind=str(kind),
        provider="openai_compatible",
        name=name,
        base_url=base_url.rstrip("/"),
        key=key,
        id=pk,
        context_window=known.context_window,
        max_output=known.max_output,
        dimensions=known.dimensions,
        max_input=known.max_input,
        max_batch=known.max_batch,
        capabilities=frozenset(known.capabilities),
        thinking_switch=habits.thinking if "thinking_switch" in known.capabilities else "",
        thinks={"on": True, "off": False}.get(known.thinking),
        reasoning_replay=known.reasoning_replay,
        reasoning_field=habits.reasoning_field,
        max_concurrent=known.max_concurrent,
        logits=known.logits,
        price=known.price.as_value() if known.price else None,
    )
