"""What a turn did, told from its events."""

from types import SimpleNamespace

from apps.conversations.steps import timeline


def event(type, **data):  # noqa: A002
    return SimpleNamespace(type=type, data=data)


EVENTS = [
    event("step", name="prepare_context", status="finished", elapsed_ms=1),
    event("step", name="query_understand", status="started", elapsed_ms=0),
    event("understanding", rewrite_query="opening hours of the vault"),
    event("step", name="query_understand", status="finished", elapsed_ms=400),
    event("step", name="agent", status="started", elapsed_ms=0),
    event("step", name="agent", status="finished", elapsed_ms=700),
    event("tool.started", call_id="a", name="doc_retrieval", arguments={"query": "vault"}),
    event("tool.finished", call_id="a", name="doc_retrieval", ok=True, summary="8 passages", elapsed_ms=90),
    event("tool.started", call_id="b", name="list_chunks", arguments={}),
    event("tool.finished", call_id="b", name="list_chunks", ok=False, summary="", elapsed_ms=5),
    event("step", name="agent", status="started", elapsed_ms=0),
    event("step", name="agent", status="finished", elapsed_ms=2000),
]


def test_steps_come_in_order_with_times_and_what_was_looked_for():
    lines = timeline(EVENTS, answered=True, over=True)
    assert [(line.label, line.state, line.seconds) for line in lines] == [
        ("Understood the question", "ok", 0.4),
        ("Searched", "ok", 0.09),
        ("Read passages", "bad", 0.005),
        ("Answered", "ok", 2.0),
    ]
    assert lines[0].details == ["“opening hours of the vault”"]
    assert lines[1].details == ["“vault”", "8 passages"]


def test_a_step_that_never_ended_was_cut_off():
    (line,) = timeline(EVENTS[1:2], answered=False, over=True)
    assert (line.state, line.label) == ("bad", "Understood the question")


def test_what_was_amiss_is_said():
    events = [
        event("step", name="store_answer", status="started", elapsed_ms=0, detail="The database does not answer."),
        event("step", name="store_answer", status="finished", elapsed_ms=3000, detail=""),
        event("step", name="checkpoint", status="failed", elapsed_ms=0, detail="Not saved."),
    ]
    lines = timeline(events, answered=False, over=True)
    assert [(line.label, line.state, line.details) for line in lines] == [
        ("Stored the answer", "ok", ["The database does not answer."]),
        ("The conversation’s state was not saved", "bad", ["Not saved."]),
    ]
