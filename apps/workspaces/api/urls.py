"""Addresses of people and workspaces in the API."""

from django.urls import path

from apps.workspaces.api import people

WORKSPACE = "workspaces/<uuid:workspace_id>/"
urlpatterns = [
    path("workspaces/", people.Workspaces.as_view(), name="workspaces"),
    path(WORKSPACE, people.OneWorkspace.as_view(), name="workspace"),
    path(f"{WORKSPACE}members/", people.Members.as_view(), name="members"),
    path(f"{WORKSPACE}departments/", people.Departments.as_view(), name="departments"),
    path(f"{WORKSPACE}departments/<uuid:department_id>/", people.OneDepartment.as_view(), name="department"),
    path(f"{WORKSPACE}api-keys/", people.ApiKeys.as_view(), name="api-keys"),
    path(f"{WORKSPACE}api-keys/<uuid:key_id>/", people.OneApiKey.as_view(), name="api-key"),
]
