"""Failures of a turn that are not a model's or the database's."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError


class EmptyAnswer(KnowSphereError):
    """The model ended without a word and without calling a tool."""

    code = "empty_answer"
    status = 502
    retryable = True
    user_message = _("The model gave no answer. Your question is kept; ask again or choose another model.")


class TurnFailed(KnowSphereError):
    """Something that nobody foresaw; the log has it under the turn's id."""

    code = "turn_failed"
    status = 500
    retryable = True
    user_message = _("Something went wrong while answering. What was said so far is kept; ask again.")


class AgentNameTaken(KnowSphereError):
    """Another agent of the workspace has this name."""

    code = "agent_name_taken"
    status = 409
    user_message = _("There is an agent “%(name)s” already. Nothing was saved; choose another name.")


class AgentInUse(KnowSphereError):
    """The agent cannot be deleted or made the default as it is."""

    code = "agent_in_use"
    status = 409
    user_message = _("This cannot be done with the agent: %(reason)s.")
