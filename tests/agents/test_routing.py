"""The routing table, in full."""

from itertools import product

import pytest

from apps.agents.routing import INTENTS, Route, route

GENERATE, AGENT = Route("generate"), Route("agent")
NO_BASE, WEB_OFF = Route("generate", "no_base"), Route("generate", "web_off")

# intent: (no base, web off) (no base, web on) (base, web off) (base, web on)
TABLE = {
    "greeting": (GENERATE, GENERATE, GENERATE, GENERATE),
    "chitchat": (GENERATE, GENERATE, GENERATE, GENERATE),
    "image_only": (GENERATE, GENERATE, GENERATE, GENERATE),
    "doc_only": (GENERATE, GENERATE, GENERATE, GENERATE),
    "kb_search": (NO_BASE, NO_BASE, AGENT, AGENT),
    "summarize": (NO_BASE, NO_BASE, AGENT, AGENT),
    "clarification": (NO_BASE, NO_BASE, AGENT, AGENT),
    "web_search": (WEB_OFF, AGENT, AGENT, AGENT),
}
SWITCHES = list(product((False, True), repeat=2))


def test_the_table_names_every_intent():
    assert set(TABLE) == INTENTS


@pytest.mark.parametrize("intent", TABLE)
@pytest.mark.parametrize("column", range(4))
def test_row(intent, column):
    has_base, web = SWITCHES[column]
    assert route(intent, has_base=has_base, web=web) == TABLE[intent][column]


@pytest.mark.parametrize("intent", TABLE)
@pytest.mark.parametrize("column", range(4))
def test_a_professional_tool_takes_every_intent_but_the_skipped(intent, column):
    has_base, web = SWITCHES[column]
    skipped = intent in {"greeting", "chitchat", "image_only", "doc_only"}
    assert route(intent, has_base=has_base, web=web, professional_tool=True) == (GENERATE if skipped else AGENT)


def test_an_unknown_intent_is_a_question_about_knowledge():
    assert route("nonsense", has_base=True, web=False) == AGENT
    assert route("nonsense", has_base=False, web=True) == NO_BASE
