"""People and the workspaces they share."""

import uuid
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.workspaces.principals import Principal
from apps.workspaces.querysets import MembershipQuerySet, WorkspaceQuerySet


class UserManager(BaseUserManager["User"]):
    """Creates people; Django's own commands and allauth call it."""

    def create_user(self, email: str, password: str | None = None, **fields: object) -> "User":
        """Create a person; without a password they can only sign in by other means."""
        from allauth.account.models import EmailAddress

        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)  # whoever made it vouches
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: object) -> "User":
        """Create an operator: the Django admin, and no tenant's content."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractBaseUser, PermissionsMixin):
    """A person, known by their e-mail address.

    ``acts_as`` is no column: where a request came with an API key, it is the key's Principal, which
    every door that this object is given to then asks instead of the person.
    """

    acts_as: Principal | None = None

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(_("E-mail address"), unique=True)
    name = models.CharField(_("Name"), max_length=100, blank=True)
    language = models.CharField(_("Language"), max_length=10, blank=True)
    time_zone = models.CharField(_("Time zone"), max_length=64, blank=True)
    is_active = models.BooleanField(_("May sign in"), default=True)
    is_staff = models.BooleanField(_("Operator"), default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)  # is being erased

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = _("person")
        verbose_name_plural = _("people")

    def __str__(self) -> str:
        return f"user {self.pk}"

    @property
    def shown_name(self) -> str:
        """The name, or the part of the address before the @."""
        return self.name or self.email.partition("@")[0]

    @property
    def principal(self) -> Principal:
        """Who this object stands for at a door: the person, or the key that they came with."""
        return self.acts_as or Principal.person(self.pk)


class Workspace(models.Model):
    """One tenant: its people, documents, agents and conversations."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(max_length=50, unique=True)
    name = models.CharField(_("Name"), max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)
    keep_conversations_days = models.PositiveIntegerField(_("Keep conversations for"), null=True, blank=True)
    keep_audit_days = models.PositiveIntegerField(_("Keep the audit log for"), null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)  # is being erased
    members = models.ManyToManyField(User, through="Membership", related_name="workspaces")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")

    def __str__(self) -> str:
        return f"workspace {self.pk}"


class Role(models.TextChoices):
    """What a person is in a workspace; each includes those after it."""

    OWNER = "owner", _("Owner")
    ADMIN = "admin", _("Admin")
    MEMBER = "member", _("Member")
    VIEWER = "viewer", _("Viewer")


class Membership(models.Model):
    """A person in a workspace, with one role."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(_("Role"), max_length=10, choices=Role.choices, default=Role.MEMBER)
    support_until = models.DateTimeField(null=True, blank=True)  # an operator's visit, which ends by itself
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_a_person"),
        ]

    def __str__(self) -> str:
        return f"membership {self.pk}"
