"""services.delete_model: what uses a model keeps it, and is named to those who may see it."""

import pytest

from apps.agents.models import Agent
from apps.agents.services import default_agent
from apps.common.errors import InvalidInput, NotFound
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services.searching import save_search_profile
from apps.models.errors import ModelInUse
from apps.models.models import ModelConfig
from apps.models.services import add_model, change_model, delete_model
from apps.workspaces.models import User


@pytest.fixture
def add(acme, ann, vendor):
    def add(kind="chat", workspace=acme, actor=ann, **more):
        return add_model(workspace=workspace, kind=kind, name=f"{kind}-m", base_url=vendor.url, actor=actor, **more)

    return add


def refused(model, actor):
    with pytest.raises(ModelInUse) as refusal:
        delete_model(model=model, actor=actor)
    assert ModelConfig.objects.filter(pk=model.pk).exists()
    details = refusal.value.details
    return [(use["kind"], use["name"]) for use in details["users"]], details["hidden"], refusal.value.message


def test_a_model_that_nothing_uses_goes(add, ann, bea, mal):
    model = add()
    for stranger in (bea, mal):
        with pytest.raises(NotFound):
            delete_model(model=model, actor=stranger)
    delete_model(model=model, actor=ann)
    assert not ModelConfig.objects.exists()


def test_a_default_stays(add, ann):
    assert refused(add(is_default=True), ann)[0] == [("default", "Answering questions")]


def test_an_agents_model_stays(add, acme, ann):
    model = add()
    agent = default_agent(acme)
    Agent.objects.filter(pk=agent.pk).update(model=model, name="Helper")
    users, hidden, message = refused(model, ann)
    assert (users, hidden) == ([("agent", "Helper")], 0)
    assert "“Helper”" in message


def test_the_model_of_a_bases_vectors_stays(add, handbook, ann):
    model = add(kind="embedding")
    KnowledgeBase.objects.filter(pk=handbook.pk).update(embedding_model="openai_compatible:embedding-m")
    assert refused(model, ann)[:2] == ([("knowledge_base", "Handbook")], 0)


def test_the_name_under_which_a_base_holds_vectors_stays_too(add, handbook, ann):
    model = add(kind="embedding")
    KnowledgeBase.objects.filter(pk=handbook.pk).update(embedding_model="openai_compatible:embedding-m")
    with pytest.raises(InvalidInput):
        change_model(model=model, actor=ann, name="another")
    change_model(model=ModelConfig.objects.get(pk=model.pk), actor=ann, name="embedding-m ", enabled=False)
    KnowledgeBase.objects.filter(pk=handbook.pk).update(embedding_model="")
    change_model(model=ModelConfig.objects.get(pk=model.pk), actor=ann, name="another")


def test_the_reranker_that_a_base_names_stays(add, handbook, ann):
    model = add(kind="rerank")
    saved = {"rerank": "model", "rerank_model": str(model.pk)}
    save_search_profile(knowledge_base=handbook, settings=saved, actor=ann)
    assert refused(model, ann)[:2] == ([("knowledge_base", "Handbook")], 0)
    save_search_profile(knowledge_base=handbook, settings={}, actor=ann)
    delete_model(model=model, actor=ann)


def test_a_stand_in_stays(add, ann):
    first, second = add(), add()
    change_model(model=first, actor=ann, fallback=second)
    assert refused(second, ann)[0] == [("model", "chat-m")]
    delete_model(model=first, actor=ann)
    delete_model(model=second, actor=ann)


def test_what_the_actor_may_not_see_is_counted_and_not_named(add, handbook):
    root = User.objects.create_superuser("root@example.com", "correct horse battery")
    model = add(kind="embedding", workspace=None, actor=root)
    KnowledgeBase.objects.filter(pk=handbook.pk).update(embedding_model="openai_compatible:embedding-m")
    users, hidden, message = refused(model, root)
    assert (users, hidden) == ([], 1)
    assert "Handbook" not in message
