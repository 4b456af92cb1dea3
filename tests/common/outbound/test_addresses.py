"""Hosts in every notation, and which of them are public."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.common.outbound.addresses import is_public, parse_host, parse_host_port
from apps.common.outbound.errors import OutboundRefused
from apps.common.outbound.guard import check_host

LOOPBACK = IPv4Address("127.0.0.1")
FULL_WIDTH = str.maketrans("0123456789abcdefx.", "０１２３４５６７８９ａｂｃｄｅｆｘ。")
PRIVATE_V4 = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32"),
]
PRIVATE_V6 = [
    *("::/128", "::1/128", "::ffff:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32"),
    *("2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
]


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f.1", "0x7f000001", "0X7F.0.0.1", "0177.0.0.1"),
        *("017700000001", "0x7f.0.0x0.01", "127.0.0.1.", "１２７.0.0.1", "127。0。0。1", "①②⑦.⓪.⓪.①", "0x7f.1."),
    ],
)
def test_every_notation_of_one_address_is_that_address(host):
    assert parse_host(host) == LOOPBACK
    with pytest.raises(OutboundRefused):
        check_host(host, 80)


@pytest.mark.parametrize(
    "host",
    [
        *("[::1]", "::1", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
        *("[64:ff9b::10.0.0.1]", "[64:ff9b::8.8.8.8]", "[2002:a00:1::]", "[2001:0:a00:1::]", "[fe80::1]", "[fd00::1]"),
        *("[fec0::1]", "[ff02::1]", "[::ffff:8.8.8.8]", "169.254.169.254", "100.100.100.200", "255.255.255.255", "0"),
        *("224.0.0.1", "192.0.0.192", "198.18.0.1", "10.0.0.1", "172.31.255.255", "192.168.1.1", "100.127.255.255"),
        *("", ".", "..", "a..b", "127.0.0.1..", "[::1", "::1]", "[fe80::1%25eth0]", "fe80::1%eth0", "%31%32%37.0.0.1"),
        *("1.2.3.4.5", "256.1.1.1", "1.2.3.999", "09.0.0.1", "0x100000000", "a b", "a/b", "a@b", "a\0b", "a\nb", "-a"),
        *("\u200b127.0.0.1", "xn--\u200d", "a" * 64 + ".com", "a." * 130 + "com", "²"),
        pytest.param("9" * 999, id="long number"),
        pytest.param("1" * 999_999, id="very long number"),
        pytest.param("0x" + "f" * 999_999, id="very long hexadecimal"),
    ],
)
def test_refused(host):
    with pytest.raises(OutboundRefused):
        check_host(host, 80)


@pytest.mark.parametrize(
    "address",
    [
        *("8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "9.255.255.255"),
        *("11.0.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "192.0.1.0", "198.20.0.0", "223.255.255.255"),
        *("2606:4700:4700::1111", "2a00:1450:4001::200e", "2400:3200::1", "2001:4860:4860::8888", "2003::1"),
    ],
)
def test_public(address):
    assert is_public(ip_address(address))
    assert check_host(address, 443) == ip_address(address)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("API.Example.com", "api.example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("ⓛocalhost", "localhost"),
        ("my_host", "my_host"),
        ("10-0-0-1.example.com", "10-0-0-1.example.com"),
        ("1.2.3.4.example.com", "1.2.3.4.example.com"),
    ],
)
def test_names(host, name):
    assert parse_host(host) == name


@pytest.mark.parametrize("port", [-1, 0, 22, 25, 53, 6667, 65536])
def test_ports_of_other_protocols_are_refused(port):
    with pytest.raises(OutboundRefused):
        check_host("8.8.8.8", port)


def number(draw, value):
    """One part of an IPv4 address, in a base of hypothesis's choice, with any zeros before it."""
    zeros = "0" * draw(st.integers(0, 3))
    match draw(st.sampled_from("doxX")):
        case "d":
            return str(value)
        case "o":
            return f"0{zeros}{value:o}"
        case "x":
            return f"0x{zeros}{value:x}"
    return f"0X{zeros}{value:X}"


@st.composite
def notations(draw, addresses):
    """(address, one of its notations) of one to four parts."""
    address = draw(addresses)
    octets, count = list(address.packed), draw(st.integers(1, 4))
    parts = [*octets[: count - 1], int.from_bytes(octets[count - 1 :], "big")]
    return address, ".".join(number(draw, part) for part in parts)


def inside(networks):
    """Addresses of the networks, their first and last ones often."""
    blocks = [ip_network(network) for network in networks]
    return st.sampled_from(blocks).flatmap(
        lambda block: st.integers(0, block.num_addresses - 1).map(lambda offset: block[offset])
    )


@given(notations(st.ip_addresses(v=4)))
def test_the_parser_and_the_system_read_the_same_address(pair):
    address, text = pair
    assert parse_host(text) == address == IPv4Address(socket.inet_aton(text))


@given(notations(inside(PRIVATE_V4)), st.sampled_from(["", "."]), st.booleans())
def test_any_notation_of_a_private_address_is_refused(pair, end, wide):
    text = pair[1] + end
    with pytest.raises(OutboundRefused):
        check_host(text.lower().translate(FULL_WIDTH) if wide else text, 80)


@given(inside(PRIVATE_V6), st.sampled_from(["exploded", "compressed"]), st.booleans(), st.booleans())
def test_any_notation_of_a_private_v6_address_is_refused(address, form, brackets, upper):
    text = getattr(address, form)
    text = text.upper() if upper else text
    with pytest.raises(OutboundRefused):
        check_host(f"[{text}]" if brackets else text, 80)


@given(inside(PRIVATE_V4), st.sampled_from(["::ffff:{}", "::{}", "64:ff9b::{}", "64:ff9b:1::{}", "::ffff:0:{}"]))
def test_a_private_address_inside_a_v6_address_is_refused(address, form):
    with pytest.raises(OutboundRefused):
        check_host(form.format(address), 80)


@given(inside(PRIVATE_V4))
def test_a_private_address_behind_6to4_is_refused(address):
    assert not is_public(IPv6Address((0x2002 << 112) | (int(address) << 80)))


@given(st.text(max_size=40))
def test_any_text_is_an_address_a_name_or_refused(text):
    try:
        parsed = parse_host(text)
    except ValueError:
        return
    assert parse_host(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        ("localhost:11434", ("localhost", 11434)),
        ("Ollama.Internal.:80", ("ollama.internal", 80)),
        ("10.0.0.5:8080", (IPv4Address("10.0.0.5"), 8080)),
        ("[::1]:8080", (IPv6Address("::1"), 8080)),
    ],
)
def test_host_and_port(entry, read):
    assert parse_host_port(entry) == read


@pytest.mark.parametrize(
    "entry",
    ["", "host", "host:", "host:0", "host:65536", "host:٣", "::1:80", "http://a:80", "a/b:80", "10.0.0.0/8:80", "*:80"],
)
def test_not_a_host_and_port(entry):
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        parse_host_port(entry)
