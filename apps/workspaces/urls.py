"""Routes of workspaces."""

from django.urls import path

from apps.workspaces import views

app_name = "workspaces"
urlpatterns = [
    path("", views.home, name="home"),
    path("new/", views.create_workspace, name="create-workspace"),
]
