"""The environment variables that configure KnowSphere, read once and checked.

Every secret can also come from a file: ``NAME_FILE`` holds a path (Docker and Kubernetes secrets).
A value that cannot be right stops the start with a sentence that names the variable.
"""

import base64
import binascii
import ipaddress
import os
import re
import secrets
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from apps.common.outbound.addresses import parse_host_port

CHECKOUT = Path(__file__).resolve().parent.parent
BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


def text(name: str, default: str = "") -> str:
    """Return a variable, or the contents of the file that ``NAME_FILE`` names, without its line end."""
    path = os.environ.get(f"{name}_FILE", "").strip()
    value = os.environ.get(name, "").strip()
    if not path:
        return value or default
    if value:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them")
    try:
        value = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE: cannot read {path}: {error}") from error
    if not value:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is empty")
    return value


def choice(name: str, allowed: tuple[str, ...], default: str) -> str:
    """Return one of the allowed words."""
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def flag(name: str) -> bool:
    """Return True for 1/true/yes/on, False for 0/false/no/off or nothing."""
    value = text(name).lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"", "0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")


def whole(name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
    """Return a whole number within bounds."""
    value = text(name, str(default))
    try:
        number = int(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}") from error
    if not least <= number <= most:
        raise ImproperlyConfigured(f"{name} must lie between {least} and {most}, not {number}")
    return number


def words(name: str) -> list[str]:
    """Return a comma list, without empty entries."""
    return [word for part in text(name).split(",") if (word := part.strip())]


def host_ports(name: str) -> list[str]:
    """Return a comma list of host:port. A wrong entry is named, since one that opens nothing is hard to find."""
    entries = words(name)
    for entry in entries:
        try:
            parse_host_port(entry)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {entry!r} cannot be used: {error}") from error
    return entries


def networks(name: str, default: str) -> list[str]:
    """Return a comma list of addresses and networks, such as 10.0.0.0/8; everybody is nobody to trust."""
    entries = words(name) or [default]
    for entry in entries:
        try:
            open_to_all = ipaddress.ip_network(entry).prefixlen == 0
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {entry!r} is no address or network: {error}") from error
        if open_to_all:
            raise ImproperlyConfigured(f"{name}: with {entry!r} anybody could claim any address; name the proxy's")
    return entries


def url(name: str, default: str = "", *, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Return an address without a trailing slash, or nothing."""
    value = text(name, default).rstrip("/")
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an open bracket, a port that is no number
        usable = False
    if not usable:
        raise ImproperlyConfigured(f"{name} must be an address that begins with {schemes[0]}://")
    return value


def database(name: str) -> str:
    """Return the address of a PostgreSQL database, or nothing. Never shown: it may hold a password."""
    value = text(name)
    parts = urlsplit(value)
    if value and (parts.scheme not in {"postgres", "postgresql", "psql"} or len(parts.path) < 2):
        raise ImproperlyConfigured(f"{name} must look like postgresql://user:password@host:5432/database")
    return value


def folder(name: str, default: Path) -> Path:
    """Return an absolute folder, given as a path or a file:// address; relative to the checkout."""
    value = text(name).removeprefix("file://")
    if "://" in value:
        raise ImproperlyConfigured(f"{name} must be a folder on this machine, such as /srv/knowsphere")
    return (CHECKOUT / Path(value).expanduser()).resolve() if value else default


def storage(name: str, default: Path) -> dict[str, Any]:
    """Return Django's setting of the file store: a folder, or ``s3://key:secret@bucket/prefix?endpoint=…&region=…``.

    Key and secret are percent-encoded; without them the machine's own credentials for AWS are used, and
    without ``endpoint`` the bucket is Amazon's. Never shown: it may hold a secret.
    """
    value = text(name)
    if not value.startswith("s3:"):
        location = str(folder(name, default))
        return {"BACKEND": "apps.common.folder_storage.FolderStorage", "OPTIONS": {"location": location}}
    try:
        parts = urlsplit(value)
    except ValueError:  # an open bracket
        parts = urlsplit("s3:")
    more = dict(parse_qsl(parts.query, keep_blank_values=True))
    endpoint, region = more.pop("endpoint", ""), more.pop("region", "")
    bucket = parts.netloc.rpartition("@")[2]
    if more or not BUCKET.fullmatch(bucket) or (endpoint and not endpoint.startswith(("http://", "https://"))):
        raise ImproperlyConfigured(f"{name} must look like s3://key:secret@bucket/prefix?endpoint=https://…&region=…")
    options: dict[str, Any] = {"bucket_name": bucket, "location": parts.path.strip("/")}
    if parts.username or parts.password:
        options |= {"access_key": unquote(parts.username or ""), "secret_key": unquote(parts.password or "")}
    if endpoint:
        options["endpoint_url"] = endpoint
    if endpoint or region:
        options["region_name"] = region or "us-east-1"
    return {"BACKEND": "apps.common.object_storage.ObjectStorage", "OPTIONS": options}


def home() -> Path:
    """Return the folder that holds all state: KNOWSPHERE_HOME, else ``var/`` in the checkout."""
    return folder("KNOWSPHERE_HOME", (CHECKOUT / "var").resolve())


def secret_key(*, required: bool) -> str:
    """Return SECRET_KEY; in development make one once and keep it in the state folder."""
    value = text("SECRET_KEY")
    if value and len(value) < 50:
        raise ImproperlyConfigured("SECRET_KEY must have at least 50 characters")
    return value or _development_secret("SECRET_KEY", required=required, size=48)


def master_keys(*, required: bool) -> list[str]:
    """Return MASTER_KEY, then those of MASTER_KEY_FALLBACKS: base64 of 32 bytes each.

    The first encrypts; the others can still decrypt while keys are rotated.
    """
    first = text("MASTER_KEY") or _development_secret("MASTER_KEY", required=required)
    named = [("MASTER_KEY", first), *(("MASTER_KEY_FALLBACKS", key) for key in words("MASTER_KEY_FALLBACKS"))]
    for name, key in named:
        try:
            size = len(base64.b64decode(key, validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if size != 32:
            raise ImproperlyConfigured(f"{name} must be base64 of exactly 32 bytes")
    return [key for _, key in named]


def _development_secret(name: str, *, required: bool, size: int = 32) -> str:
    if required:
        raise ImproperlyConfigured(f"{name} (or {name}_FILE) must be set in production")
    path = home() / "secrets" / name.lower()
    try:
        if not path.exists():
            _write_once(path, base64.b64encode(secrets.token_bytes(size)).decode())
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name} is kept in {path}, which cannot be used: {error.strerror}. "
            "Run as the user who owns it, or set KNOWSPHERE_HOME to a folder of yours."
        ) from error


def _write_once(path: Path, value: str) -> None:
    """Write a new private file: whole or not at all, and the first of two processes wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, draft = tempfile.mkstemp(dir=path.parent)  # readable by us alone
    with os.fdopen(handle, "w") as new:
        new.write(value)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    Path(draft).unlink()
