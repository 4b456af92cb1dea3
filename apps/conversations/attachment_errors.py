"""What can go wrong with a file that comes with a question."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError


class AttachmentGone(KnowSphereError):
    """The file's row or its bytes are not there any more."""

    code = "attachment_gone"
    status = 410
    user_message = _("The attached file is gone. The question is kept; attach the file again.")


class AttachmentTooLarge(KnowSphereError):
    """The file has more bytes than an attachment may have."""

    code = "attachment_too_large"
    status = 413
    user_message = _(
        "The file is larger than %(limit_mb)s MB. Nothing was stored; add it to a knowledge base, then ask there."
    )


class AttachmentTooLong(KnowSphereError):
    """The file's text has more characters than an attachment may have."""

    code = "attachment_too_long"
    status = 413
    user_message = _(
        "The file’s text has more than %(limit)s characters. Nothing was stored; add it to a knowledge base, then ask "
        "there."
    )


class AttachmentWaited(KnowSphereError):
    """Files of others were being read for as long as somebody waits for theirs."""

    code = "attachment_waited"
    status = 503
    retryable = True
    user_message = _("Other files are still being read. Nothing was stored; attach the file again in a moment.")


class TooManyAttachments(KnowSphereError):
    """As many files of the person wait for a question as may."""

    code = "too_many_attachments"
    status = 409
    user_message = _("%(limit)s files wait for a question already. Nothing was stored; remove some, then add this one.")
