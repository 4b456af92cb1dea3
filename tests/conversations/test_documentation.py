"""docs/websocket.md says what the code says."""

import re
from pathlib import Path

from apps.common import errors as common
from apps.conversations import consumers, errors, frames

TEXT = (Path(__file__).parents[2] / "docs" / "websocket.md").read_text()


def table(heading):
    """The rows of the first table after a heading: first cell without its code marks, second cell."""
    lines = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ", 1) for line in lines if line.startswith("| `")]
    return {first.strip("`"): second for first, second in rows}


def test_every_event_and_its_names():
    documented = table("Server to client")
    assert list(documented) == list(frames.EVENTS)
    for kind, names in frames.EVENTS.items():
        listed = re.findall(r"`(\w+)`", documented[kind].split(":")[0])
        assert tuple(listed) == names, kind


def test_every_client_frame():
    kinds = {re.search(r'"type":"(\w+)"', row)[1] for row in table("Client to server")}
    assert kinds == {"ask", "stop", "resume", "ping"}
    asked = next(text for row, text in table("Client to server").items() if "ask" in row)
    for name in frames.Ask.model_fields.keys() - {"type", "text", "client_id"}:
        assert f"`{name}`" in asked


def test_every_error_code():
    inside_turns = {errors.TurnInterrupted, errors.TurnCrashed, errors.AnswerNotStored}
    ours = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, common.KnowSphereError) and value.__module__ == errors.__name__
    }
    codes = {error.code for error in ours - inside_turns}
    codes |= {common.NotFound.code, common.ServiceUnavailable.code, consumers.Unexpected.code}
    assert set(table("Errors")) == codes


def test_the_limits():
    assert f"{frames.MAX_QUESTION:,} characters" in TEXT
    assert f"{frames.MAX_FRAME_BYTES // 1024} KB" in TEXT
