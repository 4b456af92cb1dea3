"""Sessions in the database, under keys that this server made.

A cookie may hold anything: NUL, which PostgreSQL refuses, or a megabyte. What is no key of ours never
reaches SQL; Django's own check only asks for eight characters.
"""

import re
from typing import Any

from django.contrib.sessions.backends import db

KEY = re.compile(r"[a-z0-9]{32}\Z")


class SessionStore(db.SessionStore):
    """Django's store, with its key checked by its shape."""

    def _validate_session_key(self, key: Any) -> bool:
        return usable(key)


def usable(key: object) -> bool:
    """Return whether ``key`` has the shape of a session's key."""
    return isinstance(key, str) and bool(KEY.match(key))
