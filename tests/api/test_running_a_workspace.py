"""What owners and admins do through the API: widgets, budgets, limits, invitations, bases."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.knowledge.models import KnowledgeBase
from apps.workspaces import services
from apps.workspaces.models import Invitation, Membership, Role
from apps.workspaces.services import quotas

pytestmark = pytest.mark.django_db


def test_a_widget_is_changed_field_by_field(api, acme, ann, bea, mal, handbook):
    caller = api("ann")
    widget = caller.post("widgets", {"name": "Shop"}).json()
    place = f"widgets/{widget['id']}"
    changed = caller.patch(
        place,
        {"origins": ["https://Shop.example/", "https://*.shops.example"], "starters": ["One?", "Two?"], "per_day": 7,
         "knowledge_bases": [str(handbook.pk)], "budget": 10_000},
    )  # fmt: skip
    assert changed.status_code == 200, changed.json()
    assert changed.json()["origins"] == ["https://shop.example", "https://*.shops.example"]
    again = caller.patch(place, {"title": "Ask"}).json()  # what is not named stays
    kept = ("starters", "per_day", "knowledge_bases", "budget", "title")
    assert [again[name] for name in kept] == [["One?", "Two?"], 7, [str(handbook.pk)], 10_000, "Ask"]
    theirs = KnowledgeBase.objects.create(workspace=mal.workspaces.get(), name="Theirs", created_by=mal)
    for wrong, field in (
        ({"origins": ["shop.example"]}, "origins"),
        ({"color": "#ffffff"}, "color"),
        ({"knowledge_bases": [str(theirs.pk)]}, "knowledge_bases"),
        ({"per_day": -1}, "per_day"),
    ):
        refused = caller.patch(place, wrong)
        assert (refused.status_code, set(refused.json()["details"]["fields"])) == (422, {field})
    assert caller.get(place).json() == again | {"changed_at": caller.get(place).json()["changed_at"]}
    secret = caller.post(f"{place}/identity-secret").json()["secret"]
    shown = caller.get(place)
    assert shown.json()["has_identity_secret"] is True
    assert secret.encode() not in shown.content
    renewed = caller.post(f"{place}/renew").json()["public_id"]
    assert renewed != widget["public_id"]
    assert caller.patch(place, {"budget": None}).json()["budget"] is None


@pytest.mark.parametrize("address", ["widgets", "budgets", "audit-events", "datasets"])
def test_a_list_costs_the_same_however_long_it_is(api, acme, ann, handbook, address):
    from decimal import Decimal

    from apps.evals.keeping import create_dataset
    from apps.models.budget_services import set_budget
    from apps.widgets.services import create_widget

    def add(numbers):
        for number in numbers:
            create_widget(workspace=acme, actor=ann, name=f"W{number}")
            create_dataset(workspace=acme, actor=ann, name=f"D{number}", kind="intent")
            unit = f"{chr(65 + number // 26)}{chr(65 + number % 26)}X"
            set_budget(workspace=acme, actor=ann, scope="user", amount=Decimal(number), unit=unit)

    counted, caller = [], api("ann")
    for numbers in (range(2), range(2, 20)):
        add(numbers)
        with CaptureQueriesContext(connection) as queries:
            assert caller.get(address).status_code == 200
        own = [one["sql"] for one in queries if "SAVEPOINT" not in one["sql"] and "django_session" not in one["sql"]]
        counted.append(len(own))
    assert counted[0] == counted[1] <= 8, own


def test_an_invitation_s_link_is_shown_once_and_lets_one_person_in(api, acme, ann, mal):
    place, body = f"workspaces/{acme.pk}/invitations", {"role": "viewer", "email": "Mal@example.com"}
    first, second = (api("ann").post(place, body, headers={"Idempotency-Key": "k"}).json() for _ in range(2))
    assert "/invitations/" in first["link"]
    assert second == {**first, "link": None}
    listed = api("ann").get(place).json()["results"]
    assert [row["link"] for row in listed] == [None]
    assert Invitation.objects.get().digest not in str(listed)
    assert services.accept(token=first["link"].rstrip("/").rpartition("/")[2], actor=mal) == acme
    assert api("ann").get(f"{place}/{first['id']}").json()["accepted_by"] == str(mal.pk)
    ended = api("ann").post(place, {"role": "viewer"}).json()
    assert api("ann").delete(f"{place}/{ended['id']}").json()["revoked_at"]
    services.set_membership(workspace=acme, user=mal, role=Role.ADMIN)
    assert api("mal").post(place, {"role": "owner"}).status_code == 403


def test_limits_and_use_are_one_s_own_unless_one_runs_the_workspace(api, acme, ann, bea):
    for user in (ann, bea):
        quotas.take(workspace_id=acme.pk, user_id=user.pk, turns=1)
    place = f"workspaces/{acme.pk}/quotas"
    set_to = api("ann").post(place, {"user": str(bea.pk), "kind": "turns", "limit": 5})
    assert (set_to.json()["limit"], set_to.json()["used"]) == (5, 1)
    assert {row["user"] for row in api("ann").get(place).json()["results"]} == {None, str(ann.pk), str(bea.pk)}
    assert {row["user"] for row in api("bea").get(place).json()["results"]} == {str(bea.pk)}
    free = api("ann").post(place, {"user": str(bea.pk), "kind": "turns", "limit": None})
    assert free.json()["own_limit"] is None
    Membership.objects.filter(user=bea).delete()
    assert api("ann").post(place, {"user": str(bea.pk), "kind": "turns", "limit": 5}).status_code == 404


def test_a_base_a_folder_and_a_document_are_changed(api, acme, ann, bea, handbook, plan):
    KnowledgeBase.objects.create(workspace=acme, name="Taken")
    place, caller = f"knowledge-bases/{handbook.pk}", api("ann")
    assert caller.patch(place, {"name": "Taken"}).json()["code"] == "name_taken"
    assert caller.patch(place, {"chunker": "parent_child", "chunker_settings": {"no": 1}}).status_code == 422
    changed = caller.patch(place, {"name": "Rules", "description": "All of them"}).json()
    assert (changed["name"], changed["description"]) == ("Rules", "All of them")
    folder = caller.post(f"{place}/folders", {"name": "Old"}).json()["id"]
    moved = caller.patch(f"documents/{plan.pk}", {"folder": folder, "tags": ["a", "b"], "restricted": True}).json()
    assert (moved["folder"], moved["tags"], moved["restricted"]) == (folder, ["a", "b"], True)
    assert caller.patch(f"documents/{plan.pk}", {"tags": ["c"]}).json()["tags"] == ["c"]
    assert api("bea").get(f"documents/{plan.pk}").status_code == 404
    given = caller.post(f"documents/{plan.pk}/shares", {"user": str(bea.pk), "level": "read"})
    assert given.status_code == 201
    assert api("bea").get(f"documents/{plan.pk}").status_code == 200
    assert caller.patch(f"folders/{folder}", {"restricted": True}).json()["restricted"] is True
    assert api("bea").get(f"documents/{plan.pk}").status_code == 404
    caller.post(f"folders/{folder}/shares", {"role": "viewer", "level": "read"})
    assert api("bea").get(f"documents/{plan.pk}").status_code == 200
    assert caller.delete(f"documents/{plan.pk}/shares/{given.json()['id']}").status_code == 204
    assert api("bea").get(f"documents/{plan.pk}").status_code == 404
    assert caller.patch(place, {"restricted": True}).json()["restricted"] is True
    assert api("bea").get(place).status_code == 404
