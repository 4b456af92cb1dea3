"""People, workspaces, and who may do what."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class WorkspacesConfig(AppConfig):
    """The app of tenants."""

    name = "apps.workspaces"
    verbose_name = _("Workspaces")

    def ready(self) -> None:
        from apps.common.rotation import HOLDERS
        from apps.workspaces.tasks import schedule_sweeper

        HOLDERS.register("second steps", "apps.workspaces.accounts.second_steps")
        post_migrate.connect(schedule_sweeper, sender=self, dispatch_uid="workspaces-schedule")
