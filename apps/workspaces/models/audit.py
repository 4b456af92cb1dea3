"""The audit log."""

import uuid
from functools import cache
from typing import Any, ClassVar

from django.apps import apps
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.workspaces.models.people import Role, User, Workspace
from apps.workspaces.querysets import AuditEventQuerySet

RIGHTS = {**dict(Role.choices), "share": _("a share"), "operator": _("Operator"), "support": _("Support")}


class AuditEvent(models.Model):
    """Who did, saw or asked what, when, from where, under which right. No content: ids and names of things.

    The database refuses to change or delete a row, but for a workspace that is erased whole, for what its
    retention has passed, and for the address of a person who is gone (the trigger ``audit_is_append_only``).
    The keys have no constraint, so that a row outlives the person and the thing.
    """

    class Kind(models.TextChoices):
        """Who acted."""

        PERSON = "person", _("Person")
        KEY = "key", _("API key")
        WIDGET = "widget", _("Widget")
        COMMAND = "command", _("Command")
        OPERATOR = "operator", _("Operator")
        SYSTEM = "system", _("System")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(_("Time"), auto_now_add=True)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    kind = models.CharField(_("Who"), max_length=10, choices=Kind.choices)
    actor = models.ForeignKey(
        User, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    credential_id = models.UUIDField(null=True)  # the key or the widget
    action = models.CharField(_("What"), max_length=60)
    target_kind = models.CharField(max_length=40, blank=True)  # a model's name, in no language
    target_id = models.UUIDField(null=True)
    target_name = models.CharField(_("On what"), max_length=255, blank=True)
    right = models.CharField(_("By right of"), max_length=60, blank=True)
    ip = models.GenericIPAddressField(_("From"), null=True)
    details = models.JSONField(default=dict)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        verbose_name = _("audit event")
        verbose_name_plural = _("audit events")
        default_permissions = ("view",)
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-at"], name="audit_newest"),
            models.Index(fields=["workspace", "actor", "-at"], name="audit_of_a_person"),
        ]

    def __str__(self) -> str:
        return f"audit event {self.pk}"

    @property
    def kind_of_target(self) -> str:
        """What kind of thing it was, for people."""
        return str(_kinds().get(self.target_kind, self.target_kind))

    @property
    def right_in_words(self) -> str:
        """The right that allowed it, for people."""
        return ", ".join(str(RIGHTS.get(part, part)) for part in self.right.split(", "))


@cache
def _kinds() -> dict[str, Any]:
    """Return what kinds of rows are called, by their models' names."""
    ours = [model for model in apps.get_models() if model.__module__.startswith("apps.")]
    return {str(model._meta.model_name): model._meta.verbose_name for model in ours}
