"""Whose address a request has behind proxies: as those say that are named, and nobody else."""

import asyncio

import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from apps.common import logs
from knowsphere import supervisor


def seen(trusted, peer, forwarded):
    """Return whom the application sees, as uvicorn tells it with the options that we start it with."""
    found = []

    async def application(scope, receive, send):
        found.extend((scope["client"][0], scope["scheme"]))

    headers = [(b"x-forwarded-for", forwarded.encode()), (b"x-forwarded-proto", b"https")]
    scope = {"type": "http", "client": (peer, 1), "scheme": "http", "headers": headers}
    asyncio.run(ProxyHeadersMiddleware(application, trusted)(scope, None, None))
    return found


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "expected"),
    [
        ("10.0.0.0/8", "10.1.2.3", "203.0.113.9", ["203.0.113.9", "https"]),
        ("10.0.0.0/8", "10.1.2.3", "6.6.6.6, 203.0.113.9, 10.9.9.9", ["203.0.113.9", "https"]),  # 6.6.6.6 is a claim
        ("10.0.0.0/8", "198.51.100.7", "203.0.113.9", ["198.51.100.7", "http"]),  # no proxy of ours
        ("", "127.0.0.1", "203.0.113.9", ["203.0.113.9", "https"]),
        ("", "10.1.2.3", "203.0.113.9", ["10.1.2.3", "http"]),
    ],
)
def test_only_proxies_that_are_named_say_whose_address_it_is(monkeypatch, proxies, peer, forwarded, expected):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", proxies)
    command = supervisor.web_command()
    assert seen(command[command.index("--forwarded-allow-ips") + 1], peer, forwarded) == expected


def test_an_address_that_is_none_stays_out_of_the_log():
    said = ("203.0.113.9", "::1", "fe80::1%eth0", "", None, "unknown", "testclient")
    assert [logs.address(host) for host in said] == ["203.0.113.9", "::1", "fe80::1", None, None, None, None]
