"""Agents as a team makes them: form, versions, going back, duplicates, the log of questions."""

from uuid import uuid4

import pytest
from django.urls import reverse

from apps.agents import editing
from apps.agents.bindings import bind
from apps.agents.models import Agent
from apps.agents.services import default_agent
from apps.common.database import wait_for
from apps.conversations.models import Conversation, Turn
from apps.knowledge.models import KnowledgeBase, MetadataField
from apps.knowledge.services import create_folder
from apps.models.models import ModelConfig
from apps.workspaces.models import Role
from apps.workspaces.services import Subject, set_membership, share

VALUES = {
    "name": "HR",
    "instructions": "Answer as HR does.\nBe short.",
    "opening_questions": "How long is leave?\n\nWho approves it?",
    "language": "zh-hans",
    "tools": ["doc_retrieval", "list_chunks"],
    "memory": "on",
    "temperature": "0.3",
    "max_tokens": "900",
    "thinking": "off",
    "rounds": "4",
    "tokens": "50000",
    "tags": "policy, 制度",
    "added_from": "2026-01-02",
}


def url(name, *args):
    return reverse(f"agents:{name}", args=["acme", *args])


@pytest.fixture
def signed_in(client, ann, acme):
    client.force_login(ann)
    return client


def test_an_agent_is_made_shown_saved_and_used(signed_in, ann, acme, handbook):
    model = ModelConfig.objects.create(workspace=acme, kind="chat", name="m", base_url="http://127.0.0.1:9/v1")
    values = {**VALUES, "knowledge_bases": [handbook.pk], "model": model.pk}
    answer = signed_in.post(url("create-agent"), values)
    agent = Agent.objects.get(name="HR")
    assert answer["Location"] == url("edit-agent", agent.pk)
    assert agent.opening_questions == ["How long is leave?", "Who approves it?"]
    assert agent.configuration == {
        "temperature": 0.3, "max_tokens": 900, "thinking": False, "budget": {"rounds": 4, "tokens": 50000},
        "filters": {"tags": ["policy", "制度"], "added_from": "2026-01-02"},
    }  # fmt: skip
    assert (agent.memory, agent.all_knowledge_bases, agent.language) == (True, False, "zh-hans")
    assert [version.number for version in agent.versions.all()] == [1]
    page = signed_in.get(url("edit-agent", agent.pk)).content.decode()
    assert "Answer as HR does." in page
    assert 'value="0.3"' in page
    assert "How long is leave?" in page
    assert ">Handbook</span>" in page
    assert f"knowledge base {handbook.pk}" not in page
    assert f'<option value="{model.pk}" selected>m</option>' in page
    listed = signed_in.get(url("list-agents")).content.decode()
    assert "HR" in listed
    assert f"agent={agent.pk}" in listed
    new = signed_in.get(f"{reverse('conversations:new-question', args=['acme'])}?agent={agent.pk}").content.decode()
    assert f'name="agent" value="{agent.pk}"' in new
    assert "Who approves it?" in new


def test_what_an_agent_looks_at_is_narrowed_and_what_its_form_does_not_show_stays(signed_in, ann, acme, handbook):
    MetadataField.objects.create(knowledge_base=handbook, key="year", type="number")
    folder = create_folder(knowledge_base=handbook, name="Rules", actor=ann)
    hidden, gone = str(uuid4()), {"field": "of another base", "op": "eq", "value": 1}
    agent = default_agent(acme)
    agent.configuration = {"filters": {"folders": [hidden], "documents": [hidden], "metadata": [gone]}}
    agent.save()
    fact = {"fact_1_0": "year", "fact_1_1": "gte", "fact_1_2": "2024"}
    values = {**VALUES, "folders": [folder.pk], "added_to": "2026-03-04", **fact}
    assert signed_in.post(url("edit-agent", agent.pk), values).status_code == 302
    agent.refresh_from_db()
    year = {"field": "year", "op": "gte", "value": 2024}
    assert agent.configuration["filters"] == {
        "tags": ["policy", "制度"], "added_from": "2026-01-02", "added_to": "2026-03-04",
        "folders": [str(folder.pk), hidden], "documents": [hidden], "metadata": [year, gone],
    }  # fmt: skip
    page = signed_in.get(url("edit-agent", agent.pk)).content.decode()
    assert f'<option value="{folder.pk}" selected>Handbook / Rules</option>' in page
    assert '<option value="gte" selected>' in page
    assert 'value="2024"' in page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "This field is required"),
        ({"name": "Assistant"}, "already"),
        ({"temperature": "3"}, "less than or equal to 2"),
        ({"max_tokens": "1"}, "greater than or equal to 64"),
        ({"tools": ["rm"]}, "not one of the available choices"),
        ({"tools": ["get_stored_data"]}, "not one of the available choices"),
        ({"opening_questions": "a\n" * 7}, "At most six questions"),
        ({"rounds": "21"}, "less than or equal to 20"),
    ],
)
def test_what_does_not_fit_comes_back_with_its_field(signed_in, acme, change, said):
    default_agent(acme)
    answer = signed_in.post(url("create-agent"), {**VALUES, **change})
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert Agent.objects.count() == 1


