"""Signing in with a key: what it opens, what it does not, and when it ends."""

from datetime import timedelta

import pytest
from django.utils import timezone

pytestmark = pytest.mark.django_db


@pytest.fixture
def key(acme, ann):
    """Make a key of ann's; return the headers that carry it."""
    from apps.workspaces.services import create_api_key

    def key(*scopes, workspace=acme, **more):
        _row, secret = create_api_key(workspace=workspace, name="k", scopes=scopes, actor=ann, **more)
        return {"Authorization": f"Bearer {secret}"}

    return key


def test_a_key_opens_its_workspace_within_its_scopes(api, key, acme, ann, handbook):
    from apps.knowledge.models import KnowledgeBase
    from apps.workspaces.services import create_workspace

    other = create_workspace(name="Other", owner=ann)
    hidden = KnowledgeBase.objects.create(workspace=other, name="Hidden", created_by=ann)
    caller, headers = api("nobody"), key("knowledge:read")
    assert [row["id"] for row in caller.get("knowledge-bases", headers=headers).json()["results"]] == [str(handbook.pk)]
    assert [row["id"] for row in caller.get("workspaces", headers=headers).json()["results"]] == [str(acme.pk)]
    assert caller.get(f"knowledge-bases/{hidden.pk}", headers=headers).status_code == 404
    for method, address in [("post", "knowledge-bases"), ("get", "conversations"), ("get", "models"), ("get", "usage")]:
        refused = getattr(caller, method)(address, {"name": "x"}, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing"), address
    writing = key("knowledge:write")  # includes reading
    assert caller.post("knowledge-bases", {"name": "New"}, headers=writing).status_code == 201
    assert len(caller.get("knowledge-bases", headers=writing).json()["results"]) == 2


@pytest.mark.parametrize("secret", ["", "x", "ks_", "ks_" + "a" * 43, "ks_" + "é" * 43, "ks_\x00"])
def test_what_is_no_key_is_refused(api, acme, secret):
    answer = api("nobody").get("knowledge-bases", headers={"Authorization": f"Bearer {secret}"})
    assert (answer.status_code, answer.json()["code"]) == (401, "key_refused")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_key_ends_with_its_time_its_revocation_and_its_person(api, key, ann, acme, handbook):
    from apps.workspaces.models import ApiKey

    def status(headers):
        return api("nobody").get(f"knowledge-bases/{handbook.pk}", headers=headers).status_code

    headers = key("knowledge:read", expires_at=timezone.now() + timedelta(hours=1))
    assert status(headers) == 200
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert status(headers) == 401
    headers = key("knowledge:read")
    made = api("ann").get(f"workspaces/{acme.pk}/api-keys").json()["results"][0]
    assert made["key"] is None
    assert api("ann").delete(f"workspaces/{acme.pk}/api-keys/{made['id']}").json()["revoked_at"]
    assert status(headers) == 401
    headers = key("knowledge:read")
    ann.is_active = False
    ann.save()
    assert status(headers) == 401


def test_a_key_is_shown_once_and_its_repetition_does_not_show_it(api, acme):
    body = {"name": "k", "scopes": ["knowledge:read"]}
    first, second = (
        api("ann").post(f"workspaces/{acme.pk}/api-keys", body, headers={"Idempotency-Key": "make"}) for _ in range(2)
    )
    assert first.json()["key"].startswith("ks_")
    assert second.json() == {**first.json(), "key": None}


def test_a_key_makes_no_key_that_may_more(api, key, acme):
    answer = api("nobody").post(
        f"workspaces/{acme.pk}/api-keys", {"name": "more", "scopes": ["models:write"]}, headers=key("workspace:write")
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


def test_a_key_that_a_key_made_ends_with_it(api, key, acme, ann, handbook):
    from apps.workspaces.models import ApiKey
    from apps.workspaces.services import revoke_api_key

    def make(headers):
        body = {"name": "child", "scopes": ["knowledge:read", "workspace:write"]}
        made = api("nobody").post(f"workspaces/{acme.pk}/api-keys", body, headers=headers)
        assert made.status_code == 201, made.json()
        return {"Authorization": f"Bearer {made.json()['key']}"}

    other, first = key("knowledge:read"), key("knowledge:read", "workspace:write")
    child = make(first)
    grandchild = make(child)
    assert api("nobody").get("knowledge-bases", headers=grandchild).status_code == 200
    revoke_api_key(key=ApiKey.objects.get(made__made__isnull=False), actor=ann)
    for headers in (first, child, grandchild):
        assert api("nobody").get("knowledge-bases", headers=headers).status_code == 401
    assert api("nobody").get("knowledge-bases", headers=other).status_code == 200


def test_requests_are_counted_by_key_and_by_workspace(api, key, acme, settings):
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]

    def allow(**changed):
        settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": {**rates, **changed}}

    one, two = key("knowledge:read"), key("knowledge:read")
    allow(key="1/min")
    assert [api("nobody").get("documents", headers=one).status_code for _ in range(2)] == [200, 429]
    assert api("nobody").get("documents", headers=two).status_code == 200
    allow(workspace="4/min")  # three are counted already
    assert [api("nobody").get("documents", headers=two).status_code for _ in range(2)] == [200, 429]
