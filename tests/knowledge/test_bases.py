"""Knowledge bases: who may make and share them, and what a deletion leaves of grants."""

import pytest
from guardian.models import UserObjectPermission

from apps.common.errors import NotAllowed, NotFound
from apps.knowledge import services
from apps.knowledge.errors import NameTaken
from apps.knowledge.models import KnowledgeBase, KnowledgeBaseShare
from apps.workspaces.models import Role, User
from apps.workspaces.services import set_membership


def test_a_member_makes_a_base_and_may_manage_it(acme, bea):
    with pytest.raises(NotAllowed):
        services.create_knowledge_base(workspace=acme, name="Mine", actor=bea)
    set_membership(workspace=acme, user=bea, role=Role.MEMBER)
    mine = services.create_knowledge_base(workspace=acme, name="  Mine\u202e ", actor=bea)
    assert mine.name == "Mine"
    assert list(KnowledgeBase.objects.editable_by(bea)) == [mine]
    with pytest.raises(NameTaken):
        services.create_knowledge_base(workspace=acme, name="Mine", actor=bea)


def test_another_tenant_makes_nothing_here(acme, mal):
    with pytest.raises(NotFound):
        services.create_knowledge_base(workspace=acme, name="Mine", actor=mal)


def test_a_grant_opens_a_restricted_base_and_its_end_closes_it(acme, ann, bea):
    secret = services.create_knowledge_base(workspace=acme, name="Secret", actor=ann, restricted=True)
    assert not KnowledgeBase.objects.visible_to(bea).exists()
    services.grant(knowledge_base=secret, user=bea, level="read", actor=ann)
    assert KnowledgeBase.objects.visible_to(bea).get() == secret
    assert not KnowledgeBase.objects.editable_by(bea).exists()
    services.grant(knowledge_base=secret, user=bea, level="manage", actor=ann)
    services.grant(knowledge_base=secret, user=bea, level="read", actor=ann)
    assert not KnowledgeBase.objects.editable_by(bea).exists()
    services.revoke(knowledge_base=secret, user=bea, actor=ann)
    assert not KnowledgeBase.objects.visible_to(bea).exists()


def test_a_base_is_shared_with_members_only(acme, ann, mal, handbook):
    with pytest.raises(NotFound):
        services.grant(knowledge_base=handbook, user=mal, level="read", actor=ann)


@pytest.mark.parametrize("gone", ["bases", "person", "workspace"])
def test_no_grant_outlives_what_it_joins(acme, ann, bea, gone):
    for number in range(3):
        base = services.create_knowledge_base(workspace=acme, name=f"B{number}", actor=ann)
        services.grant(knowledge_base=base, user=bea, level="read", actor=ann)
    assert KnowledgeBaseShare.objects.filter(user=bea).count() == 3
    {
        "bases": KnowledgeBase.objects.filter(workspace=acme),
        "person": User.objects.filter(pk=bea.pk),
        "workspace": type(acme).objects.filter(pk=acme.pk),
    }[gone].delete()
    assert not KnowledgeBaseShare.objects.filter(user_id=bea.pk).exists()
    assert not UserObjectPermission.objects.exists()
