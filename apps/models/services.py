"""Writes to configured models."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, NotAllowed, NotFound
from apps.common.fields import MASK
from apps.common.text import legible
from apps.models import pacing, quirks
from apps.models.configuration import validate_configuration
from apps.models.models import Kind, ModelConfig
from apps.models.providers import CUSTOM, VENDORS
from apps.workspaces import permissions
from apps.workspaces.models import User, Workspace

CHANGEABLE = ("provider", "name", "base_url", "configuration", "is_default", "enabled", "fallback")


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
    model = ModelConfig(
        workspace=workspace,
        kind=kind,
        provider=provider,
        name=_one_line(name),
        base_url=base_url.strip().rstrip("/") or vendor.base_url,
        api_key=api_key.strip() or None,
        configuration=configuration or {},
        is_default=is_default,
    )
    return _stored(model)


@transaction.atomic
def change_model(*, model: ModelConfig, actor: User, api_key: str = "", **changes: Any) -> ModelConfig:
    """Change a model. An empty or masked key keeps the stored one, except where the address changes.

    A key goes only to the address that it was entered for: whoever may edit the address could
    otherwise have it sent to a server of their own.

    Raises:
        NotFound: the actor may not edit this model.
        InvalidInput: a value that cannot be right, or a new address without its key.
    """
    if model.workspace_id is None:
        if not actor.is_staff:
            raise NotFound
    elif not ModelConfig.objects.editable_by(actor).filter(pk=model.pk).exists():
        raise NotFound
    key = "" if api_key.strip() == MASK else api_key.strip()
    address = str(changes.get("base_url", model.base_url)).strip().rstrip("/")
    if address != model.base_url and model.api_key is not None and not key:
        raise InvalidInput(field=_("Key"), reason=_("a new address needs the key entered again"))
    for name in CHANGEABLE:
        if name in changes:
            setattr(model, name, changes[name])
    model.name, model.base_url = _one_line(model.name), address
    if key:
        model.api_key = key
    return _stored(model)


def _one_line(name: str) -> str:
    """Return a model's name as its vendor writes it, slashes and all."""
    return " ".join(legible(name).split())


def _stored(model: ModelConfig) -> ModelConfig:
    try:
        validate_configuration(model.configuration)
        model.clean_fields(exclude=["api_key"])
    except ValidationError as error:
        field, reason = (
            next(iter(error.message_dict.items())) if hasattr(error, "error_dict") else (_("Limits"), error.messages)
        )
        raise InvalidInput(field=field, reason=reason[0]) from None
    instead = model.fallback
    if instead is not None and (
        instead.kind != model.kind
        or instead.pk == model.pk
        or model.kind == Kind.EMBEDDING
        or instead.workspace_id not in (None, model.workspace_id)
    ):
        rule = _("another model of the same kind, of this workspace or the operator; none for embeddings")
        raise InvalidInput(field=_("Instead, while it is down"), reason=rule)
    if model.is_default:
        same_place = ModelConfig.objects.filter(workspace=model.workspace, kind=model.kind, is_default=True)
        same_place.exclude(pk=model.pk).update(is_default=False)
    model.save()
    quirks.forget()
    pacing.forget()
    return model
