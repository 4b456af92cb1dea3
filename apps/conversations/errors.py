"""What can go wrong between a person and a conversation."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError


class TooManyWaiting(KnowSphereError):
    """As many questions of the conversation wait behind the one being answered as may."""

    code = "too_many_waiting"
    status = 409
    retryable = True
    user_message = _(
        "%(limit)s questions of this conversation wait already. Nothing was sent; wait for an answer, then ask again."
    )


class TooManyTurns(KnowSphereError):
    """As many of the person's questions are being answered at once as may."""

    code = "too_many_turns"
    status = 429
    retryable = True
    user_message = _(
        "%(limit)s of your questions are being answered at this moment. Nothing was sent; wait for one, then ask again."
    )


class TooManySockets(KnowSphereError):
    """As many of the person's sockets are open as may."""

    code = "too_many_sockets"
    status = 429
    retryable = True
    user_message = _("%(limit)s of your tabs are connected. Nothing is lost; close some, then reload this one.")


class ShuttingDown(KnowSphereError):
    """The process is about to end and takes no new questions."""

    code = "shutting_down"
    status = 503
    retryable = True
    user_message = _("The server is restarting. Nothing is lost; ask again in a few seconds.")


class TurnInterrupted(KnowSphereError):
    """The process that wrote the answer ended before it did."""

    code = "turn_interrupted"
    status = 503
    retryable = True
    user_message = _("The server stopped while this was written. What was written so far is kept; ask again.")


class TurnCrashed(KnowSphereError):
    """A failure that nobody foresaw; the log has it under the turn's id."""

    code = "turn_crashed"
    status = 500
    retryable = True
    user_message = _("Something went wrong on our side. What was written so far is kept; ask again.")


class AnswerNotStored(KnowSphereError):
    """The database stayed away for a minute after the answer was complete."""

    code = "answer_not_stored"
    status = 503
    user_message = _("The database does not answer, so this text is only here for now. Copy it if you need it.")


class SignedOut(KnowSphereError):
    """No valid session came with the socket."""

    code = "signed_out"
    status = 401
    user_message = _("You are signed out. Sign in and open the conversation again.")


class WrongOrigin(KnowSphereError):
    """A page of another site opened the socket with this person's cookie."""

    code = "wrong_origin"
    status = 403
    user_message = _("This page does not belong to this server. Open the conversation on its own site.")


class FrameRefused(KnowSphereError):
    """The frame is not one of the protocol's; ``reason`` says why."""

    code = "invalid_frame"
    status = 422
    user_message = _("The message could not be read: %(reason)s. The connection stays open.")


class FrameTooLarge(KnowSphereError):
    """The frame is larger than any frame of the protocol may be."""

    code = "frame_too_large"
    status = 413
    user_message = _("The message is larger than %(limit_kb)s KB. Nothing was sent; shorten it.")


class InvalidCharacters(KnowSphereError):
    """The text holds NUL or half a character."""

    code = "invalid_characters"
    status = 422
    user_message = _("The text holds characters that cannot be stored. Nothing was sent; remove them.")


class EmptyQuestion(KnowSphereError):
    """There is nothing to answer."""

    code = "empty_question"
    status = 422
    user_message = _("The question is empty. Write one and send it again.")


class QuestionTooLong(KnowSphereError):
    """The question is longer than one may be."""

    code = "question_too_long"
    status = 422
    user_message = _("The question has more than %(limit)s characters. Nothing was sent; shorten it.")


class UnsupportedOption(KnowSphereError):
    """The ask names an option that this server does not have; ``option`` says which."""

    code = "unsupported_option"
    status = 422
    user_message = _("This server does not support “%(option)s” yet. Nothing was sent; ask without it.")
