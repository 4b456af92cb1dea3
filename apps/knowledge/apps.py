"""The knowledge app."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class KnowledgeConfig(AppConfig):
    """Registers the system checks, and the look-around that each worker begins with."""

    name = "apps.knowledge"
    verbose_name = _("Knowledge")

    def ready(self) -> None:
        from django_q.signals import post_spawn

        from apps.knowledge import checks  # noqa: F401
        from apps.models.users import USERS
        from apps.workspaces.erasing import OF_WORKSPACES
        from apps.workspaces.exporting import EXPORTERS

        USERS.register("knowledge", "apps.knowledge.model_users.find_in_knowledge_bases")
        OF_WORKSPACES.register("knowledge", "apps.knowledge.ending.erase_workspace")
        EXPORTERS.register("knowledge", "apps.knowledge.ending.export")

        post_spawn.connect(_look_around, dispatch_uid="knowledge-look-around")
        post_migrate.connect(_schedule, sender=self, dispatch_uid="knowledge-schedules")


def _look_around(**kwargs: Any) -> None:
    """Take up what a killed worker left, before the first task. The minute's schedule does the rest."""
    from apps.knowledge import tasks

    tasks.sweep_at_start()


def _schedule(**kwargs: Any) -> None:
    """Have the sweepers run for good: after each ``migrate``, and after a ``flush`` too."""
    from apps.knowledge import tasks

    tasks.schedule_sweepers()
