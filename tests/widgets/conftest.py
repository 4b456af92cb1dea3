"""A widget of acme that reads the handbook, and a visitor of it."""

import pytest


@pytest.fixture
def widget(acme, ann, handbook):
    from apps.agents.services import default_agent
    from apps.widgets import services

    widget = services.create_widget(
        workspace=acme, actor=ann, name="Shop", origins=["https://shop.example"], sources="excerpts"
    )
    services.set_reach(widget=widget, agent=default_agent(acme), bases=[handbook], actor=ann)
    return widget


@pytest.fixture
def visitor(widget):
    """A visitor with their token."""
    from apps.widgets import services, tokens

    return services.open_session(widget=widget, ticket=tokens.make_ticket(widget, "https://shop.example"))
