"""Members, invitations, the audit log, quotas, and the end of things."""

import json
from datetime import timedelta

import pytest
from django.core import mail
from django.db import DatabaseError, transaction
from django.urls import reverse
from django.utils import timezone

from apps.common.errors import NotAllowed, NotFound
from apps.conversations.models import Conversation
from apps.knowledge.models import Document, KnowledgeBase, KnowledgeBaseShare
from apps.workspaces import audit, erasing, services
from apps.workspaces.errors import InvitationForAnother, InvitationNotUsable, LastOwner, QuotaExceeded
from apps.workspaces.models import ApiKey, AuditEvent, Invitation, Membership, Quota, Role, User, Workspace
from apps.workspaces.services import Subject, quotas
from tests.access.test_routes import whole
from tests.conftest import person

pytestmark = pytest.mark.django_db


def membership(user, workspace):
    return Membership.objects.get(user=user, workspace=workspace)


def test_who_was_an_admin_when_they_clicked_is_asked_again(acme, ann, bea, mal):
    """The page and the API let an admin in; what counts is what they are when the workspace is theirs to change."""
    services.change_role(membership=membership(bea, acme), role=Role.ADMIN, actor=ann)
    friend = Membership.objects.create(workspace=acme, user=mal, role=Role.VIEWER)
    services.change_role(membership=membership(bea, acme), role=Role.MEMBER, actor=ann)
    for refused in (
        lambda: services.change_role(membership=friend, role=Role.ADMIN, actor=bea),
        lambda: services.remove_member(membership=friend, actor=bea),
    ):
        with pytest.raises(NotAllowed), transaction.atomic():
            refused()
    services.remove_member(membership=membership(bea, acme), actor=bea)
    friend.refresh_from_db()
    assert friend.role == Role.VIEWER


def test_a_workspace_always_has_an_owner(acme, ann, bea):
    own = membership(ann, acme)
    for refused in (
        lambda: services.remove_member(membership=own, actor=ann),
        lambda: services.leave_workspace(workspace=acme, actor=ann),
        lambda: services.change_role(membership=own, role=Role.ADMIN, actor=ann),
        lambda: services.delete_person(user=ann),
    ):
        with pytest.raises(LastOwner), transaction.atomic():
            refused()
    services.change_role(membership=membership(bea, acme), role=Role.ADMIN, actor=ann)
    for refused in (
        lambda: services.change_role(membership=own, role=Role.VIEWER, actor=bea),
        lambda: services.change_role(membership=membership(bea, acme), role=Role.OWNER, actor=bea),
        lambda: services.remove_member(membership=own, actor=bea),
        lambda: services.transfer_workspace(membership=membership(bea, acme), actor=bea),
        lambda: services.invite(workspace=acme, email="", role=Role.OWNER, actor=bea),
        lambda: services.delete_workspace(workspace=acme, actor=bea),
    ):
        with pytest.raises(NotAllowed), transaction.atomic():
            refused()
    services.transfer_workspace(membership=membership(bea, acme), actor=ann)
    assert (membership(bea, acme).role, membership(ann, acme).role) == ("owner", "admin")
    services.leave_workspace(workspace=acme, actor=ann)
    assert not Workspace.objects.visible_to(ann).exists()


def test_whoever_is_removed_keeps_nothing_and_gets_nothing_back(acme, ann, bea, handbook):
    services.set_restricted(row=handbook, restricted=True, actor=ann)
    services.share(row=handbook, subject=Subject(user=bea), level="manage", actor=ann)
    _key, secret = services.create_api_key(workspace=acme, name="K", scopes=["knowledge:read"], actor=bea)
    user = services.principal_of_key(secret)
    assert KnowledgeBase.objects.visible_to(user).exists()
    services.remove_member(membership=membership(bea, acme), actor=ann)
    assert not KnowledgeBase.objects.visible_to(user).exists()
    services.set_membership(workspace=acme, user=bea, role=Role.VIEWER)
    assert not KnowledgeBase.objects.visible_to(bea).exists()
    assert not KnowledgeBaseShare.objects.filter(user=bea).exists()
    assert ApiKey.objects.get().revoked_at


