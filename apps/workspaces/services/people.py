"""Writes to people and workspaces."""

import secrets

from django.db import transaction
from django.utils.text import slugify

from apps.common.text import display_name
from apps.workspaces.models import Membership, Role, User, Workspace

# First path segments that are routes, so no workspace may have them as its slug.
RESERVED_SLUGS = frozenset(
    {"accounts", "admin", "api", "healthz", "readyz", "i18n", "static", "media", "ws", "widget"}
    | {"new", "help", "v1", "mcp", "manifest", "files", "shared"}
)


@transaction.atomic
def create_workspace(*, name: str, owner: User, slug: str = "") -> Workspace:
    """Create a workspace with one owner; the slug is made from the name unless it is given and free."""
    name = display_name(name, limit=100)
    wanted = slugify(slug or name)[:40] or "team"
    while wanted in RESERVED_SLUGS or Workspace.objects.filter(slug=wanted).exists():
        wanted = f"{wanted[:40].rstrip('-')}-{secrets.token_hex(3)}"
    workspace = Workspace.objects.create(name=name, slug=wanted)
    Membership.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
    return workspace


@transaction.atomic
def set_membership(*, workspace: Workspace, user: User, role: Role) -> Membership:
    """Put a person into a workspace, or change their role there."""
    membership, _ = Membership.objects.update_or_create(workspace=workspace, user=user, defaults={"role": role})
    return membership
