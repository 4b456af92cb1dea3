"""services.delete_model: what uses a model keeps it, and is named to those who may see it."""

import pytest

from apps.agents.models import Agent
from apps.agents.services import default_agent
from apps.common.errors import InvalidInput, NotFound
from apps.evals.keeping import create_dataset
from apps.evals.models import EvalRun
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services.moving import dismiss_move
from apps.knowledge.services.searching import save_search_profile
from apps.models.errors import ModelInUse
from apps.models.models import ModelConfig
from apps.models.resolution import from_row
from apps.models.services import add_model, change_model, delete_model
from apps.models.users import USERS
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


def test_the_model_that_a_base_is_moving_to_stays_until_the_move_is_dismissed(add, handbook, ann):
    model = add(kind="embedding")
    move = {"embedding_model": "builtin:multilingual-e5-small", "next_model": "openai_compatible:embedding-m"}
    KnowledgeBase.objects.filter(pk=handbook.pk).update(**move)
    assert refused(model, ann)[:2] == ([("knowledge_base", "Handbook")], 0)
    dismiss_move(knowledge_base=handbook, actor=ann)
    delete_model(model=model, actor=ann)


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


def test_an_evaluation_that_is_over_holds_no_model_and_keeps_its_name(add, acme, ann):
    create_dataset(workspace=acme, name="Greetings", kind="intent", actor=ann)
    model = add()
    reference = from_row(model).reference
    run = EvalRun.objects.create(
        workspace=acme, kind="intent", dataset="Greetings", n=1, scored=1, failed=0, seconds=1,
        configuration={"model": reference},
    )  # fmt: skip
    delete_model(model=model, actor=ann)
    run.refresh_from_db()
    assert run.configuration == {"model": reference}


def test_every_app_with_rows_that_point_at_a_model_says_which_use_it():
    relations = ModelConfig._meta.get_fields(include_hidden=True)
    pointing = {field.related_model._meta.app_label for field in relations if field.auto_created and field.is_relation}
    assert pointing <= set(USERS)
