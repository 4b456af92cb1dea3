"""What can go wrong with people and rights."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict, KnowSphereError


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
