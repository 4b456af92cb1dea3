"""System check: the queue must not hand a step out again while it still runs."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from apps.knowledge.sandbox.limits import Limits

LONGEST_READING_S = Limits().wall_s


@register()
def check_queue_times(**kwargs: Any) -> list[CheckMessage]:
    """Check retry > timeout > longest step, and that a finished task is taken off the queue whatever its end.

    With retry below timeout the queue gives a running task to a second worker. Claims keep that
    harmless, but it would burn attempts and models' money.
    """
    cluster: dict[str, Any] = settings.Q_CLUSTER
    retry, timeout = cluster.get("retry", 60), cluster.get("timeout")
    found: list[CheckMessage] = []
    if timeout is None or retry <= timeout:
        found.append(Error("Q_CLUSTER: retry must be larger than timeout.", id="knowsphere.E010"))
    if timeout is not None and timeout <= LONGEST_READING_S:
        message = f"Q_CLUSTER: timeout must be larger than the {LONGEST_READING_S:.0f} s that reading a file may take."
        found.append(Error(message, id="knowsphere.E011"))
    if not cluster.get("ack_failures"):
        hint = "A document's own state says what failed; the queue must not repeat it by itself."
        found.append(Error("Q_CLUSTER: ack_failures must be on.", hint=hint, id="knowsphere.E012"))
    return found
