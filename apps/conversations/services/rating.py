"""What a person thinks of an answer."""

from apps.common.errors import InvalidInput, NotFound
from apps.common.text import storable
from apps.conversations.models import Feedback, Turn
from apps.workspaces.models import User

LONGEST_COMMENT = 4_000  # characters


def rate_turn(
    *, turn: Turn, good: bool, actor: User, reason: str = "", comment: str = "", kept: bool = False
) -> Feedback:
    """Say whether an answer was good, and why not; a later word replaces an earlier one.

    ``kept`` asks for the question and this judgement as a case of a data set.

    Raises:
        NotFound: the turn is not the actor's.
        InvalidInput: the reason is none of the known ones, or the comment is too long.
    """
    if not Turn.objects.visible_to(actor).filter(pk=turn.pk).exists():
        raise NotFound
    comment = storable(comment).strip()
    if reason and reason not in Feedback.Reason.values:
        raise InvalidInput(field="reason", reason="")
    if len(comment) > LONGEST_COMMENT:
        raise InvalidInput(field="comment", reason=f"> {LONGEST_COMMENT}")
    values = {"good": good, "reason": "" if good else reason, "comment": comment, "kept": kept}
    feedback, _created = Feedback.objects.update_or_create(turn=turn, defaults=values)
    return feedback


def withdraw_rating(*, turn: Turn, actor: User) -> None:
    """Take back what was said about an answer."""
    Feedback.objects.visible_to(actor).filter(turn=turn).delete()