def test_foreign_bases_and_models_are_not_taken(signed_in, mal, acme):
    theirs = mal.workspaces.get()
    base = KnowledgeBase.objects.create(workspace=theirs, name="Secret")
    model = ModelConfig.objects.create(workspace=theirs, kind="chat", name="m", base_url="http://127.0.0.1:9/v1")
    for change in ({"knowledge_bases": [base.pk]}, {"model": model.pk}):
        assert signed_in.post(url("create-agent"), {**VALUES, **change}).status_code == 422
    assert not Agent.objects.filter(name="HR").exists()


def test_what_others_chose_stays_where_an_editor_cannot_see_it(client, ann, bea, acme, handbook):
    """The page tells neither its name nor loses it; choosing another does what it says."""
    set_membership(workspace=acme, user=bea, role=Role.MEMBER)
    model = ModelConfig.objects.create(
        workspace=acme, kind="chat", name="board-only", base_url="http://127.0.0.1:9/v1", restricted=True
    )
    secret = KnowledgeBase.objects.create(workspace=acme, name="Board minutes", restricted=True)
    chosen = {**VALUES, "model": model.pk, "knowledge_bases": [handbook.pk, secret.pk]}
    client.force_login(ann)
    client.post(url("create-agent"), chosen)
    agent = Agent.objects.get(name="HR")
    share(row=agent, subject=Subject(user=bea), level="manage", actor=ann)
    client.force_login(bea)
    page = client.get(url("edit-agent", agent.pk)).content.decode()
    assert "board-only" not in page
    assert "Board minutes" not in page
    assert f'value="{model.pk}" selected' in page
    client.post(url("edit-agent", agent.pk), {**VALUES, "name": "HR 2", "model": model.pk, "knowledge_bases": []})
    agent.refresh_from_db()
    assert (agent.name, agent.model) == ("HR 2", model)
    assert set(agent.knowledge_bases.all()) == {secret}
    ModelConfig.objects.filter(pk=model.pk).update(enabled=False)
    client.force_login(ann)
    assert "board-only" in client.get(url("edit-agent", agent.pk)).content.decode()  # switched off, and hers to see
    client.force_login(bea)
    client.post(url("edit-agent", agent.pk), {**VALUES, "knowledge_bases": [handbook.pk]})
    agent.refresh_from_db()
    assert agent.model is None
    assert set(agent.knowledge_bases.all()) == {handbook, secret}


def test_versions_differ_and_can_be_gone_back_to(signed_in, ann, acme):
    agent = editing.create_agent(workspace=acme, values={"name": "HR", "instructions": "One.\nTwo."}, actor=ann)
    editing.save_agent(agent=agent, values={"instructions": "One.\nThree.", "tools": ["doc_retrieval"]}, actor=ann)
    editing.save_agent(agent=agent, values={"instructions": "One.\nThree."}, actor=ann)  # nothing changed
    assert [version.number for version in agent.versions.all()] == [2, 1]
    first = agent.versions.get(number=1)
    page = signed_in.get(url("show-version", first.pk)).content.decode()
    assert '<span data-d="-">- Three.</span>' in page
    assert '<span data-d="+">+ Two.</span>' in page
    signed_in.post(url("restore-version", first.pk))
    agent.refresh_from_db()
    assert (agent.instructions, agent.tools) == ("One.\nTwo.", [])
    assert [version.number for version in agent.versions.all()] == [3, 2, 1]


