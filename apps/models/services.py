"""Writes to configured models."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, KnowSphereError, NotAllowed, NotFound
from apps.common.fields import MASK, Secret
from apps.common.text import legible
from apps.models import discovery, ledger, pacing, quirks, reranking
from apps.models.accounting import Caller, charged_to
from apps.models.checks import PATHS
from apps.models.configuration import validate_configuration
from apps.models.errors import ModelInUse
from apps.models.models import Kind, ModelConfig
from apps.models.providers import CUSTOM, VENDORS
from apps.models.resolution import from_row
from apps.models.trial import Trial, attempt_now
from apps.models.users import uses_of
from apps.workspaces import audit, permissions
from apps.workspaces.models import User, Workspace

CHANGEABLE = ("provider", "name", "base_url", "configuration", "is_default", "is_fast", "enabled", "fallback")


@transaction.atomic
def add_model(
    *,
    workspace: Workspace | None,
    kind: str,
    name: str,
    actor: User,
    base_url: str = "",
    provider: str = CUSTOM,
    api_key: str = "",
    configuration: dict[str, Any] | None = None,
    is_default: bool = False,
) -> ModelConfig:
    """Add a model of a workspace, or of the operator (``workspace`` None, staff only).

    As default it takes the place of the default of its kind. Without an address it is the vendor's.

    Raises:
        NotFound, NotAllowed: the actor may not add models there.
        InvalidInput: a value that cannot be right; ``field`` names it.
    """
    if workspace is not None:
        permissions.require("add_model", actor=actor, workspace=workspace)
    elif not actor.is_staff:
        raise NotAllowed
    vendor = VENDORS.get(provider)
    if vendor is None or kind not in vendor.kinds:
        raise InvalidInput(field=_("Vendor"), reason=_("it has no models of this kind"))
    if api_key.strip() == MASK:
        raise InvalidInput(field=_("Key"), reason=_("this is what stands in its place, not a key"))
    model = ModelConfig(
        workspace=workspace,
        kind=kind,
        provider=provider,
        name=_one_line(name),
        base_url=base_url.strip().rstrip("/") or vendor.base_url,
        api_key=Secret(api_key.strip()) if api_key.strip() else None,
        configuration=configuration or {},
        is_default=is_default,
    )
    made = _stored(model)
    audit.did("model.added", made, who=actor)
    return made


@transaction.atomic
def change_model(*, model: ModelConfig, actor: User, api_key: str = "", **changes: Any) -> ModelConfig:
    """Change a model. An empty or masked key keeps the stored one, except where the address changes.

    A key goes only to the address that it was entered for: whoever may edit the address could
    otherwise have it sent to a server of their own.

    Raises:
        NotFound: the actor may not edit this model.
        InvalidInput: a value that cannot be right, or a new address without its key.
    """
    _require_editable(model, actor)
    key = "" if api_key.strip() == MASK else api_key.strip()
    address = str(changes.get("base_url", model.base_url)).strip().rstrip("/")
    if address != model.base_url and model.api_key is not None and not key:
        raise InvalidInput(field=_("Key"), reason=_("a new address needs the key entered again"))
    before = model.name
    renamed = _one_line(str(changes.get("name", before))) != before
    if renamed and model.kind == Kind.EMBEDDING and any(use.kind == "knowledge_base" for use in uses_of(model, actor)):
        reason = _("knowledge bases hold its vectors under this name; add a model of the other name instead")
        raise InvalidInput(field=_("Name"), reason=reason)
    for name in CHANGEABLE:
        if name in changes and name != "base_url":
            setattr(model, name, changes[name])
    model.name = _one_line(model.name)
    if key:
        model.api_key = Secret(key)
    if key or address != model.base_url or renamed:
        model.tested = {}  # what was found out then may not hold now
    model.base_url = address
    audit.did("model.changed", model, who=actor, fields=sorted([*changes, *(["api_key"] if key else [])]))
    return _stored(model)


@transaction.atomic
def choose_model(
    *, workspace: Workspace, actor: User, kind: str, model: ModelConfig | None, fast: bool = False
) -> None:
    """Let one of the workspace's models do a job; None leaves it to the operator, the environment, the built-in.

    Raises:
        NotFound, NotAllowed: the actor may not choose there.
        InvalidInput: the model is of another workspace or another kind, or switched off.
    """
    permissions.require("add_model", actor=actor, workspace=workspace)
    if model is not None and (model.workspace_id != workspace.pk or model.kind != kind or not model.enabled):
        raise InvalidInput(field=_("Model"), reason=_("it is not one that can do this job"))
    role = "is_fast" if fast else "is_default"
    own = ModelConfig.objects.filter(workspace=workspace, kind=kind)
    own.filter(**{role: True}).update(**{role: False})
    if model is not None:
        own.filter(pk=model.pk).update(**{role: True})
    audit.record(
        "model.chosen", who=actor, workspace_id=workspace.pk, target=model, name=model.name if model else "", job=kind
    )


@transaction.atomic
def delete_model(*, model: ModelConfig, actor: User) -> None:
    """Delete a model that nothing uses; what uses it is named as far as the actor may see it.

    Raises:
        NotFound: the actor may not edit this model.
        ModelInUse: it is a default, stands in for another, or a base or an agent uses it.
    """
    _require_editable(model, actor)
    uses = uses_of(model, actor)
    if uses:
        named = [use for use in uses if use.name]
        names = ", ".join([f"“{use.name}”" for use in named[:5]] + (["…"] if len(uses) > min(len(named), 5) else []))
        raise ModelInUse(
            count=len(uses),
            names=names,
            users=[{"kind": use.kind, "name": use.name} for use in named],
            hidden=len(uses) - len(named),
        )
    audit.did("model.deleted", model, who=actor)
    model.delete()
    quirks.forget()
    pacing.forget()


def test_model(*, model: ModelConfig, actor: User) -> Trial:
    """Call a model as real work would, and say how it went; the row keeps it. Booked to the actor like any call.

    Raises:
        NotFound: the actor may not edit this model.
    """
    _require_editable(model, actor)
    pacing.forget()  # whoever tests a model has just repaired it
    with charged_to(Caller(model.workspace_id, actor.pk)):
        try:
            trial = attempt_now(replace(from_row(model), fallback=None))
        except KnowSphereError as error:
            trial = Trial(False, 0, error=error.message, code=error.code)
        finally:
            ledger.flush()
    model.tested = {**asdict(trial), "at": timezone.now().isoformat()}
    if trial.dimensions and not model.configuration.get("dimensions"):
        model.configuration = {**model.configuration, "dimensions": trial.dimensions}  # measured, not believed
    if model.kind == Kind.RERANK and trial.ok and reranking.gives_logits(from_row(model)):
        model.configuration = {**model.configuration, "logits": True}
    model.save(update_fields=["tested", "configuration"])
    return trial


def add_ollama_models(*, names: Sequence[str], actor: User) -> list[ModelConfig]:
    """Add models of the Ollama on this machine for all workspaces; the first of a kind answers from now on.

    Raises:
        NotAllowed: the actor is not staff.
        InvalidInput: there is no Ollama, or it has no such model.
    """
    if not actor.is_staff:
        raise NotAllowed
    found = dict(discovery.ollama_models() or ())
    unknown = [name for name in names if name not in found]
    if unknown or not names:
        raise InvalidInput(field=_("Model"), reason=_("the Ollama on this machine has no such model"))
    made = []
    for name in names:
        operators = ModelConfig.objects.filter(workspace=None, kind=found[name])
        if operators.filter(provider="ollama", name=name).exists():
            continue
        first = not operators.filter(is_default=True).exists()
        address = discovery.OLLAMA + "/v1"
        model = add_model(
            workspace=None,
            kind=found[name],
            provider="ollama",
            name=name,
            base_url=address,
            actor=actor,
            is_default=first and found[name] != Kind.EMBEDDING,
        )
        made.append(model)
    return made


def _require_editable(model: ModelConfig, actor: User) -> None:
    if model.workspace_id is None:
        if not actor.is_staff:
            raise NotFound
    elif not ModelConfig.objects.editable_by(actor).filter(pk=model.pk).exists():
        raise NotFound


def _one_line(name: str) -> str:
    """Return a model's name as its vendor writes it, slashes and all."""
    return " ".join(legible(name).split())


