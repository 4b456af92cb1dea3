"""The knowledge app."""

from typing import Any

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """Registers the system checks, and the look-around that each worker begins with."""

    name = "apps.knowledge"

    def ready(self) -> None:
        from django_q.signals import post_spawn

        from apps.knowledge import checks  # noqa: F401
        from apps.models.users import USERS

        USERS.register("knowledge", "apps.knowledge.model_users.find_in_knowledge_bases")

        post_spawn.connect(_look_around, dispatch_uid="knowledge-look-around")


def _look_around(**kwargs: Any) -> None:
    """Take up what a killed worker left, before the first task. The minute's schedule does the rest."""
    from apps.knowledge import tasks

    tasks.sweep_at_start()
