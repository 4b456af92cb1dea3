"""What addresses have in common that belong to a workspace."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from rest_framework import serializers

from apps.common.errors import NotFound
from apps.rest.errors import FieldsInvalid
from apps.rest.views import ApiView
from apps.workspaces.models import Workspace


class InWorkspace(serializers.Serializer[Any]):
    """Which workspace; a key has one, and so has a person who is in no other."""

    workspace = serializers.UUIDField(required=False, help_text="Needed where the caller is in several workspaces.")


def entered(view: ApiView, wanted: UUID | None) -> Workspace:
    """Return the workspace that is named, else the only one that the caller is in.

    Raises:
        NotFound: the caller is not in it, or in none at all.
        FieldsInvalid: there are several, and none is named.
    """
    mine = Workspace.objects.visible_to(view.who)
    if wanted is not None:
        found: Workspace = view.row(wanted, mine)
        return found
    several = list(mine.order_by("created_at")[:2])
    if not several:
        raise NotFound
    if len(several) > 1:
        reason = _("name one: you are in several")
        raise FieldsInvalid(summary=f"workspace: {reason}", fields={"workspace": [reason]})
    return several[0]


def within(view: ApiView) -> dict[str, UUID]:
    """Return the filter by workspace that the address asks for, if it does."""
    wanted = view.asked().get("workspace")
    return {"workspace_id": wanted} if wanted else {}
