"""What operators tell everybody, or one workspace."""

import uuid
from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from apps.workspaces.models.people import User, Workspace
from apps.workspaces.querysets import NoticeQuerySet


class Notice(models.Model):
    """A sentence at the top of every page between two moments, such as "We are back at ten"."""

    class Level(models.TextChoices):
        """How much it matters."""

        INFO = "info", _("Information")
        WARN = "warn", _("Warning")
        BAD = "bad", _("Disruption")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(
        Workspace,
        verbose_name=_("Workspace"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Empty: everybody sees it."),
    )
    level = models.CharField(_("Kind"), max_length=4, choices=Level.choices, default=Level.INFO)
    text_en = models.CharField(_("Text in English"), max_length=500)
    text_zh = models.CharField(
        _("Text in Chinese"), max_length=500, blank=True, help_text=_("Empty: the English text is shown.")
    )
    begins_at = models.DateTimeField(_("Shown from"))
    ends_at = models.DateTimeField(_("Shown until"))
    dismissable = models.BooleanField(_("Readers may close it"), default=True)
    created_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("begins_at")), name="notice_ends_after_it_begins"),
        ]
        indexes: ClassVar = [models.Index(fields=["ends_at"], name="notices_to_come")]

    def __str__(self) -> str:
        return f"notice {self.pk}"

    def clean(self) -> None:
        """Refuse an end before the beginning, in words."""
        begins, ends = (getattr(self, name, None) for name in ("begins_at", "ends_at"))
        if begins and ends and ends <= begins:
            raise ValidationError({"ends_at": _("It must end after it begins.")})

    @property
    def text(self) -> str:
        """The text in the reader's language."""
        return self.text_zh if self.text_zh and (get_language() or "").startswith("zh") else self.text_en
