"""Which sites a widget may stand on: exact origins, or one with a ``*`` for its first label.

An origin is scheme, host and port, as a browser sends it (RFC 6454). Nothing else of an address counts, and an
empty list allows no site at all.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
MOST = 50  # origins of one widget


def normalise(text: str) -> str:
    """Return an origin as browsers write it: lower case, no default port, names in ASCII.

    Raises:
        ValueError: it is not an origin, or has more than that (a path, a user).
    """
    parts = urlsplit(text.strip().rstrip("/"))
    scheme = parts.scheme.lower()
    if scheme not in PORTS or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(text)
    host = parts.hostname or ""
    port = parts.port  # raises ValueError itself
    wildcard, host = ("*.", host[2:]) if host.startswith("*.") else ("", host)
    if ":" in host:  # an IPv6 address
        if wildcard:
            raise ValueError(text)
        name = f"[{host}]"
    else:
        name = host.encode("idna").decode().lower() if host else ""
        labels = name.split(".")
        if not all(LABEL.fullmatch(label) for label in labels) or (wildcard and len(labels) < 2):
            raise ValueError(text)
    return f"{scheme}://{wildcard}{name}{'' if port in (None, PORTS[scheme]) else f':{port}'}"


def allows(allowed: Iterable[str], origin: str) -> bool:
    """Return whether an ``Origin`` header's value is one of ``allowed``, which are normalised.

    No origin, ``null`` and what cannot be read are never allowed. A ``*`` stands for exactly one label.
    """
    try:
        given = normalise(origin)
    except ValueError:
        return False
    if "*" in given:
        return False
    scheme, host = given.split("://")
    beyond_first = f"{scheme}://*.{host.partition('.')[2]}"
    return any(one in (given, beyond_first) for one in allowed)
