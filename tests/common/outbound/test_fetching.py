"""fetch() over real sockets: what is refused, what is cut, and what comes back."""

import asyncio
import gzip
import zlib

import pytest

from apps.common.outbound.errors import (
    OutboundError,
    OutboundFailed,
    OutboundRefused,
    OutboundTimeout,
    OutboundTooLarge,
)
from apps.common.outbound.fetching import fetch
from tests.common.outbound.conftest import PUBLIC, PUBLIC_TOO, PUBLIC_V6, answer

pytestmark = pytest.mark.usefixtures("dns", "routes")


async def read(url, max_bytes=100_000, timeout_s=5.0):
    return await fetch(url, max_bytes=max_bytes, timeout_s=timeout_s)


@pytest.fixture
def page(site, dns):
    """A public address of ``site``: name.test leads to it."""
    dns["name.test"] = [[PUBLIC]]

    def page(path="/", content=None):
        if content is not None:
            site.pages[path] = content
        return f"http://name.test:{site.port}{path}"

    return page


async def test_reads_a_public_page(page, site, routes):
    got = await read(page("/a?q=检索#part", None))
    assert (got.status, got.body, got.content_type) == (200, b"hello", "text/plain")
    assert got.url == f"http://name.test:{site.port}/a?q=%E6%A3%80%E7%B4%A2"
    assert routes == [PUBLIC]
    assert f"Host: name.test:{site.port}".encode() in site.requests[0]


async def test_an_error_page_is_a_page(page):
    got = await read(page("/", answer(b"gone", status=404, Content_Type="text/html; charset=gbk")))
    assert (got.status, got.body, got.content_type) == (404, b"gone", "text/html; charset=gbk")


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:{port}/", "http://[::1]:{port}/", "http://2130706433:{port}/", "http://0x7f.1:{port}/"),
        *("http://127.1:{port}/", "http://0177.0.0.1:{port}/", "http://127.0.0.1.:{port}/", "http://localhost:{port}/"),
        *("http://１２７.0.0.1:{port}/", "http://%31%32%37.0.0.1:{port}/", "http://[::ffff:127.0.0.1]:{port}/"),
        *("http://name.test@127.0.0.1:{port}/", "http://user:pw@name.test:{port}/", "http://169.254.169.254/"),
        *(
            "http://name.test\\@127.0.0.1:{port}/",
            "file:///etc/passwd",
            "gopher://name.test:{port}/_x",
            "ftp://name.test/",
        ),
        *(
            "javascript:alert(1)",
            "data:text/plain,x",
            "//name.test/",
            "name.test",
            "",
            "http://",
            "http://:80/",
            "http://[",
        ),
        *("unix:///var/run/docker.sock", "http://name.test:22/", "http://name.test:0/", "http://name.test:99999/"),
    ],
)
async def test_refused_before_anything_is_sent(url, page, site, dns, routes):
    page()
    dns["localhost"] = [["127.0.0.1"]]
    with pytest.raises(OutboundRefused) as caught:
        await read(url.format(port=site.port))
    assert caught.value.as_dict()["code"] == "outbound_refused"
    assert (routes, site.requests) == ([], [])


@pytest.mark.parametrize(
    "answers", [[PUBLIC, "10.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::1"], [PUBLIC_V6, "fd00::1"]]
)
async def test_one_private_address_among_public_ones_is_refused(answers, page, dns, routes):
    url = page()
    dns["name.test"] = [answers]
    with pytest.raises(OutboundRefused) as caught:
        await read(url)
    assert routes == []
    assert not any(address in str(caught.value.as_dict()) for address in answers)  # what a name stands for stays inside


async def test_what_is_connected_to_is_what_was_checked(page, dns, routes):
    url = page()
    dns["name.test"] = [[PUBLIC], ["127.0.0.1"]]  # the second answer is a trap
    assert (await read(url)).body == b"hello"
    assert (dns.asked, routes) == (["name.test"], [PUBLIC])
    with pytest.raises(OutboundRefused):
        await read(url)
    assert routes == [PUBLIC]


async def test_the_next_address_is_tried_when_one_is_dead(page, dns, routes):
    url = page()
    dns["name.test"] = [[PUBLIC_V6, PUBLIC]]
    assert (await read(url)).body == b"hello"
    assert routes == [PUBLIC_V6, PUBLIC]


@pytest.mark.parametrize(
    "location",
    [
        *(
            "http://10.0.0.1/",
            "http://127.0.0.1:{port}/secret",
            "//127.0.0.1:{port}/secret",
            "http://rebound.test:{port}/",
        ),
        *("file:///etc/passwd", "gopher://name.test/", "http://[::1]:{port}/", "http://2130706433:{port}/", "http://["),
    ],
)
async def test_a_redirect_to_a_private_address_is_refused(location, page, site, dns, routes):
    dns["rebound.test"] = [["127.0.0.1"]]
    with pytest.raises(OutboundRefused) as caught:
        await read(page("/", answer(status=302, Location=location.format(port=site.port))))
    assert (len(site.requests), routes) == (1, [PUBLIC])
    assert caught.value.details["host"] == "name.test"  # where it leads to is nobody's business


async def test_a_name_that_changes_between_two_hops_is_refused(page, dns, site):
    url = page("/", answer(status=302, Location="/next"))
    dns["name.test"] = [[PUBLIC], ["127.0.0.1"]]
    with pytest.raises(OutboundRefused):
        await read(url)
    assert len(site.requests) == 1


async def test_redirects_between_public_addresses_are_followed(page, site, dns, routes):
    dns["other.test"] = [[PUBLIC_TOO]]
    page("/end", answer(b"there"))
    got = await read(page("/", answer(status=307, Location=f"http://other.test:{site.port}/end#x")))
    assert (got.url, got.body) == (f"http://other.test:{site.port}/end", b"there")
    assert routes == [PUBLIC, PUBLIC_TOO]


