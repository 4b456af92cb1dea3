"""People, workspaces, and who may do what."""

from django.apps import AppConfig


class WorkspacesConfig(AppConfig):
    """The app of tenants."""

    name = "apps.workspaces"
