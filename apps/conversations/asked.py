"""What an agent was asked, for those who may change it: the questions without an answer first."""

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from apps.agents.models import Agent
from apps.conversations.models import Turn

UNANSWERED = Q(usage__answered=False) | Q(status__in=(Turn.Status.FAILED, Turn.Status.INTERRUPTED))


def questions_of(agent: Agent) -> QuerySet[Turn]:
    """Return the turns of an agent that came through ``editable_by``, unanswered first, then the newest.

    Who asked is not part of it: the log shows what is missing in the documents, not who does not know it.
    """
    theirs = Q(conversation__agent=agent)
    if agent.is_default:
        theirs |= Q(conversation__agent=None)
    turns = Turn.objects.filter(theirs, conversation__workspace=agent.workspace, conversation__deleted_at=None)
    missing = Case(When(UNANSWERED, then=Value(0)), default=Value(1), output_field=IntegerField())
    return turns.exclude(status__in=Turn.ACTIVE).annotate(answered=missing).order_by("answered", "-started_at")
