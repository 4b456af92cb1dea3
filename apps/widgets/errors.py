"""What can go wrong between a visitor and a widget; none of it says more than a stranger may know."""

from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError


class WidgetNotFound(KnowSphereError):
    """No widget has this public id, or it is switched off."""

    code = "widget_not_found"
    status = 404
    user_message = _("This chat is not available.")


class OriginNotAllowed(KnowSphereError):
    """The page that asks is of a site that the widget may not stand on."""

    code = "origin_not_allowed"
    status = 403
    user_message = _("This chat may not be used on this site. Its owner can allow the site in the widget’s settings.")


class VisitorExpired(KnowSphereError):
    """The visitor's session is over, or was never one."""

    code = "visitor_expired"
    status = 401
    retryable = True
    user_message = _("The chat’s session is over. It opens again by itself; otherwise reload the page.")


class IdentityRefused(KnowSphereError):
    """What the site said about its visitor is not signed with the widget's secret, or is too old."""

    code = "identity_refused"
    status = 403
    user_message = _("The site’s word on who you are could not be verified.")


class TooManyQuestions(KnowSphereError):
    """A limit of the widget: of this visitor, of this address, or of all together."""

    code = "too_many_questions"
    status = 429
    retryable = True
    user_message = _("That is as many questions as this chat takes for now. Please come back later.")
