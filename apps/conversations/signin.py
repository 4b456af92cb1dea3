"""Who opens a socket, and whether they may: origin, session, membership, conversation.

Two short statements on the async pool instead of Channels' middleware, which puts every sign-in of
the process through the ORM in one thread.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.http.request import validate_host
from django.utils import timezone, translation
from django.utils.crypto import constant_time_compare
from django.utils.http import is_same_domain

from apps.common.database import pool
from apps.common.errors import NotFound, ServiceUnavailable
from apps.conversations import errors, rows
from apps.conversations.models import Conversation
from apps.workspaces.models import User

Headers = Iterable[tuple[bytes, bytes]]

_sessions = import_module(settings.SESSION_ENGINE).SessionStore()


@dataclass(frozen=True, slots=True)
class Caller:
    """What a socket brought along."""

    session_key: str
    origin: str
    host: str
    languages: tuple[str, ...]  # the cookie's, then the browser's

    @classmethod
    def of(cls, headers: Headers) -> "Caller":
        """Read a socket's request headers; the first of a repeated header counts."""
        found: dict[bytes, str] = {}
        for name, value in headers:
            found.setdefault(name.lower(), value.decode("latin-1"))
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(found.get(b"cookie", ""))
        except CookieError:
            pass
        values = {name: morsel.value for name, morsel in cookies.items()}
        accepted = found.get(b"accept-language", "").split(",")[0].split(";")[0].strip()
        return cls(
            values.get(settings.SESSION_COOKIE_NAME, ""),
            found.get(b"origin", ""),
            found.get(b"host", ""),
            (values.get(settings.LANGUAGE_COOKIE_NAME, ""), accepted),
        )

    def language(self, preferred: str = "") -> str:
        """Return the language to speak with this person."""
        for code in (*self.languages[:1], preferred, *self.languages[1:]):
            try:
                return translation.get_supported_language_variant(code)
            except LookupError:
                continue
        return settings.LANGUAGE_CODE

    def check_origin(self) -> None:
        """Refuse pages of other sites: the cookie alone does not say who opened the socket.

        A client that sends no Origin is no browser: nobody's cookie can be borrowed by it.

        Raises:
            WrongOrigin: the page's scheme, host or port is not ours.
        """
        if self.origin and not _is_ours(self.origin, self.host):
            raise errors.WrongOrigin


def _is_ours(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in parts.netloc:
        return False
    plain = f"{parts.scheme}://{parts.netloc}".lower()
    site = urlsplit(settings.SITE_URL)
    if plain == f"{site.scheme}://{site.netloc}".lower():
        return True
    secure = site.scheme != "https" or parts.scheme == "https"
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if secure and parts.netloc.lower() == host.lower() and validate_host(name.lower(), settings.ALLOWED_HOSTS):
        return True
    for trusted in map(urlsplit, settings.CSRF_TRUSTED_ORIGINS):
        pattern = trusted.netloc.removeprefix("*") if trusted.netloc.startswith("*.") else trusted.netloc
        if trusted.scheme == parts.scheme and is_same_domain(parts.netloc, pattern):
            return True
    return False


async def admit(caller: Caller, conversation_id: UUID) -> tuple[User, Conversation]:
    """Return the person and the conversation that they may see, as rows of this moment.

    Raises:
        SignedOut: no living session, or the person may no longer sign in.
        NotFound: there is no such conversation, or it is not theirs.
        ServiceUnavailable: the database does not answer.
    """
    if not caller.session_key:
        raise errors.SignedOut
    try:
        async with (await pool()).connection() as connection:
            user = await _user(connection, caller.session_key)
            door = Conversation.objects.visible_to(user).filter(pk=conversation_id).values()
            sql, parameters = rows.compiled(door)
            row = await (await connection.execute(sql, parameters)).fetchone()
    except psycopg.OperationalError as error:
        raise ServiceUnavailable(service="PostgreSQL") from error
    if row is None:
        raise NotFound
    return user, Conversation(**row)


async def _user(connection: rows.Connection, session_key: str) -> User:
    sessions = Session.objects.filter(session_key=session_key, expire_date__gt=timezone.now())
    sql, parameters = rows.compiled(sessions.values("session_data"))
    session = await (await connection.execute(sql, parameters)).fetchone()
    data = _sessions.decode(session["session_data"]) if session else {}
    if data.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        raise errors.SignedOut
    users = User.objects.filter(pk=data[SESSION_KEY], is_active=True).values()
    sql, parameters = rows.compiled(users)
    row = await (await connection.execute(sql, parameters)).fetchone()
    if row is None:
        raise errors.SignedOut
    user = User(**row)
    given = data.get(HASH_SESSION_KEY, "")
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    if not any(constant_time_compare(given, known) for known in hashes):
        raise errors.SignedOut
    return user
