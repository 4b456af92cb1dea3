"""The API does what its own description says: schemathesis draws requests from it and checks the answers."""

from collections import Counter

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

FITTING, WRONG = 3, 2  # requests drawn for each operation: enough for its shapes, bounded in time
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OUTSIDE = {"post_test_model"}  # calls a model somewhere
LAST = {"delete": 1}  # what reads and changes needs the things still


@pytest.fixture(scope="module")
def things(people):
    """One thing of every kind, so that addresses with an id lead somewhere."""
    from apps.knowledge.services import create_knowledge_base
    from tests.api.world import furnish

    base = create_knowledge_base(workspace=people.acme, name="Handbook", actor=people.ann)
    return {name: str(value) for name, value in vars(furnish(people.acme, people.ann, people.bea, base)).items()}


@pytest.mark.timeout(900)  # a thousand requests, on a machine that may be busy
def test_answers_are_as_described(address, secret, things, settings):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": dict.fromkeys(("key", "person", "workspace"), "1000000/min"),
    }
    schema = schemathesis.openapi.from_url(f"{address}/api/v1/schema/")
    schema.config.update(base_url=address)
    operations = sorted((found.ok() for found in schema.get_all_operations()), key=lambda one: LAST.get(one.method, 0))
    answered = Counter()
    for operation in operations:
        if operation.definition.raw["operationId"] in OUTSIDE:
            continue
        draw(operation, GenerationMode.POSITIVE, FITTING, secret, things, answered)
        if operation.body:
            draw(operation, GenerationMode.NEGATIVE, WRONG, secret, things, answered)
    assert sum(answered.values()) > 150
    assert sum(count for status, count in answered.items() if status < 300) > 60, answered


def draw(operation, mode, examples, secret, things, answered):
    @hypothesis.seed(20261130)
    @hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def answers(case):
        case.path_parameters = {name: things[name] for name in case.path_parameters or {}}
        answer = case.call(headers={"Authorization": f"Bearer {secret}"}, timeout=60)
        answered[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    answers()
