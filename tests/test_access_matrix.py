"""Who may reach what. A route that is not in the table fails the build until someone decides.

Each row: method, route, and the status for nobody (signed out), mal (another tenant), bea (viewer)
and ann (owner). Routes take their arguments from ``arguments``.
"""

import pytest
from django.urls import URLPattern, get_resolver, reverse

PERSONAS = ("nobody", "mal", "bea", "ann")
EXPECTED = {
    ("get", "healthz"): (200, 200, 200, 200),
    ("get", "readyz"): (200, 200, 200, 200),
    ("post", "set_language"): (302, 302, 302, 302),
    ("get", "workspaces:home"): (302, 200, 200, 200),
}


def our_routes(patterns, prefix=""):
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}"
        elif pattern.app_name != "admin":
            yield from our_routes(pattern.url_patterns, f"{pattern.app_name}:" if pattern.app_name else "")


def test_every_route_is_in_the_table():
    routes = {route for route in our_routes(get_resolver().url_patterns) if not route.startswith("account_")}
    assert routes == {route for _, route in EXPECTED}


@pytest.fixture
def arguments(acme, handbook):
    """The arguments of each route that takes any; all name things of acme."""
    return {}


@pytest.mark.parametrize(("method", "route"), EXPECTED)
@pytest.mark.parametrize("persona", PERSONAS)
def test_answers_as_the_table_says(client, arguments, request, method, route, persona):
    if persona != "nobody":
        client.force_login(request.getfixturevalue(persona))
    response = getattr(client, method)(reverse(route, kwargs=arguments.get(route)))
    assert response.status_code == EXPECTED[method, route][PERSONAS.index(persona)]
