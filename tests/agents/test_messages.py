"""What every send looks like, however the history was cut."""

from itertools import combinations

from apps.agents.messages import INTERRUPTED_ANSWER, INTERRUPTED_TOOL, question_and_answer, repair, split_turns


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {"role": "assistant", "content": text}


def calls(*ids):
    made = [{"id": i, "type": "function", "function": {"name": "doc_retrieval", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id, text="found"):
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def test_calls_that_no_vendor_could_read_are_shown_as_empty_ones():
    made = calls("a", "b", "c", "d")
    raws = ('{"query": "a', '{"query": "b"}', "[1]", r'"{\"query\": \"d\"}"')
    names = ("doc_retrieval", "doc_retrieval", "web search!", "doc_retrieval")
    for one, raw, name in zip(made["tool_calls"], raws, names, strict=True):
        one["function"] = {"name": name, "arguments": raw}
    before = repr(made)
    shown = repair([user("first"), made, *map(result, "abcd")])[1]["tool_calls"]
    assert [one["function"]["arguments"] for one in shown] == ["{}", '{"query": "b"}', "{}", '{"query":"d"}']
    assert [one["function"]["name"] for one in shown][2] == "web_search_"
    assert repr(made) == before


WHOLE = [
    {"role": "system", "content": "rules"},
    user("first"),
    calls("a", "b", "c"),
    result("a"),
    result("b"),
    result("c"),
    said("answer"),
    user("second"),
]


def assert_sendable(messages):
    pending, seen = [], set()
    assert next(m for m in messages if m["role"] != "system")["role"] == "user"
    assert sum(m["role"] == "system" for m in messages) <= 1
    for before, message in zip([None, *messages], messages, strict=False):
        if message["role"] == "tool":
            assert message["tool_call_id"] in pending
            pending.remove(message["tool_call_id"])
        else:
            assert not pending
            pending = [call["id"] for call in message.get("tool_calls", ())]
            assert not seen & set(pending)
            seen |= set(pending)
        if message["role"] == "user" and before:
            assert before["role"] in {"assistant", "system"}
    assert not pending


def test_a_whole_history_passes_unchanged():
    assert repair(WHOLE) == WHOLE


def test_every_way_to_lose_messages_ends_sendable():
    for size in range(5):
        for lost in combinations(range(len(WHOLE) - 1), size):
            assert_sendable(repair([m for i, m in enumerate(WHOLE) if i not in lost]))


def test_a_missing_result_says_so_and_a_doubled_one_goes():
    cut = [user("q"), calls("a", "b"), result("a"), result("a", "again"), user("next")]
    assert repair(cut) == [
        user("q"),
        calls("a", "b"),
        result("a"),
        result("b", INTERRUPTED_TOOL),
        said(INTERRUPTED_ANSWER),
        user("next"),
    ]


def test_it_is_stable():
    cut = [result("z"), user("q"), calls("a"), user("next"), said("x"), {"role": "system", "content": "late"}]
    assert repair(repair(cut)) == repair(cut)


def test_turns_and_pairs():
    turns = split_turns(WHOLE)
    assert [turn[0]["content"] for turn in turns] == ["first", "second"]
    assert question_and_answer(turns[0]) == ("first", "answer")
    assert question_and_answer(turns[1]) == ("second", "")
