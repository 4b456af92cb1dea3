"""The examples of docs/api.md run."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
EXAMPLES = re.findall(r"(?ms)^```python\n(.*?)^```", TEXT)
PLACEHOLDER = 'ADDRESS, KEY = "https://ks.example.com", "ks_…"'


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(address, secret, number, capsys):
    assert PLACEHOLDER in EXAMPLES[number]
    names: dict = {}
    exec(EXAMPLES[number].replace(PLACEHOLDER, f"ADDRESS, KEY = {address!r}, {secret!r}"), names)
    said = capsys.readouterr().out
    if number == 1:
        first, last = said.splitlines()[0], said.splitlines()[-1]
        assert "/invitations/" in first
        assert '"action":"share.given"' in last
    if number == 0:
        assert said.splitlines()[0] == "uploaded"
        assert said.splitlines()[-1] == "not_found False"
        assert names["turn"]["status"] == "succeeded"
    for name in ("api", "client"):
        if name in names:
            names[name].close()


def test_the_page_has_its_examples():
    assert len(EXAMPLES) == 3
