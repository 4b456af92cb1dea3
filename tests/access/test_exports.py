"""Files of a workspace are streamed by threads with connections of their own: only what is committed can be asked."""

import pytest
from django.urls import reverse

from tests.access.personas import PERSONAS, RUN, row
from tests.access.test_routes import names_acme, sent
from tests.api.conftest import Caller

EXPORTS = {
    "workspaces:export-workspace": RUN,
    "workspaces:export-audit-log": RUN,
    "api:export-audit-events": row(403, 200, nobody=401, key=200),
}


@pytest.mark.django_db(transaction=True)
def test_what_is_streamed_of_a_workspace_leaves_by_those_who_run_it_alone(world):
    wrong = []
    for persona in PERSONAS:
        pages, api = world.enter(persona), world.enter(persona, Caller)
        for route, expected in EXPORTS.items():
            asked = {"workspace": str(world.acme.pk)} if route.startswith("api:") else {}
            answer = (api if asked else pages).get(world.path(route), asked)
            found = (answer.status_code, answer.streaming, names_acme(sent(answer)))
            if found != (expected[persona], expected[persona] == 200, expected[persona] == 200):
                wrong.append((persona, route, found))
    assert wrong == []


@pytest.mark.django_db(transaction=True)
def test_the_log_of_another_tenant_holds_nothing_of_acme(world):
    own = sent(world.enter("other", Caller).get(reverse("api:export-audit-events")))
    assert own.splitlines()
    assert not names_acme(own)
