"""Who opens a socket, and whether they may: origin, session, membership, conversation.

Two short statements on the async pool instead of Channels' middleware, which puts every sign-in of
the process through the ORM in one thread.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import DatabaseError
from django.http.request import validate_host
from django.utils import translation
from django.utils.crypto import constant_time_compare
from django.utils.http import is_same_domain
from psycopg.rows import DictRow

from apps.common import sessions
from apps.common.database import in_db
from apps.common.errors import NotFound, ServiceUnavailable
from apps.conversations import errors, rows
from apps.conversations.models import Conversation
from apps.workspaces.api.authentication import bearer
from apps.workspaces.models import User
from apps.workspaces.principals import NOBODY, Principal
from apps.workspaces.services import principal_of_key

Headers = Iterable[tuple[bytes, bytes]]

PERSON = rows.Door(lambda who, row: User.objects.filter(pk=row, is_active=True).values())
VISIBLE = rows.Door(lambda who, row: Conversation.objects.visible_to(who).filter(pk=row).values())

SUBPROTOCOL = "knowsphere"  # what a browser offers beside its key, and gets back: the key itself is never echoed
SESSION_NAME = re.compile(r"[A-Za-z0-9]{8,64}")
_sessions = sessions.SessionStore()


@dataclass(frozen=True, slots=True)
class Caller:
    """What a socket brought along."""

    session_key: str
    key: str  # an API key, of the Authorization header or among the subprotocols; never of the address
    subprotocol: str | None  # what to accept the socket with
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
        offered = [word.strip() for word in found.get(b"sec-websocket-protocol", "").split(",")]
        key = bearer(found.get(b"authorization", "")) or next((word for word in offered if word.startswith("ks_")), "")
        return cls(
            values.get(settings.SESSION_COOKIE_NAME, ""),
            key,
            SUBPROTOCOL if SUBPROTOCOL in offered else None,
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

        A client that sends no Origin is no browser: nobody's cookie can be borrowed by it. A key is no cookie:
        whoever sends it has it.

        Raises:
            WrongOrigin: the page's scheme, host or port is not ours.
        """
        if self.origin and not self.key and not is_ours(self.origin, self.host):
            raise errors.WrongOrigin


def is_ours(origin: str, host: str) -> bool:
    """Whether an origin is this product's own, or one that the operator trusts."""
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


class Admitted(NamedTuple):
    """Who is there and what they look at. ``standing``: what must be as it was for this to hold; None for a key."""

    user: User
    conversation: Conversation
    standing: rows.Standing | None


async def admit(caller: Caller, conversation_id: UUID, *, known: User | None = None) -> Admitted:
    """Return the person and the conversation that they may see, as rows of this moment.

    ``known``: whom the session belonged to the last time, which saves a round trip.

    Raises:
        SignedOut: no living session, or the person may no longer sign in.
        KeyRefused: a key came, and it is not valid any more.
        NotFound: there is no such conversation, or it is not theirs.
        ServiceUnavailable: the database does not answer.
    """
    if caller.key:
        return await _admit_key(caller.key, conversation_id)
    if not SESSION_NAME.fullmatch(caller.session_key):
        raise errors.SignedOut
    try:
        async with rows.connected() as connection:
            user_id = known.pk if known else _owner(await _fetch(connection, *_session(caller.session_key)))
            async with connection.pipeline():
                cursors = [
                    await connection.execute(*statement)
                    for statement in (
                        _session(caller.session_key),
                        PERSON.bound(NOBODY, user_id),
                        VISIBLE.bound(Principal.person(user_id), conversation_id),
                    )
                ]
                session, person, conversation = [await cursor.fetchone() for cursor in cursors]
    except psycopg.OperationalError as error:
        raise ServiceUnavailable(service="PostgreSQL") from error
    if person is None or session is None or _owner(session) != user_id:
        raise errors.SignedOut
    user = User(**person)
    given = _sessions.decode(session["session_data"]).get(HASH_SESSION_KEY, "")
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    if not any(constant_time_compare(given, known_hash) for known_hash in hashes):
        raise errors.SignedOut
    if conversation is None:
        raise NotFound
    standing = rows.Standing(caller.session_key, session["session_data"], user.pk, user.password)
    return Admitted(user, Conversation(**conversation), standing)


async def admit_again(standing: rows.Standing, conversation_id: UUID) -> Conversation | None:
    """Return the conversation where all that an earlier look rested on is as it was, in one statement; else None.

    Raises:
        ServiceUnavailable: the database does not answer.
    """
    door = standing.behind(VISIBLE.bound(Principal.person(standing.user_id), conversation_id))
    try:
        async with rows.connected() as connection:
            row = await _fetch(connection, *door)
    except psycopg.OperationalError as error:
        raise ServiceUnavailable(service="PostgreSQL") from error
    return Conversation(**row) if row else None


async def _admit_key(key: str, conversation_id: UUID) -> Admitted:
    """Return the person acting as the key, and the conversation that the key may see."""
    try:
        user = await in_db(principal_of_key, key)
        async with rows.connected() as connection:
            row = await _fetch(connection, *VISIBLE.bound(user.principal, conversation_id))
    except (psycopg.OperationalError, DatabaseError) as error:
        raise ServiceUnavailable(service="PostgreSQL") from error
    if row is None:
        raise NotFound
    return Admitted(user, Conversation(**row), None)


async def _fetch(connection: rows.Connection, sql: str, parameters: tuple[Any, ...]) -> DictRow | None:
    return await (await connection.execute(sql, parameters)).fetchone()


def _session(key: str) -> tuple[str, tuple[Any, ...]]:
    return "SELECT session_data FROM django_session WHERE session_key = %s AND expire_date > now()", (key,)


def _owner(session: DictRow | None) -> UUID:
    """Return whose session it is. Raises SignedOut where it is nobody's."""
    data = _sessions.decode(session["session_data"]) if session else {}
    if data.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        raise errors.SignedOut
    return UUID(data[SESSION_KEY])
