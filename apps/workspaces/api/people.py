"""/workspaces/ID/members/ and /workspaces/ID/invitations/."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.rest.operations import Operation
from apps.workspaces import services
from apps.workspaces.api.workspaces import READ, WRITE, InOneWorkspace
from apps.workspaces.models import Department, Invitation, Membership, Role


class MemberOut(serializers.ModelSerializer[Membership]):
    """A person of a workspace. `support_until`: an operator's visit, which ends by itself then."""

    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.name")

    class Meta:
        model = Membership
        fields: ClassVar = ["id", "user", "email", "name", "role", "support_until", "created_at"]
        read_only_fields = fields


class MemberChange(serializers.Serializer[Any]):
    """Another role."""

    role = serializers.ChoiceField(choices=Role.choices)


class InvitationOut(serializers.ModelSerializer[Invitation]):
    """An invitation. `link` is there once, in the answer that made it."""

    email = serializers.CharField(read_only=True, help_text="Empty: for whoever has the link.")
    link = serializers.SerializerMethodField()

    class Meta:
        model = Invitation
        fields: ClassVar = [
            "id", "workspace", "email", "role", "department", "invited_by", "created_at", "expires_at", "accepted_at",
            "accepted_by", "revoked_at", "link",
        ]  # fmt: skip
        read_only_fields = fields

    def get_link(self, invitation: Any) -> str | None:
        """Return the link itself, right after it was made."""
        return getattr(invitation, "link", None)


class InvitationIn(serializers.Serializer[Any]):
    """A new invitation for one person. With an address it is for that person alone, and sent where mail is set up."""

    email = serializers.EmailField(required=False, allow_blank=True, default="")
    role = serializers.ChoiceField(choices=Role.choices)
    department = serializers.UUIDField(required=False, allow_null=True)


class Members(InOneWorkspace):
    """The people of a workspace."""

    operations = {"GET": Operation(output=MemberOut, many=True, scope=READ)}

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """List the people of a workspace."""
        members = Membership.objects.visible_to(self.who).filter(workspace=self.workspace())
        return self.page(members.select_related("user"))


class _OfMember(InOneWorkspace):
    def rows(self) -> QuerySet[Membership]:
        found = Membership.objects.visible_to(self.who).filter(workspace=self.workspace())
        return found.select_related("user", "workspace")

    def editable(self, member_id: UUID) -> Membership:
        """Return a member of a workspace that the caller owns or administers. Raises NotFound."""
        mine = Membership.objects.editable_by(self.who).filter(workspace=self.workspace())
        found: Membership = self.row(member_id, mine.select_related("user", "workspace"))
        return found


class OneMember(_OfMember):
    """A person of a workspace; `member_id` is the `id` of the list, not the person's."""

    operations = {
        "GET": Operation(output=MemberOut, scope=READ),
        "PATCH": Operation(input=MemberChange, output=MemberOut, scope=WRITE),
        "DELETE": Operation(status=204, scope=WRITE),
    }

    def on_get(self, request: Request, workspace_id: UUID, member_id: UUID) -> Response:
        """Return a person of a workspace."""
        return self.answer(self.row(member_id))

    def on_patch(self, request: Request, workspace_id: UUID, member_id: UUID) -> Response:
        """Give a person another role, in a workspace that you own or administer. Owners alone make owners."""
        member, given = self.editable(member_id), self.taken()
        services.change_role(membership=member, role=Role(given["role"]), actor=self.who)
        return self.answer(self.row(member_id))

    def on_delete(self, request: Request, workspace_id: UUID, member_id: UUID) -> Response:
        """Take a person out, with all that was shared with them there and their keys; or leave, if it is you."""
        member: Membership = self.row(member_id)
        if member.user_id == self.who.pk:
            services.leave_workspace(workspace=member.workspace, actor=self.who)
        else:
            services.remove_member(membership=self.editable(member_id), actor=self.who)
        return self.done()


class TransferWorkspace(_OfMember):
    """Another owner in your place."""

    operations = {"POST": Operation(output=MemberOut, scope=WRITE)}

    def on_post(self, request: Request, workspace_id: UUID, member_id: UUID) -> Response:
        """Hand a workspace that you own over to a member; you become an admin."""
        services.transfer_workspace(membership=self.editable(member_id), actor=self.who)
        return self.answer(self.row(member_id))


class Invitations(InOneWorkspace):
    """Links that let people in."""

    operations = {
        "GET": Operation(output=InvitationOut, many=True, scope=READ),
        "POST": Operation(input=InvitationIn, output=InvitationOut, status=201, scope=WRITE),
    }

    def rows(self) -> QuerySet[Invitation]:
        return Invitation.objects.visible_to(self.who).filter(workspace=self.workspace())

    def on_get(self, request: Request, workspace_id: UUID) -> Response:
        """List the invitations to a workspace that you own or administer, used and ended ones too."""
        return self.page(self.rows())

    def on_post(self, request: Request, workspace_id: UUID) -> Response:
        """Make an invitation. Keep its link: nobody can look it up again, and a repeated request does not show it."""
        workspace, given = self.workspace(), self.taken()
        department = None
        if given.get("department"):
            here = Department.objects.visible_to(self.who).filter(workspace=workspace)
            department = self.row(given["department"], here)
        invitation, link = services.invite(
            workspace=workspace, email=given["email"], role=Role(given["role"]), department=department, actor=self.who
        )
        invitation.link = link  # type: ignore[attr-defined]  # shown in this one answer
        return self.answer(invitation)


class OneInvitation(InOneWorkspace):
    """An invitation."""

    operations = {
        "GET": Operation(output=InvitationOut, scope=READ),
        "DELETE": Operation(output=InvitationOut, scope=WRITE),
    }

    def rows(self) -> QuerySet[Invitation]:
        return Invitation.objects.visible_to(self.who).filter(workspace=self.workspace())

    def on_get(self, request: Request, workspace_id: UUID, invitation_id: UUID) -> Response:
        """Return an invitation."""
        return self.answer(self.row(invitation_id))

    def on_delete(self, request: Request, workspace_id: UUID, invitation_id: UUID) -> Response:
        """Withdraw an invitation that nobody has used yet."""
        mine = Invitation.objects.editable_by(self.who).filter(workspace=self.workspace())
        services.withdraw_invitation(invitation=self.row(invitation_id, mine), actor=self.who)
        return self.answer(self.row(invitation_id))
