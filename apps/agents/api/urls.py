"""Addresses of agents in the API."""

from django.urls import path

from apps.agents.api import views

urlpatterns = [
    path("agents/", views.Agents.as_view(), name="agents"),
    path("agents/<uuid:agent_id>/", views.OneAgent.as_view(), name="agent"),
    path("agents/<uuid:agent_id>/shares/", views.SharesOfAgent.as_view(), name="shares-of-agent"),
    path(
        "agents/<uuid:agent_id>/shares/<uuid:share_id>/",
        views.OneShareOfAgent.as_view(),
        name="share-of-agent",
    ),
]
