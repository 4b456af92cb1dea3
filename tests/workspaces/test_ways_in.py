"""Ways into an account and a workspace that lie beside the main ones."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from axes.models import AccessLog
from django.db import DatabaseError, transaction
from django.utils import timezone

from apps.common.database import set_local
from apps.conversations.models import Conversation, Share, Turn
from apps.knowledge.models import KnowledgeBase
from apps.workspaces import audit, services
from apps.workspaces.accounts import SingleSignOnAdapter
from apps.workspaces.errors import KeyRefused, TooManyInvitations
from apps.workspaces.models import AuditEvent, Invitation, Membership, Role, Workspace
from apps.workspaces.services import invitations, quotas
from tests.api.conftest import Caller
from tests.conftest import person

pytestmark = pytest.mark.django_db


def operator_of(acme):
    user = person("op@example.com")
    user.is_staff = True
    user.save()
    services.begin_support(workspace=acme, operator=user, reason="ticket 7")
    return user


def test_where_sign_up_is_shut_the_api_makes_no_workspace_either(acme, bea, settings):
    api = Caller()
    api.force_login(bea)
    answers = []
    for settings.SIGNUP in ("closed", "invited", "open"):
        answers.append(api.post("workspaces", {"name": "Mine"}).status_code)
    assert answers == [403, 403, 201]
    assert Workspace.objects.filter(name="Mine").count() == 1


@pytest.mark.parametrize("proved", [False, True])
def test_who_claimed_an_address_before_its_holder_came_keeps_no_way_in(acme, ann, proved):
    """Somebody signs up with another's address and leaves a key and a passkey; then the provider says whose it is."""
    EmailAddress.objects.filter(user=ann).update(verified=proved)
    Authenticator.objects.create(user=ann, type=Authenticator.Type.WEBAUTHN, data={})
    _key, secret = services.create_api_key(workspace=acme, name="k", scopes=["knowledge:read"], actor=ann)
    provider = SimpleNamespace(app=None, get_settings=dict)
    claims = [EmailAddress(email=ann.email, verified=True)]
    found = SingleSignOnAdapter().authenticate_by_email(SimpleNamespace(email_addresses=claims, provider=provider))
    assert found == (ann, ann.email)
    assert Authenticator.objects.exists() is proved
    if proved:
        assert services.principal_of_key(secret).pk == ann.pk
    else:
        with pytest.raises(KeyRefused):
            services.principal_of_key(secret)


def test_invitations_are_no_way_to_write_to_everybody(acme, ann, bea, mal, monkeypatch):
    monkeypatch.setattr(invitations, "MOST_A_DAY", 3)
    services.change_role(membership=Membership.objects.get(user=bea), role=Role.ADMIN, actor=ann)
    invite = {"email": "", "role": Role.VIEWER}
    for actor in (ann, bea, ann):
        services.invite(workspace=acme, actor=actor, **invite)
    second = services.create_workspace(name="Second", owner=ann)
    services.invite(workspace=second, actor=ann, **invite)
    for place, actor in ((acme, bea), (second, ann)):  # of the workspace, and of the person
        with pytest.raises(TooManyInvitations):
            services.invite(workspace=place, actor=actor, **invite)
    services.invite(workspace=mal.workspaces.get(), actor=mal, **invite)
    Invitation.objects.update(created_at=timezone.now() - timedelta(days=2))
    services.invite(workspace=acme, actor=bea, **invite)


def test_an_operator_s_visit_is_no_membership(acme, ann):
    """Who is on a visit may be invited for good, shares nothing beyond it, and is nobody to leave a workspace to."""
    operator = operator_of(acme)
    talk = Conversation.objects.create(workspace=acme, owner=operator)
    turn = Turn.objects.create(conversation=talk, number=1, client_id="c", status="succeeded", question="Why?")
    Share.objects.create(conversation=talk, turn=turn)
    assert Share.objects.visible_to(ann).exists()
    past = timezone.now() - timedelta(seconds=1)
    Membership.objects.filter(user=operator).update(support_until=past)
    assert not Share.objects.visible_to(ann).exists()
    _invitation, link = services.invite(workspace=acme, email="", role=Role.MEMBER, actor=ann)
    services.accept(token=link.rstrip("/").rpartition("/")[2], actor=operator)
    here = Membership.objects.get(user=operator)
    assert (here.role, here.support_until) == (Role.MEMBER, None)
    Membership.objects.filter(user=operator).update(support_until=past)
    services.delete_person(user=ann)
    assert Workspace.objects.get(pk=acme.pk).deleted_at


def test_the_log_keeps_what_somebody_did_who_is_gone_and_not_their_address(acme, ann, bea):
    quotas.set_limit_of(workspace=acme, user_id=bea.pk, kind="turns", limit=9, actor=ann)
    services.invite(workspace=acme, email=bea.email, role=Role.VIEWER, actor=ann)
    services.change_role(membership=Membership.objects.get(user=bea), role=Role.MEMBER, actor=ann)
    base = KnowledgeBase.objects.create(workspace=acme, name=bea.email)
    audit.did("base.made", base, who=bea)
    entries = AuditEvent.objects.filter(workspace=acme)
    before = entries.count()
    services.delete_person(user=bea)
    assert entries.count() == before + 1  # that they left
    assert list(entries.filter(target_name=bea.email).values_list("action", flat=True)) == ["base.made"]
    assert entries.filter(target_id=bea.pk, action="member.left", actor=bea.pk).exists()
    assert not Invitation.objects.filter(email=bea.email).exists()
    set_local("knowsphere.forgetting", base.name)
    for changes in ({"target_name": "x"}, {"target_name": "", "action": "x"}):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            entries.filter(target_name=base.name).update(**changes)


def test_nothing_is_kept_of_how_somebody_signed_in_who_is_gone(client, ann, mal):
    for user in (ann, mal):
        client.post("/accounts/login/", {"login": user.email, "password": "correct horse battery"})
        client.post("/accounts/logout/")
    services.delete_person(user=ann)
    assert list(AccessLog.objects.values_list("username", flat=True)) == [mal.email]
