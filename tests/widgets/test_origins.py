"""Where a widget may stand: exact scheme, host and port; a star for one label; nothing by default."""

import pytest

from apps.widgets.origins import allows, normalise

LIST = ["https://example.com", "http://dev.example.com:8080", "https://*.shops.example"]


@pytest.mark.parametrize(
    "origin",
    ["https://example.com", "https://example.com:443", "HTTPS://EXAMPLE.COM", "http://dev.example.com:8080",
     "https://berlin.shops.example"],
)  # fmt: skip
def test_allowed(origin):
    assert allows(LIST, origin)


@pytest.mark.parametrize(
    "origin",
    ["", "null", "https://example.com.evil.test", "https://evil-example.com", "http://example.com",
     "https://example.com:8443", "https://www.example.com", "http://dev.example.com", "https://shops.example",
     "https://a.b.shops.example", "http://berlin.shops.example", "https://*.shops.example", "https://user@example.com",
     "https://example.com@evil.test", "https://example.com/path", "file://", "javascript:alert(1)", "https://[::1",
     "https://example.com\\@evil.test", "https://例子.com", "chrome-extension://abc"],
)  # fmt: skip
def test_refused(origin):
    assert not allows(LIST, origin)
    assert not allows([], origin)


def test_an_empty_list_is_no_site():
    assert not allows([], "https://example.com")


@pytest.mark.parametrize(
    ("written", "kept"),
    [("https://Example.com/", "https://example.com"), (" http://a.example:80 ", "http://a.example"),
     ("https://例子.测试", "https://xn--fsqu00a.xn--0zwm56d"), ("http://[::1]:8000", "http://[::1]:8000"),
     ("https://*.example.com", "https://*.example.com"), ("http://localhost:3000", "http://localhost:3000")],
)  # fmt: skip
def test_kept_as_browsers_write_them(written, kept):
    assert normalise(written) == kept


@pytest.mark.parametrize(
    "written",
    ["", "*", "https://*", "https://*.com.*", "example.com", "//example.com", "https://a b.example", "https://a.example/x",
     "https://a.example:99999", "https://-a.example", "https://*.", "ftp://a.example"],
)  # fmt: skip
def test_not_an_origin(written):
    with pytest.raises(ValueError):  # noqa: PT011 (urllib's own messages differ)
        normalise(written)
