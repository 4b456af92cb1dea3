"""What it means that a search could not run, and what it is called: a code for programs, words for people."""

from collections.abc import Mapping

import psycopg
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from psycopg_pool import PoolTimeout

from apps.common.errors import KnowSphereError

TIMEOUT, CONNECTION, DATABASE = "timeout", "connection_lost", "database_error"
GONE, UNREADABLE = "model_gone", "model_unreadable"  # of an embedding model


def cause_of(error: Exception) -> str:
    """Return the code of what a part of a search failed by; that of the error itself where we foresaw it."""
    match error:
        case KnowSphereError():
            return error.code
        case psycopg.errors.QueryCanceled():
            return TIMEOUT
        case PoolTimeout() | psycopg.OperationalError() | OSError():
            return CONNECTION
    return DATABASE


def words_of(cause: str) -> str:
    """Say what a cause means, in the reader's language."""
    return {
        TIMEOUT: _("the database took too long"),
        CONNECTION: _("the database does not answer"),
        DATABASE: _("the database refused a query"),
        GONE: _("the embedding model is no longer configured"),
    }.get(cause, _("the embedding model does not answer (%(code)s)") % {"code": cause})


class SearchUnavailable(KnowSphereError):
    """Every leg of a search failed, so nothing is known: that is not the same as nothing found.

    ``details["causes"]`` has the code of the cause by part: a leg, "embedding", "passages" or "database".
    """

    code = "search_unavailable"
    status = 503
    retryable = True
    user_message = gettext_lazy(
        "The knowledge bases cannot be searched at the moment: %(reason)s. Nothing is lost; try again soon."
    )

    def __init__(self, causes: Mapping[str, str]) -> None:
        """``causes``: the parts that failed, each with ``cause_of`` its error."""
        said = dict.fromkeys(words_of(cause) for cause in causes.values())
        super().__init__(reason="; ".join(said), causes=dict(causes))
