"""Ways into an account and a workspace that lie beside the main ones."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from axes.models import AccessLog
from django.utils import timezone

from apps.conversations.models import Conversation, Share, Turn
from apps.workspaces import services
from apps.workspaces.accounts import SingleSignOnAdapter
from apps.workspaces.errors import KeyRefused, TooManyInvitations
from apps.workspaces.models import Invitation, Membership, Role, Workspace
from apps.workspaces.services import invitations
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


def test_nothing_is_kept_of_how_somebody_signed_in_who_is_gone(client, ann, mal):
    for user in (ann, mal):
        client.post("/accounts/login/", {"login": user.email, "password": "correct horse battery"})
        client.post("/accounts/logout/")
    services.delete_person(user=ann)
    assert list(AccessLog.objects.values_list("username", flat=True)) == [mal.email]
