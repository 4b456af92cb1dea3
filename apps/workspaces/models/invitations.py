"""Invitations to a workspace."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.workspaces.models.departments import Department
from apps.workspaces.models.people import Role, User, Workspace
from apps.workspaces.querysets import InvitationQuerySet


class Invitation(models.Model):
    """A link that lets one person in. Only a digest of its token is kept; with ``email`` it is for that person."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(_("E-mail address"), blank=True)
    role = models.CharField(_("Role"), max_length=10, choices=Role.choices, default=Role.MEMBER)
    department = models.ForeignKey(Department, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(_("Expires"))
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        default_permissions = ()

    def __str__(self) -> str:
        return f"invitation {self.pk}"
