"""The queue of background work: django-q's own table, written without the ORM where most of its rows come from."""

from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from apps.common.database import run

ADD = "INSERT INTO django_q_ormq (key, payload, lock) VALUES (%s, %s, %s) RETURNING id"


class Broker(ORM):
    """django-q's broker for a database; a task goes into the transaction that queues it."""

    def enqueue(self, task: str) -> int:
        """Add a signed task; return its row's id."""
        [(row,)] = run(ADD, [self.list_key or Conf.CLUSTER_NAME, task, timezone.now()])
        return int(row)
