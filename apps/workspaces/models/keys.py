"""API keys."""

import uuid
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.workspaces.models.people import User, Workspace
from apps.workspaces.principals import Principal
from apps.workspaces.querysets import ApiKeyQuerySet


class ApiKey(models.Model):
    """A key to one workspace in its person's name. Only a digest is kept; the key itself is shown once."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(_("Name"), max_length=100)
    start = models.CharField(max_length=12)  # its first characters, to tell keys apart
    digest = models.CharField(max_length=64, unique=True)  # SHA-256, hexadecimal
    scopes = ArrayField(models.CharField(max_length=40))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(_("Expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    made_by = models.ForeignKey(  # the key that made it, with which it ends
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="made"
    )
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["workspace", "user"], name="api_keys_of_a_person")]

    def __str__(self) -> str:
        return f"API key {self.pk}"

    @property
    def principal(self) -> Principal:
        """Who asks with this key. That it still holds is looked up by the doors, each time."""
        return Principal(
            "key",
            user_id=self.user_id,
            workspace_id=self.workspace_id,
            key_id=self.pk,
            scopes=frozenset(self.scopes),
        )
