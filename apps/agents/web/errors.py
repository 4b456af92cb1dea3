"""Failures of the web tools; those of the connection itself are ``apps.common.outbound.errors``."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from apps.common.errors import KnowSphereError

PASSING: Final = frozenset({408, 425, 429, *range(500, 600)})  # what a server may not answer the next time


class WebSearchUnavailable(KnowSphereError):
    """The search engine did not answer, or not with results."""

    code = "web_search_unavailable"
    status = 503
    retryable = True
    user_message = _("The web search (%(provider)s) does not answer just now. Ask again in a moment.")


class WebSearchRefused(KnowSphereError):
    """The search engine answers, and would answer the same again: not with results."""

    code = "web_search_refused"
    status = 502
    user_message = _(
        "The web search (%(provider)s) does not take this request. Tell the operator; documents can still be searched."
    )


class WebSearchMisconfigured(KnowSphereError):
    """The operator's settings name no provider that can work."""

    code = "web_search_misconfigured"
    status = 500
    user_message = _(
        "The web search (%(provider)s) is not set up: %(reason)s. Tell the operator; documents can still be searched."
    )


class PageUnreadable(KnowSphereError):
    """There is an answer, but no text in it that could be read."""

    code = "page_unreadable"
    status = 422
    user_message = _("This page cannot be read: %(reason)s.")


class PageUnavailable(KnowSphereError):
    """The page's server has no answer just now."""

    code = "page_unavailable"
    status = 503
    retryable = True
    user_message = _("This page cannot be read just now: the server answers with %(status)d. Try again in a moment.")
