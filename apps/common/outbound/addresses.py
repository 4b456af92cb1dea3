"""Hosts in every notation, and which addresses are public. Pure; no lookups."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

IPAddress = IPv4Address | IPv6Address
Host = str | IPv4Address | IPv6Address

# Python's own is_global changes from release to release; this table is the IANA special-purpose
# registries as of 2026, and addresses inside clouds that look public.
NOT_PUBLIC = tuple(
    ip_network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; a cloud's metadata at 100.100.100.200
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host agent
        "169.254.0.0/16",  # link-local; the metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "2620:4f:8000::/48",
        "3fff::/20",  # documentation
    )
)
V4 = [block for block in NOT_PUBLIC if isinstance(block, IPv4Network)]
V6 = [block for block in NOT_PUBLIC if isinstance(block, IPv6Network)]
# All other IPv6 is refused: loopback, unique local, link- and site-local, multicast, and the forms that
# carry an IPv4 address (mapped, compatible, translated, NAT64).
V6_UNICAST = IPv6Network("2000::/3")

LONGEST = 1000  # characters, before anything is mapped
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")


def is_public(address: IPAddress) -> bool:
    """Say whether anybody on the internet reaches the same machine under this address."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in V4)
    return address in V6_UNICAST and not address.scope_id and not any(address in block for block in V6)


def parse_host(text: str) -> Host:
    """Return an address if the text is one in any notation, else the name in ASCII and lower case.

    Follows the URL Standard (https://url.spec.whatwg.org/#host-parsing): international names are
    mapped first, so full-width digits and circled letters come out as what they stand for; a host whose
    last label is a number is an IPv4 address, in decimal, octal or hexadecimal, of one to four parts.
    Stricter in one point: percent signs (escapes, zones) are refused.

    Raises:
        ValueError: it is neither; the sentence says why, without the text.
    """
    if len(text) > LONGEST:
        raise ValueError("the host is not a name")
    host = text.removeprefix("[").removesuffix("]") if text.startswith("[") and text.endswith("]") else text
    if ":" in host:
        return _ipv6(host)
    name = _ascii(host).removesuffix(".")
    labels = name.split(".")
    if _is_number(labels[-1]):
        return _ipv4(labels)
    if len(name) > 253 or not all(LABEL.match(label) for label in labels):
        raise ValueError("the host is not a name")
    return name


def parse_host_port(text: str) -> tuple[Host, int]:
    """Read ``host:port``, ``[v6]:port``. Raises ValueError with a sentence that says what is wrong."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("it must be host:port, such as localhost:11434")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError("an IPv6 address stands in brackets, and nothing such as http:// before it")
    return parse_host(host), int(port)


def _ipv6(text: str) -> IPv6Address:
    if "%" in text:
        raise ValueError("the address names a zone")
    try:
        return IPv6Address(text)
    except ValueError:
        raise ValueError("the host is not an IPv6 address") from None


def _ascii(host: str) -> str:
    if host.isascii():
        return host.lower()
    import idna

    try:
        mapped = idna.uts46_remap(host, std3_rules=False)
        return mapped if mapped.isascii() else idna.encode(mapped).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise ValueError("the host is not a name") from None


def _is_number(label: str) -> bool:
    return bool(re.fullmatch(r"[0-9]+|0x[0-9a-f]*", label))


def _ipv4(labels: list[str]) -> IPv4Address:
    try:
        numbers = [_number(label) for label in labels]
        *first, last = numbers
        if len(numbers) > 4 or any(number > 255 for number in first) or last >= 256 ** (5 - len(numbers)):
            raise ValueError
    except ValueError:
        raise ValueError("the host is not an IPv4 address") from None
    return IPv4Address(last + sum(number << 8 * (3 - place) for place, number in enumerate(first)))


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    if len(label) > 1 and label.startswith("0"):
        return int(label, 8)
    return int(label)
