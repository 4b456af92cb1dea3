"""What another tool can ask that cannot be done."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError, NotFound


class ModelNotFound(NotFound):
    """There is no agent of this name."""

    code = "model_not_found"
    user_message = _("There is no agent “%(model)s” here. GET /v1/models lists those that you may ask.")


class MessagesRefused(KnowSphereError):
    """The messages do not end in a question, or hold something besides text."""

    code = "messages_refused"
    status = 422
    user_message = _("These messages cannot be answered: %(reason)s. Nothing was asked.")
