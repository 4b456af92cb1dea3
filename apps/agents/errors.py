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