def test_without_a_script_a_page_asks_before_a_member_is_acted_on(client, acme, ann, bea):
    member = Membership.objects.get(workspace=acme, user=bea)
    client.force_login(ann)
    for name in ("remove-member", "transfer-workspace"):
        address = reverse(f"workspaces:{name}", args=["acme", member.pk])
        page = client.post(address, {"ask": ""})
        assert (page.status_code, Membership.objects.get(pk=member.pk).role) == (200, "viewer")
        assert bea.shown_name in page.content.decode()
        assert f'action="{address}"' in page.content.decode()
    assert client.post(reverse("workspaces:remove-member", args=["acme", member.pk])).status_code == 302
    assert not Membership.objects.filter(pk=member.pk).exists()


def test_an_invitation_lets_one_person_in_once(acme, ann, mal, settings):
    settings.SITE_URL = "https://ks.example"
    group = services.create_department(workspace=acme, name="Research", actor=ann)
    _row, link = services.invite(workspace=acme, email="", role=Role.VIEWER, actor=ann, department=group)
    assert link.startswith("https://ks.example/invitations/")
    token = link.rstrip("/").rpartition("/")[2]
    assert token not in str(Invitation.objects.values().get())
    assert services.accept(token=token, actor=mal) == acme
    assert membership(mal, acme).departments.get().department == group
    late = person("late@example.com")
    with pytest.raises(InvitationNotUsable):
        services.accept(token=token, actor=late)
    _row, link = services.invite(workspace=acme, email="Other@Example.com", role=Role.ADMIN, actor=ann)
    token = link.rstrip("/").rpartition("/")[2]
    with pytest.raises(InvitationForAnother):
        services.accept(token=token, actor=late)
    services.withdraw_invitation(invitation=Invitation.objects.open().get(), actor=ann)
    with pytest.raises(InvitationNotUsable):
        services.accept(token=token, actor=late)
    _row, link = services.invite(workspace=acme, email="", role=Role.ADMIN, actor=ann)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(InvitationNotUsable):
        services.accept(token=link.rstrip("/").rpartition("/")[2], actor=late)


def test_an_invitation_ends_with_the_rank_of_whoever_made_it(acme, ann, bea, mal):
    services.change_role(membership=membership(bea, acme), role=Role.OWNER, actor=ann)

    def token(role):
        return services.invite(workspace=acme, email="", role=role, actor=bea)[1].rstrip("/").rpartition("/")[2]

    to_own, to_read = token(Role.OWNER), token(Role.VIEWER)
    services.change_role(membership=membership(bea, acme), role=Role.ADMIN, actor=ann)
    assert set(Invitation.objects.open().values_list("role", flat=True)) == {Role.VIEWER}
    services.change_role(membership=membership(bea, acme), role=Role.MEMBER, actor=ann)
    assert not Invitation.objects.open().exists()
    Invitation.objects.update(revoked_at=None)  # as if it had been made in the same moment
    for one in (to_own, to_read):
        with pytest.raises(InvitationNotUsable):
            services.accept(token=one, actor=mal)
    services.set_membership(workspace=acme, user=bea, role=Role.ADMIN)
    with pytest.raises(InvitationNotUsable):
        services.accept(token=to_own, actor=mal)
    assert services.accept(token=to_read, actor=mal) == acme
    again = token(Role.VIEWER)
    services.remove_member(membership=membership(bea, acme), actor=ann)
    assert not Invitation.objects.open().exists()
    with pytest.raises(InvitationNotUsable):
        services.accept(token=again, actor=person("late@example.com"))


def test_an_invitation_is_sent_where_mail_can_be_sent(acme, ann, settings, django_capture_on_commit_callbacks):
    settings.SENDS_MAIL = True
    with django_capture_on_commit_callbacks(execute=True):
        _row, link = services.invite(workspace=acme, email="new@example.com", role=Role.MEMBER, actor=ann)
    assert mail.outbox[0].to == ["new@example.com"]
    assert link in mail.outbox[0].body


def test_sign_up_by_invitation_only(acme, ann, client, settings):
    settings.SIGNUP = "invited"
    form = {"email": "new@example.com", "password1": "correct horse battery"}
    client.post(reverse("account_signup"), form)
    assert not User.objects.filter(email="new@example.com").exists()
    _row, link = services.invite(workspace=acme, email="new@example.com", role=Role.MEMBER, actor=ann)
    path = link.removeprefix(settings.SITE_URL)
    assert "Create an account and join" in client.get(path).content.decode()
    client.post(reverse("account_signup"), {**form, "next": path})
    assert "signed in as new@example.com" in client.get(path).content.decode()
    client.post(path + "accept/")
    new = User.objects.get(email="new@example.com")
    assert list(Workspace.objects.visible_to(new)) == [acme]  # and none of their own


