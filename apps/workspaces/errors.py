"""What can go wrong with people and rights."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict, KnowSphereError, NotFound


class KeyRefused(KnowSphereError):
    """An API key that is unknown, revoked or expired, or whose person may not sign in."""

    code = "key_refused"
    status = 401
    user_message = _("This API key is not valid: it is unknown, revoked or expired. Make a new one, then try again.")


class DepartmentNameTaken(Conflict):
    """Two departments in one place may not have the same name."""

    code = "department_name_taken"
    user_message = _("There is a department called “%(name)s” in this place already. Choose another name.")


class DepartmentInItself(Conflict):
    """A department cannot be moved below itself."""

    code = "department_in_itself"
    user_message = _("A department cannot lie within itself. Nothing was moved.")


class LastOwner(Conflict):
    """A workspace always has an owner."""

    code = "last_owner"
    user_message = _("This is the workspace's only owner. Make somebody else an owner first; nothing was changed.")


class InvitationNotUsable(NotFound):
    """An invitation that is used, withdrawn, expired, or was never made."""

    code = "invitation_not_usable"
    user_message = _("This invitation is used, withdrawn or expired. Ask whoever invited you for a new one.")


class InvitationForAnother(Conflict):
    """An invitation that names an address is for the person with that address."""

    code = "invitation_for_another"
    user_message = _(
        "This invitation is for %(email)s. Sign in with that address, or ask for an invitation of your own."
    )


class TooManyInvitations(KnowSphereError):
    """A workspace sends only so many invitations a day: they are mail to people who did not ask for it."""

    code = "too_many_invitations"
    status = 429
    retryable = True
    user_message = _("At most %(limit)s invitations a day can be made. Nothing was sent; go on tomorrow.")


class QuotaExceeded(KnowSphereError):
    """A workspace or a person has used all that they may."""

    code = "quota_exceeded"
    status = 429
    user_message = _(
        "The limit of %(whose)s for “%(kind)s” is reached: %(used)s of %(limit)s. Nothing was stored or sent; "
        "wait for the next period, delete what is not needed, or ask an owner or the operator for more."
    )
