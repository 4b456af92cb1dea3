"""The parser of server-sent events: any cut of the same bytes gives the same events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.models.wire.events import MAX_EVENT_BYTES, EventParser, EventTooLong
from apps.models.wire.reasoning import ThinkFilter

LINE_ENDS = (b"\n", b"\r\n", b"\r")
texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
lines = st.one_of(
    texts.map(lambda text: b"data: " + text.encode()),
    texts.map(lambda text: b"data:" + text.encode()),
    texts.map(lambda text: b": " + text.encode()),
    st.sampled_from([b"", b"", b"event: message", b"id: 7", b"retry", b"data", b"  data: x"]),
)


def parse(parts):
    parser = EventParser()
    events = [event for part in parts for event in parser.feed(part)]
    return events + parser.finish()


def by_the_standard(source):
    """A plain reading of the standard, on text that is there as a whole."""
    text = source.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events, data = [], []
    for line in [*text.split(b"\n"), b""]:
        name, colon, value = line.partition(b":")
        if not line and data:
            events.append(b"\n".join(data))
            data = []
        elif name == b"data" and colon:
            data.append(value.removeprefix(b" "))
    return events


@given(st.lists(st.tuples(lines, st.sampled_from(LINE_ENDS))), st.booleans(), st.data())
def test_where_the_bytes_are_cut_changes_nothing(source, bom, data):
    whole = b"\xef\xbb\xbf" * bom + b"".join(line + end for line, end in source)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    parts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert parse(parts) == by_the_standard(whole)
    assert parse(bytes([byte]) for byte in whole) == by_the_standard(whole)


@pytest.mark.parametrize(
    ("source", "events"),
    [
        (b'data: {"a":1}\n\ndata: [DONE]', [b'{"a":1}', b"[DONE]"]),
        (b'{"error":{"message":"x"}}\n', [b'{"error":{"message":"x"}}']),
        (b": keep-alive\n\n\n\ndata: 1\n\n", [b"1"]),
        ("data: 二十\n\n".encode(), ["二十".encode()]),
        (b"", []),
    ],
)
def test_what_vendors_send(source, events):
    assert parse([source]) == events


def test_an_endless_line_is_not_kept():
    with pytest.raises(EventTooLong):
        parse([b"x" * 2**20] * (MAX_EVENT_BYTES // 2**20 + 1))


thoughts = st.lists(
    st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "a", "<", "/", ">", "\n", " ", "thin", "中"]),
    max_size=12,
).map("".join)


def split(parts, **options):
    filtered = ThinkFilter(**options)
    pairs = [filtered.feed(part) for part in parts] + [filtered.finish()]
    return "".join(answer for answer, _ in pairs), "".join(thought for _, thought in pairs)


@given(thoughts, st.booleans(), st.data())
def test_where_the_text_is_cut_changes_no_thought(whole, opened, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    parts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert split(parts, opened=opened) == split([whole], opened=opened)
    assert split(whole, opened=opened) == split([whole], opened=opened)
