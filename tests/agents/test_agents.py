"""Agents: the default one, and what operators see."""

import pytest
from django.urls import reverse

from apps.agents.models import Agent
from apps.agents.services import DEFAULT_TOOLS, default_agent


def test_the_default_agent_is_made_once(acme):
    agent = default_agent(acme)
    assert default_agent(acme) == agent
    assert (agent.is_default, agent.all_knowledge_bases, tuple(agent.tools)) == (True, True, DEFAULT_TOOLS)


def test_its_name_may_be_taken(acme):
    Agent.objects.create(workspace=acme, name="Assistant")
    assert default_agent(acme).name == "Assistant 1"


@pytest.mark.parametrize("model", ["agents_agent", "memory_memoryitem"])
def test_operators_see_no_content(admin_client, acme, ann, model):
    from apps.memory.services import store_items

    agent = default_agent(acme)
    Agent.objects.filter(pk=agent.pk).update(name="Secret name", instructions="Secret orders")
    store_items(workspace=acme, texts=["Secret fact"], actor=ann)
    pages = [admin_client.get(reverse(f"admin:{model}_changelist")).content.decode()]
    if model == "agents_agent":
        pages.append(admin_client.get(reverse("admin:agents_agent_change", args=[agent.pk])).content.decode())
    assert all("Secret" not in page for page in pages)
    assert str(agent.pk) in pages[0] or model != "agents_agent"
