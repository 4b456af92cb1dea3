"""acme, furnished, for the tests of one function: it is built once and every visit is undone."""

import pytest

from tests.access.world import World


@pytest.fixture
def world(acme, ann, bea, mal, handbook):
    return World(acme, ann, bea, mal, handbook)