def test_what_a_version_changes_is_told_by_names_of_what_the_reader_may_see(client, ann, bea, acme, handbook):
    set_membership(workspace=acme, user=bea, role=Role.MEMBER)
    secret = KnowledgeBase.objects.create(workspace=acme, name="Board minutes", restricted=True)
    agent = editing.create_agent(workspace=acme, values={"name": "HR"}, actor=ann)
    editing.save_agent(agent=agent, values={"knowledge_bases": [handbook.pk, secret.pk]}, actor=ann)
    share(row=agent, subject=Subject(user=bea), level="manage", actor=ann)
    first = agent.versions.get(number=1)
    for person, names in ((ann, {"Handbook", "Board minutes"}), (bea, {"Handbook", "something that you may not see"})):
        client.force_login(person)
        page = client.get(url("show-version", first.pk)).content.decode()
        assert "Only these knowledge bases" in page
        assert {
            name for name in ("Handbook", "Board minutes", "something that you may not see") if name in page
        } == names
        assert str(secret.pk) not in page


def test_a_duplicate_a_new_default_and_a_deletion(signed_in, ann, acme):
    default = default_agent(acme)
    agent = editing.create_agent(workspace=acme, values={"name": "HR", "instructions": "One."}, actor=ann)
    signed_in.post(url("duplicate-agent", agent.pk))
    copy = Agent.objects.get(name="HR 2")
    assert copy.instructions == "One."
    assert signed_in.post(url("delete-agent", default.pk)).status_code == 409
    signed_in.post(url("make-default", copy.pk))
    assert list(Agent.objects.filter(is_default=True)) == [copy]
    talk = Conversation.objects.create(workspace=acme, owner=ann, agent=agent)
    signed_in.post(url("delete-agent", agent.pk))
    assert not Agent.objects.filter(pk=agent.pk).exists()
    assert Conversation.objects.filter(pk=talk.pk, agent=None).exists()


def test_the_log_shows_unanswered_questions_first_to_those_who_may_change_the_agent(client, ann, bea, acme):
    agent = editing.create_agent(workspace=acme, values={"name": "HR"}, actor=ann)
    theirs = Conversation.objects.create(workspace=acme, owner=bea, agent=agent)
    other = Conversation.objects.create(workspace=acme, owner=bea)
    for number, (talk, question, status, usage) in enumerate(
        [
            (theirs, "Where is the canteen?", "succeeded", {"answered": False}),
            (theirs, "How long is leave?", "succeeded", {"answered": True}),
            (theirs, "Hello", "succeeded", {"answered": None}),
            (other, "Not for HR", "succeeded", {"answered": False}),
        ],
        start=1,
    ):
        Turn.objects.create(
            conversation=talk, number=number, client_id=str(number), status=status, question=question, usage=usage
        )
    client.force_login(ann)
    page = client.get(reverse("conversations:list-agent-questions", args=["acme", agent.pk])).content.decode()
    assert page.index("Where is the canteen?") < page.index("Hello") < page.index("How long is leave?")
    assert "Not for HR" not in page
    assert bea.email not in page
    client.force_login(bea)
    assert client.get(reverse("conversations:list-agent-questions", args=["acme", agent.pk])).status_code == 404


def test_members_make_agents_and_viewers_ask_them(client, acme, ann, bea):
    client.force_login(bea)
    assert client.get(url("create-agent")).status_code == 403
    set_membership(workspace=acme, user=bea, role=Role.MEMBER)
    assert client.post(url("create-agent"), VALUES).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_an_agents_settings_reach_the_turn(ann, acme, handbook):
    from uuid import uuid4

    from apps.agents.turn import AskOptions, TurnRequest
    from apps.workspaces.principals import Principal

    values = {
        "name": "HR", "memory": False, "language": "en",
        "configuration": {"temperature": 0.3, "max_tokens": 900, "thinking": False, "budget": {"rounds": 4}},
    }  # fmt: skip
    agent = editing.create_agent(workspace=acme, values=values, actor=ann)
    request = TurnRequest(
        turn_id=uuid4(), conversation_id=uuid4(), workspace_id=acme.pk, asker=Principal.of(ann), agent_id=agent.pk,
        question="What?", options=AskOptions(), history=None,
    )  # fmt: skip
    bound = wait_for(bind, request)
    assert (bound.agent.temperature, bound.agent.max_tokens, bound.agent.thinking) == (0.3, 900, False)
    assert (bound.agent.memory, bound.agent.language, bound.limits) == (False, "en", {"rounds": 4})
    assert bound.background == ()