def _check_address(address: str) -> None:
    """Refuse an address that holds a secret, which every page would show, or the path of one call."""
    parts = urlsplit(address)
    if "@" in parts.netloc or parts.query or parts.fragment:
        reason = _("no user name, no password, nothing after “?” or “#”: a key has a field of its own")
    elif parts.path.endswith(PATHS):
        reason = _("it ends before /chat/completions and the like, usually in /v1")
    else:
        return
    raise InvalidInput(field=_("Address"), reason=reason)


def _stored(model: ModelConfig) -> ModelConfig:
    try:
        validate_configuration(model.configuration)
        model.clean_fields(exclude=["api_key"])
    except ValidationError as error:
        field, reason = (
            next(iter(error.message_dict.items())) if hasattr(error, "error_dict") else (_("Limits"), error.messages)
        )
        raise InvalidInput(field=field, reason=reason[0]) from None
    _check_address(model.base_url)
    instead = model.fallback
    if instead is not None and (
        instead.kind != model.kind
        or instead.pk == model.pk
        or model.kind == Kind.EMBEDDING
        or instead.workspace_id not in (None, model.workspace_id)
    ):
        rule = _("another model of the same kind, of this workspace or the operator; none for embeddings")
        raise InvalidInput(field=_("Instead, while it is down"), reason=rule)
    if model.is_fast and model.kind != Kind.CHAT:
        raise InvalidInput(field=_("Fast model beside the default"), reason=_("only chat models have one"))
    for role in ("is_default", "is_fast"):
        if getattr(model, role):
            same_place = ModelConfig.objects.filter(workspace=model.workspace, kind=model.kind, **{role: True})
            same_place.exclude(pk=model.pk).update(**{role: False})
    model.save()
    quirks.forget()
    pacing.forget()
    return model
