"""The OpenAI-compatible endpoint, by the official client."""

import openai
import pytest

from tests.conversations import scripted


@pytest.fixture
def client(address, secret):
    with openai.OpenAI(base_url=f"{address}/v1", api_key=secret, max_retries=0, timeout=60) as client:
        yield client


def ask(client, *texts, **more):
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    return client.chat.completions.create(model="Assistant", messages=messages, **more)


def test_each_agent_is_a_model(client, people):
    from apps.agents.models import Agent
    from apps.agents.services import default_agent

    agent = default_agent(people.acme)
    listed = list(client.models.list())
    assert [model.id for model in listed] == [agent.name]
    assert client.models.retrieve(agent.name).id == agent.name
    assert client.models.retrieve(str(agent.pk)).id == agent.name
    assert Agent.objects.filter(workspace=people.acme).count() == 1


def test_an_answer_with_its_sources_as_annotations(client):
    whole = ask(client, "cite 3")
    message = whole.choices[0].message
    assert (message.content, whole.choices[0].finish_reason) == (scripted.ANSWER, "stop")
    assert whole.usage.prompt_tokens == 3
    cited = [note.url_citation for note in message.annotations]
    assert [message.content[note.start_index : note.end_index] for note in cited] == ["[[c2]]", "[[c1]]", "[[c2]]"]
    assert cited[1].title == "Travel policy.pdf"
    assert "/sources/1" in cited[1].url


def test_a_stream_carries_the_same(client):
    text, notes, usage = "", [], None
    for chunk in ask(client, "cite 3", stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            notes += getattr(choice.delta, "annotations", None) or []
    assert (text, len(notes), usage.prompt_tokens) == (scripted.ANSWER, 3, 3)


def test_a_history_that_is_sent_again_is_one_conversation_and_a_changed_one_a_branch(client, people):
    from apps.conversations.models import Conversation, Turn

    before = Conversation.objects.count()
    first = ask(client, "say 3").choices[0].message.content
    second = ask(client, "say 3", first, "say 4")
    again = ask(client, "say 3", first, "say 5")
    assert Conversation.objects.count() == before + 1
    turns = Turn.objects.filter(conversation=second.knowsphere["conversation"]).order_by("number")
    assert [(turn.question, turn.parent and turn.parent.number) for turn in turns] == [
        ("say 3", None),
        ("say 4", 1),
        ("say 5", 1),
    ]
    assert again.knowsphere["conversation"] == second.knowsphere["conversation"]
    # a history that took place elsewhere is taken over, and given to the agent
    told = ask(client, "Who are you?", "A friend.", "history")
    assert "A friend." in told.choices[0].message.content
    assert Conversation.objects.count() == before + 2


def test_what_goes_wrong_has_the_clients_own_shape(client, address):
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "x"}])
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        client.chat.completions.create(model="Assistant", messages=[{"role": "assistant", "content": "x"}])
    assert refused.value.code == "messages_refused"
    with pytest.raises(openai.InternalServerError) as crashed:
        ask(client, "crash")
    assert crashed.value.code == "turn_crashed"
    with pytest.raises(openai.APIError) as midway:
        list(ask(client, "crash", stream=True))
    assert midway.value.code == "turn_crashed"
    stranger = openai.OpenAI(base_url=f"{address}/v1", api_key="ks_no", max_retries=0)
    with pytest.raises(openai.AuthenticationError) as unknown:
        stranger.models.list()
    assert unknown.value.code == "key_refused"


def test_a_stream_that_nobody_reads_any_more_is_stopped(client, over):
    stream = ask(client, "wait", stream=True)
    chunks = iter(stream)
    turn = next(chunk for chunk in chunks if chunk.choices[0].delta.content).knowsphere["turn"]
    stream.close()
    assert over({"id": turn})["status"] == "stopped"
