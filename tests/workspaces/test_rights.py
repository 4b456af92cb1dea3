"""Shares, departments, restrictions and API keys, at the doors."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from apps.agents.models import Agent
from apps.common.errors import InvalidInput, NotAllowed, NotFound
from apps.knowledge.models import Document, KnowledgeBase
from apps.models.models import ModelConfig
from apps.workspaces import services
from apps.workspaces.errors import DepartmentInItself, DepartmentNameTaken, KeyRefused
from apps.workspaces.models import ApiKey, Membership, Role
from apps.workspaces.permissions import require
from apps.workspaces.principals import SCOPES, Principal
from apps.workspaces.services import Subject, share
from tests.conftest import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def secret(acme, ann):
    """A restricted base of acme."""
    return KnowledgeBase.objects.create(workspace=acme, name="Secret", restricted=True, created_by=ann)


@pytest.fixture
def max_(acme):
    """A member of acme."""
    user = person("max@example.com")
    services.set_membership(workspace=acme, user=user, role=Role.MEMBER)
    return user


def document(base, **fields):
    return Document.objects.create(
        workspace=base.workspace, knowledge_base=base, name="a.md", size_bytes=1, sha256="0" * 64, **fields
    )


@pytest.mark.parametrize("kind", [KnowledgeBase, Agent, ModelConfig])
def test_every_kind_is_shared_alike(kind, acme, ann, bea, max_, mal):
    row = kind.objects.create(workspace=acme, name="Row", restricted=True)
    other = person("other@example.com")

    def seen():
        people = (bea, max_, mal, other)
        return [
            (user.email[:3], level)
            for user in people
            for level, door in (("read", kind.objects.visible_to), ("manage", kind.objects.editable_by))
            if door(user).exists()
        ]

    assert seen() == []
    assert kind.objects.editable_by(ann).get() == row
    to_bea = share(row=row, subject=Subject(user=bea), level="read", actor=ann)
    assert seen() == [("bea", "read")]
    share(row=row, subject=Subject(user=bea), level="manage", actor=ann)
    assert seen() == [("bea", "read"), ("bea", "manage")]
    services.unshare(share=to_bea, actor=ann)
    to_members = share(row=row, subject=Subject(role="member"), level="manage", actor=ann)
    assert seen() == [("max", "read"), ("max", "manage")]
    services.unshare(share=to_members, actor=ann)
    share(row=row, subject=Subject(role="viewer"), level="read", actor=ann)
    assert seen() == [("bea", "read"), ("max", "read")]
    for subject in (Subject(user=mal), Subject(role="owner")):
        with pytest.raises(NotFound):
            share(row=row, subject=subject, level="read", actor=ann)


def test_what_is_shared_with_a_department_reaches_all_below_it(secret, acme, ann, bea, max_, mal):
    top = services.create_department(workspace=acme, name="Research", actor=ann)
    below = services.create_department(workspace=acme, name="Physics", actor=ann, parent=top)
    beside = services.create_department(workspace=acme, name="Sales", actor=ann)
    services.set_department_members(department=below, user_ids=[bea.pk], actor=ann)
    services.set_department_members(department=beside, user_ids=[max_.pk], actor=ann)
    share(row=secret, subject=Subject(department=top), level="read", actor=ann)
    doors = KnowledgeBase.objects.visible_to
    assert doors(bea).exists()
    assert not doors(max_).exists()

    services.move_department(department=below, parent=beside, actor=ann)
    assert not doors(bea).exists()
    services.move_department(department=beside, parent=top, actor=ann)
    assert doors(bea).exists()
    assert doors(max_).exists()

    with pytest.raises(DepartmentInItself):
        services.move_department(department=top, parent=below, actor=ann)
    with pytest.raises(DepartmentNameTaken):
        services.create_department(workspace=acme, name="Research", actor=ann)
    theirs = services.create_department(workspace=mal.workspaces.get(), name="Theirs", actor=mal)
    for refused in (
        lambda: share(row=secret, subject=Subject(department=theirs), level="read", actor=ann),
        lambda: services.move_department(department=top, parent=theirs, actor=ann),
        lambda: services.create_department(workspace=acme, name="X", actor=mal),
        lambda: services.set_department_members(department=top, user_ids=[mal.pk], actor=ann),
    ):
        with pytest.raises(NotFound):
            refused()

    Membership.objects.get(user=bea).delete()
    services.set_membership(workspace=acme, user=bea, role=Role.VIEWER)
    assert not doors(bea).exists()  # who comes back is in no department
    services.delete_department(department=top, actor=ann)
    assert not doors(max_).exists()


def test_a_restricted_document_is_read_by_managers_and_those_it_is_shared_with(handbook, secret, ann, bea, max_):
    shut = document(handbook, restricted=True)
    assert Document.objects.visible_to(ann).get() == shut
    assert not Document.objects.visible_to(bea).exists()
    held = share(row=shut, subject=Subject(user=bea), level="read", actor=ann)
    assert Document.objects.visible_to(bea).get() == shut
    handbook.restricted = True
    handbook.save()
    assert not Document.objects.visible_to(bea).exists()  # a share of a document does not open its base
    share(row=handbook, subject=Subject(user=bea), level="read", actor=ann)
    share(row=handbook, subject=Subject(user=max_), level="manage", actor=ann)
    assert Document.objects.visible_to(bea).exists()
    services.unshare(share=held, actor=ann)
    assert not Document.objects.visible_to(bea).exists()
    assert Document.objects.visible_to(max_).exists()
    services.set_restricted(row=shut, restricted=False, actor=ann)
    assert Document.objects.visible_to(bea).exists()


@pytest.fixture
def key_of(acme):
    def key_of(user, *scopes, workspace=acme, **more):
        row, secret = services.create_api_key(
            workspace=workspace, name="Key", scopes=scopes or SCOPES, actor=user, **more
        )
        return row, services.principal_of_key(secret)

    return key_of


def test_a_key_is_its_person_within_its_workspace_and_scopes(key_of, handbook, secret, ann, bea):
    other = services.create_workspace(name="Other", owner=ann)
    elsewhere = KnowledgeBase.objects.create(workspace=other, name="Elsewhere")
    assert KnowledgeBase.objects.visible_to(ann).count() == 3
    _, everything = key_of(ann)
    assert set(KnowledgeBase.objects.visible_to(everything)) == {handbook, secret}
    assert set(KnowledgeBase.objects.editable_by(everything)) == {handbook, secret}
    _, reading = key_of(ann, "knowledge:read")
    assert set(KnowledgeBase.objects.visible_to(reading)) == {handbook, secret}
    assert not KnowledgeBase.objects.editable_by(reading).exists()
    assert not Agent.objects.visible_to(reading).exists()
    _, asking = key_of(ann, "conversations:write")
    assert not KnowledgeBase.objects.visible_to(asking).exists()
    _, hers = key_of(bea)
    assert set(KnowledgeBase.objects.visible_to(hers)) == {handbook}
    _, there = key_of(ann, workspace=other)
    assert set(KnowledgeBase.objects.visible_to(there)) == {elsewhere}
    with pytest.raises(NotAllowed):
        require("create_knowledge_base", actor=reading, workspace=handbook.workspace)
    with pytest.raises(NotFound):
        require("create_knowledge_base", actor=there, workspace=handbook.workspace)
    shut = document(handbook, restricted=True)
    assert Document.objects.visible_to(reading).get() == shut  # ann manages the base, whatever the key may change
    assert not Document.objects.visible_to(hers).exists()


def test_a_key_that_ended_opens_nothing_from_that_moment(key_of, handbook, ann, bea):
    row, user = key_of(bea)
    _, ending = key_of(bea, expires_at=timezone.now() + timedelta(hours=1))
    door = KnowledgeBase.objects.visible_to
    assert door(user).exists()
    assert door(ending).exists()
    services.revoke_api_key(key=ApiKey.objects.editable_by(bea).get(pk=row.pk), actor=bea)
    assert not door(user).exists()
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not door(ending).exists()
    assert door(bea).exists()


def test_a_key_is_stored_as_a_digest_and_refused_when_it_is_not_one(acme, ann, bea):
    _, secret = services.create_api_key(workspace=acme, name="Key", scopes=["knowledge:read"], actor=ann)
    assert secret.startswith("ks_")
    assert secret not in str(ApiKey.objects.values().get())
    assert services.principal_of_key(secret).principal.scopes == {"knowledge:read"}
    assert ApiKey.objects.get().last_used_at
    for wrong in ("", "ks_", secret[:-1], secret + "x", secret.swapcase(), "ks_" + "\0" * 43):
        with pytest.raises(KeyRefused):
            services.principal_of_key(wrong)
    ann.is_active = False
    ann.save()
    with pytest.raises(KeyRefused):
        services.principal_of_key(secret)
    assert not ApiKey.objects.editable_by(bea).exists()
    for scopes in ([], ["all"]):
        with pytest.raises(InvalidInput):
            services.create_api_key(workspace=acme, name="Key", scopes=scopes, actor=bea)


def test_a_key_makes_no_key_that_may_more(key_of, acme, ann):
    _, user = key_of(ann, "workspace:write")
    with pytest.raises(InvalidInput):
        services.create_api_key(workspace=acme, name="Key", scopes=["knowledge:write"], actor=user)


def test_a_widget_reads_what_was_shared_with_it(acme, handbook, secret, ann, mal):
    from uuid import uuid4

    visitor = Principal.widget(widget_id=uuid4(), workspace_id=acme.pk, visitor_id=uuid4())
    other = Principal.widget(widget_id=uuid4(), workspace_id=acme.pk, visitor_id=uuid4())
    assert not KnowledgeBase.objects.visible_to(visitor).exists()  # also not what is open to the workspace
    share(row=secret, subject=Subject(widget_id=visitor.widget_id), level="read", actor=ann)
    assert KnowledgeBase.objects.visible_to(visitor).get() == secret
    assert not KnowledgeBase.objects.editable_by(visitor).exists()
    assert not KnowledgeBase.objects.visible_to(other).exists()
    document(secret)
    shut = Document.objects.create(
        workspace=acme, knowledge_base=secret, name="b", size_bytes=1, sha256="1" * 64, restricted=True
    )
    assert Document.objects.visible_to(visitor).count() == 1
    share(row=shut, subject=Subject(widget_id=visitor.widget_id), level="read", actor=ann)
    assert Document.objects.visible_to(visitor).count() == 2
    services.sharing.forget_widget(widget_id=visitor.widget_id)
    assert not Document.objects.visible_to(visitor).exists()


def test_guardian_reads_the_grants_to_persons(secret, ann, bea):
    share(row=secret, subject=Subject(user=bea), level="read", actor=ann)
    assert bea.has_perm("read_knowledgebase", secret)
    assert not bea.has_perm("manage_knowledgebase", secret)


def test_nobody_is_nobody(handbook):
    for door in (KnowledgeBase.objects.visible_to, Document.objects.visible_to, Agent.objects.editable_by):
        assert not door(AnonymousUser()).exists()
    assert not ModelConfig.objects.visible_to(AnonymousUser()).exists()


def test_an_agent_and_a_base_work_with_no_model_that_their_maker_may_not_choose(acme, ann, max_, handbook):
    from apps.agents import editing
    from apps.knowledge.services import save_search_profile

    shut, open_ = (
        ModelConfig.objects.create(workspace=acme, kind=kind, name=name, restricted=name == "dear")
        for kind, name in (("chat", "dear"), ("chat", "cheap"))
    )
    reranker = ModelConfig.objects.create(workspace=acme, kind="rerank", name="dear", restricted=True)
    agent = editing.create_agent(workspace=acme, values={"name": "Max's", "model": shut.pk}, actor=max_)
    assert agent.model is None
    editing.save_agent(agent=agent, values={"model": shut.pk}, actor=ann)
    for values in ({"instructions": "Be short."}, {"model": shut.pk}):  # what a manager chose stays
        editing.save_agent(agent=agent, values=values, actor=max_)
        assert agent.model == shut
    editing.save_agent(agent=agent, values={"model": open_.pk}, actor=max_)
    editing.save_agent(agent=agent, values={"model": shut.pk}, actor=max_)
    assert agent.model is None
    wanted = {"rerank": "model", "rerank_model": str(reranker.pk)}
    with pytest.raises(InvalidInput):
        save_search_profile(knowledge_base=handbook, settings=wanted, actor=max_)
    save_search_profile(knowledge_base=handbook, settings=wanted, actor=ann)


def test_what_an_agent_is_told_is_for_those_who_may_change_it(acme, ann, bea, handbook, secret):
    from apps.agents import editing
    from tests.api.conftest import Caller

    values = {"name": "HR", "instructions": "Say nothing of Project Zebra.", "configuration": {"temperature": 1}}
    agent = editing.create_agent(workspace=acme, values=values, actor=ann)
    agent.knowledge_bases.set([handbook, secret])
    seen = {}
    for who in (ann, bea):
        api = Caller()
        api.force_login(who)
        one = api.get(f"agents/{agent.pk}").json()
        [listed] = [row for row in api.get("agents").json()["results"] if row["name"] == "HR"]
        assert one == listed
        seen[who.email[:3]] = (
            one["editable"],
            one["instructions"],
            one["configuration"],
            sorted(one["knowledge_bases"]),
        )
    assert seen == {
        "ann": (True, values["instructions"], values["configuration"], sorted([str(handbook.pk), str(secret.pk)])),
        "bea": (False, None, None, [str(handbook.pk)]),
    }
