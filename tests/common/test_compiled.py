"""Compiled queries are the queries they were made from, for everybody and at every moment."""

import pytest

from apps.common.compiled import CompiledQuery
from apps.workspaces.models import Membership, User, Workspace
from apps.workspaces.services import create_workspace

pytestmark = pytest.mark.django_db

MINE = CompiledQuery(lambda user, workspace: Workspace.objects.visible_to(User(pk=user)).filter(pk=workspace))


def test_rights_are_asked_again_each_time_and_for_each_person(django_assert_num_queries):
    ann, bob = (User.objects.create_user(f"{name}@example.com") for name in ("ann", "bob"))
    hers, his = create_workspace(name="Hers", owner=ann), create_workspace(name="His", owner=bob)
    for _ in range(2):
        for person in (ann, bob):
            for workspace in (hers, his):
                door = list(Workspace.objects.visible_to(person).filter(pk=workspace.pk))
                with django_assert_num_queries(1):
                    assert MINE.rows(user=person.pk, workspace=workspace.pk) == door
    assert MINE.rows(user=ann.pk, workspace=hers.pk)[0].name == "Hers"
    Membership.objects.filter(user=ann, workspace=hers).delete()
    assert MINE.rows(user=ann.pk, workspace=hers.pk) == []
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert MINE.rows(user=bob.pk, workspace=his.pk) == []


def test_an_id_that_is_missing_is_an_error():
    with pytest.raises(KeyError):
        MINE.rows(user=User.objects.create_user("eve@example.com").pk)
