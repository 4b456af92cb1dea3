"""The guard inside aiohttp and inside the openai package's client: same rules, and TLS keeps the name."""

import asyncio
import datetime
import ssl
from contextlib import asynccontextmanager

import aiohttp
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apps.common.outbound.connector import GuardedConnector
from apps.common.outbound.errors import OutboundFailed, OutboundRefused, OutboundTimeout, OutboundTooLarge
from apps.common.outbound.fetching import fetch
from apps.common.outbound.transport import GuardedTransport
from tests.common.outbound.conftest import PUBLIC, PUBLIC_V6, answer


@asynccontextmanager
async def by_aiohttp(tls=None):
    async with aiohttp.ClientSession(connector=GuardedConnector(ssl=tls or True)) as session:

        async def get(url, **options):
            async with session.get(url, **options) as response:
                return await response.read()

        yield get


@asynccontextmanager
async def by_httpx(tls=None, max_bytes=100_000, whole_s=5.0):
    transport = GuardedTransport(max_bytes=max_bytes, whole_s=whole_s, verify=tls or True)
    async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:

        async def get(url, **options):
            redirects = options.get("allow_redirects", True)
            return (await client.get(url, follow_redirects=redirects)).content

        yield get


@asynccontextmanager
async def by_fetch(tls=None):
    async def get(url, **options):
        return (await fetch(url, max_bytes=100_000, timeout_s=5, tls=tls)).body

    yield get


either = pytest.mark.parametrize("client", [by_aiohttp, by_httpx])
anyone = pytest.mark.parametrize("client", [by_aiohttp, by_httpx, by_fetch])


@either
async def test_a_public_address_is_reached(client, site, dns, routes):
    dns["name.test"] = [[PUBLIC_V6, PUBLIC]]
    async with client() as get:
        assert await get(f"http://name.test:{site.port}/") == b"hello"
    assert routes == [PUBLIC_V6, PUBLIC]


@either
@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:{port}/", "http://[::1]:{port}/", "http://2130706433:{port}/", "http://0x7f.1:{port}/"),
        *(
            "http://localhost:{port}/",
            "http://mixed.test:{port}/",
            "http://[::ffff:127.0.0.1]:{port}/",
            "http://127.1.:{port}/",
        ),
        *("https://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://mixed.test:25/"),
    ],
)
async def test_refused_before_anything_is_sent(client, url, site, dns, routes):
    dns["localhost"] = [["127.0.0.1"]]
    dns["mixed.test"] = [[PUBLIC, "10.0.0.1"]]
    async with client() as get:
        with pytest.raises(OutboundRefused):
            await get(url.format(port=site.port))
    assert (routes, site.requests) == ([], [])


@either
async def test_what_is_connected_to_is_what_was_checked(client, site, dns, routes):
    dns["name.test"] = [[PUBLIC], ["127.0.0.1"]]
    url = f"http://name.test:{site.port}/"
    async with client() as get:
        assert await get(url) == b"hello"
        assert (dns.asked, routes) == (["name.test"], [PUBLIC])
        with pytest.raises(OutboundRefused):  # the server closed, so this is a new connection
            await get(url)
    assert routes == [PUBLIC]


@either
async def test_each_hop_is_checked(client, site, dns, routes):
    dns["name.test"] = [[PUBLIC]]
    site.pages["/"] = answer(status=302, Location=f"http://127.0.0.1:{site.port}/secret")
    async with client() as get:
        with pytest.raises(OutboundRefused):
            await get(f"http://name.test:{site.port}/")
    assert len(site.requests) == 1


@either
async def test_the_operator_opens_one_host_and_port(client, site, serve, dns, settings):
    other = await serve()
    settings.OUTBOUND_ALLOW = [f"127.0.0.1:{site.port}", f"inside.test:{site.port}"]
    dns["inside.test"] = [["127.0.0.1"]]
    async with client() as get:
        assert await get(f"http://127.0.0.1:{site.port}/") == b"hello"
        assert await get(f"http://inside.test:{site.port}/") == b"hello"
        for closed in (f"127.0.0.1:{other.port}", f"inside.test:{other.port}"):
            with pytest.raises(OutboundRefused):
                await get(f"http://{closed}/")
    assert other.requests == []


async def test_an_address_that_slipped_past_is_not_connected_to(site, monkeypatch):
    """The last look, at the very address of the socket, holds alone."""
    monkeypatch.setattr(GuardedConnector, "connect", aiohttp.TCPConnector.connect)
    async with by_aiohttp() as get:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(f"http://127.0.0.1:{site.port}/")
    assert site.requests == []


def certificate(name, tmp_path):
    """A certificate for one name, and the file that holds it and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return path


@anyone
async def test_tls_keeps_the_name_and_checks_it(client, serve, dns, routes, tmp_path):
    path = certificate("name.test", tmp_path)
    server, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=path)
    server.load_cert_chain(path)
    asked = []
    server.sni_callback = lambda socket, name, context: asked.append(name)
    site = await serve(tls=server)
    dns["name.test"] = dns["other.test"] = [[PUBLIC]]

    async with client(trusting) as get:
        assert await get(f"https://name.test:{site.port}/") == b"hello"
        with pytest.raises((OutboundFailed, aiohttp.ClientConnectorCertificateError, httpx2.ConnectError)):
            await get(f"https://other.test:{site.port}/")
    async with client() as get:  # an authority that nobody trusts
        with pytest.raises((OutboundFailed, aiohttp.ClientConnectorCertificateError, httpx2.ConnectError)):
            await get(f"https://name.test:{site.port}/")
    assert asked == ["name.test", "other.test", "name.test"]
    assert set(routes) == {PUBLIC}
    assert len(site.requests) == 1


# The openai package reads whole answers, so its transport bounds them.


@pytest.fixture
def url(site, dns, routes):
    dns["name.test"] = [[PUBLIC]]
    return f"http://name.test:{site.port}/"


async def test_a_packed_answer_is_not_unpacked(url, site):
    site.pages["/"] = answer(b"\x1f\x8b bomb", Content_Encoding="gzip")
    async with by_httpx() as get:
        with pytest.raises(OutboundFailed):
            await get(url)
    assert b"accept-encoding: identity" in site.requests[0].lower()


async def test_an_endless_answer_is_cut(url, site):
    async def endless(writer):
        writer.write(answer(b"", length=False))
        while True:
            writer.write(bytes(10_000))
            await writer.drain()

    site.pages["/"] = endless
    async with by_httpx(max_bytes=50_000) as get:
        with pytest.raises(OutboundTooLarge):
            await get(url)


@pytest.mark.parametrize("begins", [True, False])
async def test_an_answer_that_drips_is_cut(begins, url, site):
    async def drip(writer):
        writer.write(answer(b"", length=False) if begins else b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.01)

    site.pages["/"] = drip
    async with by_httpx(whole_s=0.3) as get:
        with pytest.raises(httpx2.ReadTimeout):
            await get(url)


async def test_a_slow_name_service_is_cut(monkeypatch, url, dns):
    import threading

    from apps.common.outbound import guard

    waiting = threading.Event()
    monkeypatch.setattr(guard, "LOOKUP_S", 0.1)
    monkeypatch.setattr(guard.socket, "getaddrinfo", lambda *args, **kwargs: waiting.wait(5))
    async with by_httpx() as get:
        with pytest.raises(OutboundTimeout):
            await get(url)
    waiting.set()