async def test_a_circle_of_redirects_ends(page, site):
    with pytest.raises(OutboundFailed):
        await read(page("/", answer(status=301, Location="/")))
    assert len(site.requests) == 6


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
async def test_a_bomb_is_cut_before_it_unfolds(packing, page):
    small = gzip.compress(bytes(50_000_000), 9) if packing == "gzip" else zlib.compress(bytes(50_000_000), 9)
    assert len(small) < 60_000
    with pytest.raises(OutboundTooLarge):
        await read(page("/", answer(small, Content_Encoding=packing)))


async def test_members_that_unpack_to_nothing_are_cut(page):
    empty = gzip.compress(b"") * 10_000
    with pytest.raises(OutboundTooLarge):
        await read(page("/", answer(empty, length=False, Content_Encoding="gzip")))


@pytest.mark.parametrize(
    ("packing", "packed"),
    [
        ("gzip", gzip.compress(b"first ") + gzip.compress(b"second")),
        ("gzip", gzip.compress(b"first second") + bytes(100)),
        ("deflate", zlib.compress(b"first second")),
        ("deflate", zlib.compress(b"first second", wbits=-15)),
        ("identity", b"first second"),
    ],
    ids=["members", "padded", "zlib", "raw", "plain"],  # gzip's bytes hold the time
)
async def test_packed_answers_are_unpacked(packing, packed, page):
    assert (await read(page("/", answer(packed, Content_Encoding=packing)))).body == b"first second"


@pytest.mark.parametrize("size", [2**18 - 1, 2**18, 2**18 + 1, 2**18 + 258, 2**19, 1_000_003])
async def test_no_byte_is_lost_between_pieces(size, page):
    body = (b"abc" * size)[:size]  # one long run: the packed end can be read whole while much is still to come out
    packed = {"gzip": gzip.compress(body), "deflate": zlib.compress(body, 9, wbits=-15)}
    for packing, sent in packed.items():
        got = await read(page("/", answer(sent, Content_Encoding=packing)), max_bytes=size)
        assert got.body == body


@pytest.mark.parametrize("packing", ["br", "zstd", "gzip, gzip", "nonsense"])
async def test_a_packing_that_was_not_asked_for_fails(packing, page):
    with pytest.raises(OutboundFailed):
        await read(page("/", answer(b"x", Content_Encoding=packing)))


async def test_half_a_packed_answer_fails(page):
    half = gzip.compress(bytes(range(256)) * 50)[:-20]
    with pytest.raises(OutboundFailed):
        await read(page("/", answer(half, Content_Encoding="gzip")))


async def test_an_announced_size_over_the_limit_is_not_read(page):
    with pytest.raises(OutboundTooLarge):
        await read(page("/", answer(b"x").replace(b"Content-Length: 1", b"Content-Length: 5000000000")))


async def test_an_endless_body_is_cut(page):
    sent = 0

    async def endless(writer):
        nonlocal sent
        writer.write(answer(b"", length=False))
        while True:
            writer.write(bytes(10_000))
            await writer.drain()
            sent += 10_000

    with pytest.raises(OutboundTooLarge):
        await read(page("/", endless), max_bytes=50_000)
    assert sent < 20_000_000


async def test_a_body_that_drips_is_cut(page):
    async def drip(writer):
        writer.write(answer(b"", length=False))
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.01)

    with pytest.raises(OutboundTimeout):
        await read(page("/", drip), timeout_s=0.3)


async def test_silence_is_cut(page):
    with pytest.raises(OutboundTimeout):
        await read(page("/", lambda writer: asyncio.sleep(60)), timeout_s=0.2)


SECRET = b"requirepass hunter2"


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (SECRET + b"\r\n\r\n", OutboundFailed),  # another protocol's greeting
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + SECRET, OutboundFailed),
        (b"HTTP/1.1 200 OK\r\n" + SECRET + b"\r\n\r\n", OutboundFailed),
        (b"HTTP/1.1 302 " + SECRET + b"\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n", OutboundRefused),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + SECRET, OutboundFailed),
        (b"", OutboundFailed),
    ],
)
async def test_errors_hold_no_byte_of_what_answered(raw, error, page):
    with pytest.raises(error) as caught:
        await read(page("/", raw))
    assert "hunter2" not in str(caught.value.as_dict()) + repr(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None  # nor does a traceback


async def test_unknown_names_and_shut_ports(page, site, dns):
    url = page()
    with pytest.raises(OutboundFailed):
        await read("http://unknown.test/")
    await site.stop()
    with pytest.raises(OutboundFailed):
        await read(url)


async def test_the_operator_opens_one_host_and_port(site, serve, settings, dns):
    other = await serve()
    settings.OUTBOUND_ALLOW = [f"127.0.0.1:{site.port}", f"inside.test:{site.port}"]
    dns["inside.test"] = [["127.0.0.1"]]
    dns["elsewhere.test"] = [["127.0.0.1"]]
    for host in ("127.0.0.1", "2130706433", "inside.test", "INSIDE.test."):
        assert (await read(f"http://{host}:{site.port}/")).body == b"hello"
    for closed in (
        f"127.0.0.1:{other.port}",
        f"inside.test:{other.port}",
        f"elsewhere.test:{site.port}",
        f"127.0.0.2:{site.port}",
    ):
        with pytest.raises(OutboundRefused):
            await read(f"http://{closed}/")
    assert len(site.requests) == 4


async def test_every_error_has_a_sentence(page):
    for kind in (OutboundError, OutboundFailed, OutboundRefused, OutboundTimeout, OutboundTooLarge):
        assert "name.test" in kind(host="name.test").message
