"""Routes of agents, inside a workspace."""

from django.urls import path

from apps.agents import views

app_name = "agents"
AGENT, VERSION = "agents/<uuid:agent_id>/", "agents/versions/<uuid:version_id>/"
urlpatterns = [
    path("agents/", views.list_agents, name="list-agents"),
    path("agents/new/", views.create_agent, name="create-agent"),
    path(AGENT, views.edit_agent, name="edit-agent"),
    path(f"{AGENT}duplicate/", views.duplicate_agent, name="duplicate-agent"),
    path(f"{AGENT}default/", views.make_default, name="make-default"),
    path(f"{AGENT}delete/", views.delete_agent, name="delete-agent"),
    path(VERSION, views.show_version, name="show-version"),
    path(f"{VERSION}restore/", views.restore_version, name="restore-version"),
]
