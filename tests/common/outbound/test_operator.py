"""OUTBOUND_ALLOW is checked at the start."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from knowsphere import environment


def test_a_list_of_hosts_and_ports(monkeypatch):
    monkeypatch.setenv("OUTBOUND_ALLOW", " localhost:11434, 10.0.0.5:80,[::1]:8080,")
    assert environment.host_ports("OUTBOUND_ALLOW") == ["localhost:11434", "10.0.0.5:80", "[::1]:8080"]


@pytest.mark.parametrize("entry", ["localhost", "http://localhost:11434", "10.0.0.0/8:80", "*:80", "a:0", "::1:80"])
def test_an_entry_that_opens_nothing_stops_the_start_by_name(entry, monkeypatch):
    monkeypatch.setenv("OUTBOUND_ALLOW", f"fine:80,{entry}")
    with pytest.raises(ImproperlyConfigured, match="OUTBOUND_ALLOW") as caught:
        environment.host_ports("OUTBOUND_ALLOW")
    assert repr(entry) in str(caught.value)
