"""Widgets, their visitors, and how much both have used."""

import secrets
import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.agents.models import Agent
from apps.common.fields import EncryptedField
from apps.widgets.querysets import VisitorQuerySet, WidgetQuerySet
from apps.workspaces.models import Workspace


def new_public_id() -> str:
    """Return a name that stands in other sites' pages: no secret, and not to be guessed either."""
    return secrets.token_urlsafe(16)


class Widget(models.Model):
    """A way to ask one agent from other sites. It reads what was shared with it, and nothing else."""

    class Sources(models.TextChoices):
        """What visitors see of the documents behind an answer."""

        NONE = "none", _("Nothing")
        NAMES = "names", _("Their names")
        EXCERPTS = "excerpts", _("Their names and the paragraph")

    class Theme(models.TextChoices):
        """Light or dark."""

        AUTO = "auto", _("As the visitor’s device")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    class Position(models.TextChoices):
        """Where the bubble is."""

        END = "end", _("Bottom right")
        START = "start", _("Bottom left")

    class Language(models.TextChoices):
        """What the widget speaks."""

        AUTO = "auto", _("As the page")
        EN = "en", "English"
        ZH = "zh-hans", "简体中文"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="widgets")
    public_id = models.CharField(max_length=40, unique=True, default=new_public_id)
    name = models.CharField(max_length=80)
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, related_name="+")
    enabled = models.BooleanField(default=True)
    origins: models.Field = ArrayField(models.CharField(max_length=260), default=list, blank=True)  # type: ignore[type-arg]
    title = models.CharField(max_length=60, blank=True)
    greeting = models.CharField(max_length=400, blank=True)
    starters: models.Field = ArrayField(models.CharField(max_length=120), default=list, blank=True)  # type: ignore[type-arg]
    color = models.CharField(max_length=7, default="#2f5d50")
    theme = models.CharField(max_length=5, choices=Theme.choices, default=Theme.AUTO)
    position = models.CharField(max_length=5, choices=Position.choices, default=Position.END)
    language = models.CharField(max_length=8, choices=Language.choices, default=Language.AUTO)
    sources = models.CharField(max_length=8, choices=Sources.choices, default=Sources.NAMES)
    per_visitor_hour = models.PositiveIntegerField(default=30)
    per_address_hour = models.PositiveIntegerField(default=120)
    per_day = models.PositiveIntegerField(default=1000)
    identity_secret = EncryptedField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = WidgetQuerySet.as_manager()

    class Meta:
        verbose_name = _("widget")
        verbose_name_plural = _("widgets")
        default_permissions = ()

    def __str__(self) -> str:
        return f"widget {self.pk}"


class Visitor(models.Model):
    """Somebody who opened a widget. Who they are is known only where the site signs it (``identity``)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    widget = models.ForeignKey(Widget, on_delete=models.CASCADE, related_name="visitors")
    origin = models.CharField(max_length=260)
    preview = models.BooleanField(default=False)  # the owner, beside the settings
    identity = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now=True)

    objects = VisitorQuerySet.as_manager()

    class Meta:
        verbose_name = _("visitor")
        verbose_name_plural = _("visitors")
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["widget", "-seen_at"], name="visitor_newest")]

    def __str__(self) -> str:
        return f"visitor {self.pk}"


class Use(models.Model):
    """How often something was done in one window of time; counted by one conditional statement."""

    widget = models.ForeignKey(Widget, on_delete=models.CASCADE, related_name="+")
    subject = models.CharField(max_length=80)  # "visitor:<id>", "address:<hash>", "day"
    since = models.DateTimeField()
    count = models.PositiveIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["widget", "subject", "since"], name="one_use_a_window"),
        ]
        indexes: ClassVar = [models.Index(fields=["since"], name="use_old")]

    def __str__(self) -> str:
        return f"use {self.pk}"
