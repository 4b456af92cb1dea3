"""Which addresses a request may be connected to. The one place that decides."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import ip_address

from django.conf import settings
from django.utils.translation import gettext as _

from apps.common.outbound.addresses import Host, IPAddress, is_public, parse_host, parse_host_port
from apps.common.outbound.errors import OutboundFailed, OutboundRefused, OutboundTimeout

SCHEMES = ("http", "https")
LOOKUP_S = 10.0
# Ports of other protocols, where the lines of an HTTP request would be taken for commands:
# https://fetch.spec.whatwg.org/#port-blocking
OTHER_PROTOCOLS = frozenset(
    [
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515),
        *(526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049),
        *(3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    ]
)
# A pool of its own: names that a tenant's server answers slowly must not hold up other threads.
_lookups = ThreadPoolExecutor(32, thread_name_prefix="dns")


def check_scheme(scheme: str, host: str) -> None:
    """Raise OutboundRefused unless it is http or https."""
    if scheme not in SCHEMES:
        raise OutboundRefused(host=host, reason=_("only http and https are opened"))


def check_host(host: str, port: int) -> IPAddress | None:
    """Check what can be checked without a lookup; return the address if the host is one.

    Raises:
        OutboundRefused: malformed, of another protocol, or an address that is not public.
    """
    parsed = _parsed(host, port)
    if isinstance(parsed, str):
        return None
    _check_addresses(host, parsed, port, [parsed])
    return parsed


async def checked_addresses(host: str, port: int) -> list[IPAddress]:
    """Return the addresses to connect to: all of the host's, looked up once, every one of them checked.

    Connect to these and look nothing up again: the next answer may be another one.

    Raises:
        OutboundRefused: one of them is not public, and OUTBOUND_ALLOW does not name this host and port.
        OutboundFailed, OutboundTimeout: the name is not known, or could not be looked up in time.
    """
    parsed = _parsed(host, port)
    found = [parsed] if not isinstance(parsed, str) else await _look_up(host, parsed, port)
    _check_addresses(host, parsed, port, found)
    return found


def _parsed(host: str, port: int) -> Host:
    try:
        parsed = parse_host(host)
    except ValueError:
        raise OutboundRefused(host=host, reason=_("this is not the name or address of a host")) from None
    if (port in OTHER_PROTOCOLS or not 0 < port < 65536) and not _is_opened(parsed, port):
        raise OutboundRefused(host=host, reason=_("port %(port)d is not for web pages") % {"port": port})
    return parsed


def _check_addresses(host: str, parsed: Host, port: int, found: Sequence[IPAddress]) -> None:
    if not all(is_public(address) for address in found) and not _is_opened(parsed, port):
        raise OutboundRefused(host=host)


def _is_opened(parsed: Host, port: int) -> bool:
    return (parsed, port) in opened(tuple(settings.OUTBOUND_ALLOW))


@lru_cache(maxsize=8)
def opened(entries: tuple[str, ...]) -> frozenset[tuple[Host, int]]:
    """Return what OUTBOUND_ALLOW opens. Raises ValueError for an entry that is not host:port."""
    return frozenset(parse_host_port(entry) for entry in entries)


async def _look_up(host: str, name: str, port: int) -> list[IPAddress]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LOOKUP_S):
            return await loop.run_in_executor(_lookups, _addresses, name, port)
    except TimeoutError:
        raise OutboundTimeout(host=host, reason=_("its name could not be looked up in time")) from None
    except (OSError, ValueError):
        raise OutboundFailed(host=host, reason=_("its name is not known")) from None


def _addresses(name: str, port: int) -> list[IPAddress]:
    answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    found = [ip_address(str(answer[4][0])) for answer in answers]
    if not found:
        raise OSError("no addresses")
    return list(dict.fromkeys(found))
