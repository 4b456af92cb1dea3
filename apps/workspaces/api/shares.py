"""Shares of single rows, the same for every kind that can be shared."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.common.errors import NotFound
from apps.rest.operations import Operation
from apps.rest.views import ApiView
from apps.workspaces.models import Department, Membership, Role
from apps.workspaces.services import Subject, share, unshare
from apps.workspaces.services.sharing import share_model


class ShareOut(serializers.Serializer[Any]):
    """With whom something is shared: one of a person, a department, a role and those above it, a widget."""

    id = serializers.UUIDField()
    user = serializers.UUIDField(source="user_id", allow_null=True)
    email = serializers.EmailField(source="user.email", default=None, allow_null=True)
    department = serializers.UUIDField(source="department_id", allow_null=True)
    role = serializers.CharField(help_text="`viewer` is the whole workspace; empty where the share is another's.")
    widget = serializers.UUIDField(source="widget_id", allow_null=True)
    level = serializers.ChoiceField(choices=["read", "manage"])
    created_at = serializers.DateTimeField()


class ShareIn(serializers.Serializer[Any]):
    """A new share with exactly one of `user`, `department`, `role`; it replaces an earlier one with the same."""

    user = serializers.UUIDField(required=False)
    department = serializers.UUIDField(required=False)
    role = serializers.ChoiceField(choices=[Role.VIEWER.value, Role.MEMBER.value], required=False)
    level = serializers.ChoiceField(choices=["read", "manage"])

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse none and several."""
        if sum(name in attrs for name in ("user", "department", "role")) != 1:
            raise serializers.ValidationError(_("Name exactly one of user, department and role."))
        return attrs


class _OfShares(ApiView):
    def shared(self) -> QuerySet[Any]:
        """Return the rows that the caller may share."""
        raise NotImplementedError

    def of(self, ids: dict[str, UUID]) -> tuple[Any, QuerySet[Any]]:
        """Return the row that the address names, and its shares. Raises NotFound."""
        row = self.row(next(iter(ids.values())), self.shared())
        shares = share_model(type(row)).objects.visible_to(self.who).filter(content_object=row)
        return row, shares.select_related("user", "permission")

    def _again(self, written: str, status: int, **kwargs: Any) -> Response:
        _row, shares = self.of(kwargs)
        return Response(self.shown(self.row(written, shares)), status=status)


class SharesOfRow(_OfShares):
    """Who may read or manage a row."""

    @staticmethod
    def operations_with(scope: str) -> dict[str, Operation]:
        """Return the operations, for a kind of row with this scope."""
        return {
            "GET": Operation(output=ShareOut, many=True, scope=scope),
            "POST": Operation(input=ShareIn, output=ShareOut, status=201, scope=scope),
        }

    def on_get(self, request: Request, **ids: UUID) -> Response:
        """List with whom it is shared."""
        return self.page(self.of(ids)[1])

    def on_post(self, request: Request, **ids: UUID) -> Response:
        """Share it, or change what somebody may do."""
        row, shares = self.of(ids)
        given = self.taken()
        made = share(row=row, subject=self._subject(given, row.workspace_id), level=given["level"], actor=self.who)
        return self.answer(self.row(made.pk, shares))

    def _subject(self, given: dict[str, Any], workspace_id: UUID) -> Subject:
        if "role" in given:
            return Subject(role=given["role"])
        if "department" in given:
            departments = Department.objects.visible_to(self.who).filter(workspace=workspace_id)
            return Subject(department=self.row(given["department"], departments))
        members = Membership.objects.visible_to(self.who).filter(workspace=workspace_id, user=given["user"])
        member = members.select_related("user").first()
        if member is None:
            raise NotFound
        return Subject(user=member.user)


class OneShareOfRow(_OfShares):
    """A share."""

    @staticmethod
    def operations_with(scope: str) -> dict[str, Operation]:
        """Return the operations, for a kind of row with this scope."""
        return {"DELETE": Operation(status=204, scope=scope)}

    def on_delete(self, request: Request, share_id: UUID, **ids: UUID) -> Response:
        """Take the share back. It takes effect at once, also in a running answer."""
        unshare(share=self.row(share_id, self.of(ids)[1]), actor=self.who)
        return self.done()