def test_the_audit_log_cannot_be_changed_by_anybody(acme, ann):
    assert AuditEvent.objects.filter(action="workspace.created").exists()
    for change in (
        lambda: AuditEvent.objects.update(action="nothing"),
        lambda: AuditEvent.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()


@pytest.mark.django_db(transaction=True)
def test_the_log_says_who_opened_what_by_which_right(client, acme, ann, bea, handbook):
    document = Document.objects.create(
        workspace=acme, knowledge_base=handbook, name="plan.md", size_bytes=1, sha256="0" * 64
    )
    client.force_login(bea)
    client.get(reverse("knowledge:show-document", args=["acme", document.pk]), REMOTE_ADDR="203.0.113.9")
    event = AuditEvent.objects.get(action="document.opened")
    assert (event.actor, event.target_id, event.target_name) == (bea, document.pk, "plan.md")
    assert (event.right, event.ip, event.kind) == ("viewer", "203.0.113.9", "person")
    client.force_login(ann)
    page = client.get(reverse("workspaces:show-audit-log", args=["acme"]), {"q": "opened"}).content.decode()
    assert "plan.md" in page
    lines = b"".join(whole(client.get(reverse("workspaces:export-audit-log", args=["acme"])))).splitlines()
    assert {json.loads(line)["action"] for line in lines} >= {"document.opened", "audit_log.exported"}


def test_support_is_seen_and_ends_by_itself(acme, ann, handbook, client):
    operator = person("op@example.com")
    with pytest.raises(NotAllowed):
        services.begin_support(workspace=acme, operator=operator, reason="ticket 7")
    operator.is_staff = True
    operator.save()
    assert not KnowledgeBase.objects.visible_to(operator).exists()
    services.begin_support(workspace=acme, operator=operator, reason="ticket 7")
    assert KnowledgeBase.objects.visible_to(operator).get() == handbook
    client.force_login(ann)
    assert "support until" in client.get(reverse("workspaces:list-members", args=["acme"])).content.decode()
    assert AuditEvent.objects.get(action="support.began").details == {"reason": "ticket 7"}
    Membership.objects.filter(user=operator).update(support_until=timezone.now() - timedelta(seconds=1))
    assert not KnowledgeBase.objects.visible_to(operator).exists()


def test_a_quota_is_counted_for_the_workspace_and_the_person_or_not_at_all(acme, ann, bea, settings):
    settings.QUOTAS = {"workspace": {"turns": 3}, "person": {"turns": 2}}
    where = {"workspace_id": acme.pk}
    quotas.take(**where, user_id=ann.pk, turns=1)
    quotas.take(**where, user_id=ann.pk, turns=1)
    with pytest.raises(QuotaExceeded, match="quota_exceeded") as caught:
        quotas.take(**where, user_id=ann.pk, turns=1)
    assert caught.value.details == {"kind": "Questions a day", "whose": "one person", "used": 2, "limit": 2}
    quotas.take(**where, user_id=bea.pk, turns=1)
    with pytest.raises(QuotaExceeded):
        quotas.take(**where, user_id=bea.pk, turns=1)  # the workspace's third is spent
    used = dict(Quota.objects.values_list("user__email", "used"))
    assert used == {None: 3, "ann@example.com": 2, "bea@example.com": 1}
    Quota.objects.update(began_at=timezone.now() - timedelta(days=2))
    quotas.take(**where, user_id=ann.pk, turns=1)
    assert Quota.objects.get(user=ann).used == 1
    quotas.set_limit_of(workspace=acme, user_id=bea.pk, kind="turns", limit=0, actor=ann)
    Quota.objects.update(used=0)
    with pytest.raises(QuotaExceeded):
        quotas.take(**where, user_id=bea.pk, turns=1)
    with pytest.raises(NotAllowed):
        quotas.set_limit_of(workspace=acme, user_id=bea.pk, kind="turns", limit=None, actor=bea)
    with pytest.raises(QuotaExceeded):
        quotas.take(**where, user_id=ann.pk, turns=9)  # more than was ever allowed at once


def test_a_widget_s_visitor_counts_for_the_workspace_alone(acme):
    quotas.take(workspace_id=acme.pk, user_id=None, turns=1)
    assert Quota.objects.get().used == 1


def test_a_deleted_workspace_is_shut_at_once_and_erased_whole(acme, ann, bea, handbook):
    Conversation.objects.create(workspace=acme, owner=ann)
    services.delete_workspace(workspace=acme, actor=ann)
    for door in (Workspace, KnowledgeBase, Conversation):
        assert not door.objects.visible_to(ann).exists()
    assert erasing.erase_workspaces() == 0  # what is in it goes first
    from apps.knowledge.services import sweep

    sweep()
    Conversation.objects.filter(deleted_at__isnull=False).delete()  # as the engine does
    assert erasing.erase_workspaces() == 1
    assert not Workspace.objects.filter(pk=acme.pk).exists()
    assert not AuditEvent.objects.filter(workspace=acme.pk).exists()
    assert User.objects.filter(pk=bea.pk).exists()


def test_a_person_who_ends_their_account_is_out_everywhere(acme, ann, bea, handbook, client):
    services.transfer_workspace(membership=membership(bea, acme), actor=ann)
    own = services.create_workspace(name="Own", owner=ann)
    talk = Conversation.objects.create(workspace=acme, owner=ann)
    client.force_login(ann)
    assert client.post(reverse("workspaces:delete-account"), {"email": "bea@example.com"}).status_code == 422
    ann.set_password("correct horse battery")
    ann.save()
    client.force_login(ann)
    asked = client.post(reverse("workspaces:delete-account"), {"email": ann.email})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    wrong = client.post(asked["Location"], {"password": "another horse", "next": reverse("workspaces:delete-account")})
    assert wrong.status_code == 200
    assert User.objects.get(pk=ann.pk).is_active
    again = {"password": "correct horse battery", "next": reverse("workspaces:delete-account")}
    assert client.post(asked["Location"], again)["Location"] == reverse("account_login")  # it went on by itself
    gone = User.objects.get(pk=ann.pk)
    assert not gone.is_active
    assert "ann" not in gone.email
    assert not Membership.objects.filter(user=ann).exists()
    assert Workspace.objects.get(pk=own.pk).deleted_at
    with pytest.raises(NotFound):
        services.delete_person(user=ann)
    assert erasing.erase_people() == 0
    assert Conversation.objects.get(pk=talk.pk).deleted_at
    Conversation.objects.all().delete()
    assert erasing.erase_people() == 1
    assert AuditEvent.objects.filter(actor_id=ann.pk).exists()  # its id stays, nothing to find it by
    assert KnowledgeBase.objects.get(pk=handbook.pk).created_by is None


def test_what_cannot_be_undone_asks_once_more_who_is_there(acme, ann, bea, client):
    """Not those without a password or another way to say it: they come through the operator's provider."""
    ann.set_password("correct horse battery")
    ann.save()
    client.force_login(ann)
    transfer = reverse("workspaces:transfer-workspace", args=["acme", membership(bea, acme).pk])
    delete = reverse("workspaces:delete-workspace", args=["acme"])
    for address, values in ((transfer, {}), (delete, {"name": acme.name})):
        assert client.post(address, values)["Location"].startswith(reverse("account_reauthenticate")), address
    assert Workspace.objects.get(pk=acme.pk).deleted_at is None
    assert membership(ann, acme).role == Role.OWNER
    ann.set_unusable_password()
    ann.save()
    client.force_login(ann)
    client.post(delete, {"name": acme.name})
    assert Workspace.objects.get(pk=acme.pk).deleted_at


def test_what_is_older_than_it_is_kept_goes(acme, ann):
    from apps.conversations import leaving

    old, new = (Conversation.objects.create(workspace=acme, owner=ann) for _ in range(2))
    Conversation.objects.filter(pk=old.pk).update(changed_at=timezone.now() - timedelta(days=8))
    assert leaving.expire() == 0
    services.change_workspace(workspace=acme, actor=ann, keep_conversations_days=7, keep_audit_days=30)
    assert leaving.expire() == 1
    assert list(Conversation.objects.visible_to(ann)) == [new]
    assert erasing.expire_audit_log() == 0
    past = timezone.now() - timedelta(days=31)
    AuditEvent.objects.bulk_create([AuditEvent(workspace=acme, kind="person", action="old.thing")])
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEvent.objects.filter(action="old.thing").update(at=past)


def test_right_of_says_how_one_came_in(acme, ann, bea):
    assert [audit.right_of(user.principal, acme.pk) for user in (ann, bea)] == ["owner", "viewer"]
