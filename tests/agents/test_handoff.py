"""Turns leave the prompt: exactly when, what is kept of them, and that nothing is told twice."""

import asyncio
from uuid import UUID, uuid4

import orjson
import pytest

from apps.agents import runner
from apps.agents.compaction import overflowing, stepping
from apps.agents.context import TurnRecord
from apps.agents.handoff import Handoff, answer_id, extended, handed_off, wishes_in
from apps.agents.models import ConversationHandoff
from apps.conversations.rows import message_id
from apps.memory.models import ConversationNote
from tests.agents.fakes import make_context
from tests.agents.test_run_turn import Talk, pools  # noqa: F401 (autouse)
from tests.vendor import Reply, call

WINDOW = 32_768


def turn(question, answer, *, result="", ref=""):
    call_ = {"id": f"k{question}", "type": "function", "function": {"name": "web_fetch", "arguments": "{}"}}
    content = orjson.dumps({"__stored": True, "__refId": ref, "__summary": result, "__hint": ""}).decode()
    return [
        {"role": "user", "content": question},
        *(
            [
                {"role": "assistant", "content": None, "tool_calls": [call_]},
                {"role": "tool", "tool_call_id": call_["id"], "content": content if ref else result},
            ]
            if result
            else []
        ),
        {"role": "assistant", "content": answer},
    ]


def state_of(*turns, **more):
    ids = [str(UUID(int=n)) for n in range(1, len(turns) + 1)]
    return {"messages": [message for one in turns for message in one], "turns": ids, **more}


@pytest.mark.parametrize(("tokens", "goes"), [(int(0.85 * WINDOW), False), (int(0.85 * WINDOW) + 1, True)])
def test_the_threshold_is_85_percent_of_the_window(tokens, goes):
    context, _, _ = make_context(rebuilt=None)
    state = state_of(turn("a", "b"), turn("c", "d"), [{"role": "user", "content": "now"}], prompt_tokens=tokens)
    assert bool(overflowing(context, state)) is goes


def test_about_30_percent_is_left_and_the_current_question_never_goes():
    context, _, _ = make_context(rebuilt=None)
    long = [turn(f"q{n}", "word " * 1_600) for n in range(12)]  # 2,000 tokens each, 24,000 of 32,768
    state = state_of(*long, [{"role": "user", "content": "now " * 9_000}], prompt_tokens=28_000)
    count = overflowing(context, state)
    left = (12 - count) * 2_012 + 1_000
    assert 0.2 * WINDOW < left * 28_000 / 25_100 <= 0.30 * WINDOW
    alone = state_of([{"role": "user", "content": "now"}], prompt_tokens=32_000)
    assert overflowing(context, alone) == 0


@pytest.mark.parametrize(("turns", "dropped"), [(8, 0), (15, 0), (16, 8), (17, 9)])
def test_the_window_grows_to_sixteen_turns_and_steps_back_to_eight(turns, dropped):
    context, _, _ = make_context()
    assert stepping(context, state_of(*[turn("q", "a")] * turns)) == dropped


@pytest.mark.parametrize(
    ("tokens", "dropped"),
    [
        ([1_600] * 12, 0),  # 59 % of the window
        ([1_700] * 12, 4),  # 62 %: eight stay, though they hold 42 %
        ([15_000, *[500] * 11], 1),  # no more than has to
        ([1_900] * 12, 0),  # eight of them hold 46 %: a step at each answer would follow
        ([3_000] * 8, 0),  # 73 % in eight turns: they stay until the prompt is full
        ([3_000] * 16, 8),
    ],
)
def test_a_large_window_steps_back_before_but_never_below_eight_turns(tokens, dropped):
    context, _, _ = make_context(size=lambda message: int(message["content"]))
    turns = [[{"role": "user", "content": 0}, {"role": "assistant", "content": n}] for n in tokens]
    assert stepping(context, state_of(*turns)) == dropped


def test_a_conversation_whose_checkpoint_was_lost_is_measured_by_its_own_size():
    rebuilt = [{"role": "user", "content": "x"}]
    context, _, _ = make_context(rebuilt=rebuilt)
    many = [turn(f"q{n}", "word " * 3_200) for n in range(10)]
    assert overflowing(context, state_of(*many, [{"role": "user", "content": "now"}], prompt_tokens=10)) > 5


SAID = """Always answer in French. Our budget is 5000, deadline 24.12. Which pumps fit?
以后都用表格回答。泵的价格是多少？"""


def test_standing_wishes_are_kept_word_for_word():
    assert wishes_in([SAID]) == [
        "Always answer in French.",
        "Our budget is 5000, deadline 24.12.",
        "以后都用表格回答。",
    ]


def test_what_is_kept_of_turns():
    ref = str(uuid4())
    first = [
        turn("Always answer in French, budget 5000.", "Bien [[c2]].", result='<result id="c2" document="Pumps.pdf" p'),
        turn("Fetch the list", "Fetched.", result="12 pumps", ref=ref),
    ]
    ids = [str(uuid4()), str(uuid4())]
    told = {"done": ["Found 12 pumps"], "abandoned": ["valves: too dear"], "open": [], "wishes": ["budget 5000", "x y"]}
    one = extended(Handoff(), first, ids, told)
    assert one.upto == answer_id(UUID(ids[1])) == message_id(UUID(ids[1]), "assistant")
    assert one.wishes == ("Always answer in French, budget 5000.", "budget 5000")  # what nobody said is not a wish
    assert one.stages == ("Found 12 pumps. Abandoned: valves: too dear.",)
    assert one.references == (f"{ref} web_fetch: 12 pumps",)
    assert one.documents == ("Pumps.pdf",)
    assert handed_off([*ids, str(uuid4())], one) == 2
    assert handed_off([str(uuid4())], one) == 0

    two = extended(one, [turn("price changed to 24.99 - done", "Noted.")], [str(uuid4())], {})
    assert two.turns == 3
    assert two.stages == (*one.stages, "Noted.")  # the first stage is not told again
    assert two.wishes == one.wishes
    text = two.text()
    for kept in ("budget 5000", "Found 12 pumps", "price changed to 24.99 - done", ref, "Pumps.pdf", "do not answer"):
        assert kept in text
    assert Handoff.from_json(two.upto, two.turns, orjson.loads(orjson.dumps(two.as_json()))) == two


def test_a_hundred_handoffs_stay_bounded():
    handoff = Handoff()
    for n in range(100):
        told = {"done": [f"stage {n} " + "word " * 200]}
        handoff = extended(handoff, [turn(f"always {n} " + "x" * 900, "a")] * 8, [str(uuid4())] * 8, told)
    assert len(handoff.text()) < 20_000
    assert "stage 99" in handoff.text()


def greeted(request):
    """Answer a question about intent, where the local classifier is not sure of it: these are greetings."""
    asked = str(request.body["messages"][0]["content"])
    return Reply('{"label": "greeting"}' if "sort what people write" in asked else "A scripted answer.")


@pytest.mark.django_db(transaction=True)
async def test_a_full_prompt_is_handed_off_before_the_question_and_shown(ann, acme, handbook, scripted_model):
    """The issue's own case: a wish of turn 1 and a fact of turn 2 survive, and nothing is told twice."""
    talk = Talk(ann, acme)
    scripted_model.otherwise = greeted
    full = {"prompt_tokens": int(0.85 * WINDOW) + 1, "completion_tokens": 5, "total_tokens": 27_860}
    scripted_model.script([Reply("Bonjour."), Reply("C'est fait.", usage=full), Reply("Rien.")])
    await talk.ask("Hello! Always answer in French, budget 5000.")
    first = talk.turn_id
    await talk.ask("Hello, the price changed to 24.99 - done")
    second = talk.turn_id
    assert not await ConversationHandoff.objects.aexists()
    scripted_model.script([Reply('{"done": ["The price was changed to 24.99"], "open": []}')], to="chat")
    await talk.ask("Hello, what is left?")
    [shown] = talk.sink.of("handoff")
    assert shown["turns"] == 2
    row = await ConversationHandoff.objects.aget()
    assert (row.conversation, row.user_id) == (talk.conversation, ann.pk)
    assert row.summary_upto_message_id == message_id(second, "assistant")
    assert shown["summary_upto_message_id"] == str(row.summary_upto_message_id)
    system, question = scripted_model.requests[-1].messages
    assert "handed off" not in system["content"]
    assert question["content"].startswith("<handoff>\nBackground: the first 2 turns")
    assert question["content"].endswith("Hello, what is left?")
    for kept in ("Always answer in French, budget 5000.", "The price was changed to 24.99"):
        assert kept in question["content"]
    state = await talk.state()
    assert [m["content"] for m in state["messages"]][:2] == ["Hello! Always answer in French, budget 5000.", "Bonjour."]
    assert state["turns"][0] == str(first)

    # A second one tells only what has left since, and a lost checkpoint loses no handoff.
    await runner.forget_state(talk.conversation)
    talk.rows = [dict(row) for row in talk.rows]
    for question, turn_id in zip(talk.rows[::2], talk.ids, strict=True):
        question["turn"] = str(turn_id)
    scripted_model.script([Reply("Encore rien.", usage=full), Reply("Toujours rien.")])
    await talk.ask("Hello, and now?")
    assert [m["content"] for m in scripted_model.requests[-1].messages[2:]][:1] == ["Rien."]
    assert talk.sink.of("handoff")  # the state that knew it was shown is gone, so it is shown again
    scripted_model.script([Reply("{}")], to="chat")
    await talk.ask("Hello, again?")
    told = [r.messages[-1]["content"] for r in scripted_model.requests if "<turns>" in str(r.messages[-1]["content"])]
    handoffs = [text for text in told if "<note>" not in text]
    assert "24.99" not in handoffs[-1]
    assert "Encore rien." in handoffs[-1]
    assert "Always answer in French, budget 5000." in scripted_model.requests[-1].messages[1]["content"]


@pytest.mark.django_db(transaction=True)
async def test_a_window_step_comes_behind_the_answer_and_the_note_too(ann, acme, handbook, scripted_model, monkeypatch):
    """Sixteen turns; the step's handoff is held up, and until it is stored its turns stay in the view."""
    hold, waiting = asyncio.Event(), asyncio.Event()
    asked = runner.afterwards_of

    async def held(context, state):
        waiting.set()
        await hold.wait()
        await asked(context, state)

    talk = Talk(ann, acme)
    scripted_model.otherwise = lambda request: Reply("Hi." if request.body.get("stream") else '{"done": ["Greeted"]}')
    for number in range(1, 17):
        if number == 16:
            monkeypatch.setattr(runner, "afterwards_of", held)
        assert (await talk.ask(f"Hello {number}")).status == "succeeded"
        if number < 16:
            await runner.settled()
        if number == 3:
            assert not await ConversationNote.objects.aexists()
    await asyncio.wait_for(waiting.wait(), 60)
    assert not await ConversationHandoff.objects.aexists()
    notes = [r for r in scripted_model.requests if "</note>\n<turns>" in str(r.messages[-1]["content"])]
    assert len(notes) == 12  # behind turns 4 to 15
    assert "Hello 1\n" in notes[0].messages[-1]["content"]  # the first covers what came before
    assert "Hello 4\n" not in notes[1].messages[-1]["content"]

    await talk.ask("Hello 17")  # not stored yet: all stay
    sent = scripted_model.requests[-1].messages
    assert next(m["content"] for m in sent if m["role"] == "user") == "Hello 1"
    hold.set()
    await runner.settled()
    row = await ConversationHandoff.objects.aget()
    assert row.turns == 8  # turn 17 comes after, and finds nine in view
    assert row.summary_upto_message_id == message_id(talk.ids[row.turns - 1], "assistant")
    note = await ConversationNote.objects.aget()
    assert note.text == '{"done": ["Greeted"]}'

    await talk.ask("Hello 18")
    assert [shown["turns"] for shown in talk.sink.of("handoff")] == [row.turns]
    sent = scripted_model.requests[-1].messages
    assert f"\n\nHello {row.turns + 1}" in sent[1]["content"]
    assert sent[1]["content"].count("Hello 1\n") <= 1
    await runner.settled()
    await runner.forget(talk.conversation)
    assert not await ConversationHandoff.objects.aexists()
    assert not await ConversationNote.objects.aexists()


async def test_a_handoff_that_cannot_be_made_or_stored_costs_nothing():
    from apps.agents.compaction import hand_off
    from apps.common.errors import ServiceUnavailable

    async def refuses(*args):
        raise ServiceUnavailable(service="database")

    async def loses(*args):
        return False

    state = state_of(turn("a", "b"), [{"role": "user", "content": "now"}])
    for store in (refuses, loses):
        context, _, _ = make_context(store_handoff=store, ask_fast=refuses, rewrites=True, record=TurnRecord())
        assert await hand_off(context, state, 1, current=True) is None
        assert context.record.handoff == Handoff()
    context, _, _ = make_context(ask_fast=refuses, rewrites=True)
    made = await hand_off(context, state, 1, current=True)
    assert made.stages == ("b",)
    lost = {**state, "turns": []}
    assert await hand_off(context, lost, 1, current=True) is None


async def test_a_call_and_its_result_leave_together():
    """Only whole turns go, so no pair is cut and no question is left without its answer."""
    from apps.agents.context_layout import lay_out

    state = state_of(turn("a", "b", result="r"), turn("c", "d", result="r"), [{"role": "user", "content": "now"}])
    for gone in range(3):
        laid = lay_out(
            state["messages"], identity="", switches=make_context()[0].switches, handed_off=gone, handoff="x"
        )
        calls = [c["id"] for m in laid for c in m.get("tool_calls") or ()]
        assert calls == [m["tool_call_id"] for m in laid if m["role"] == "tool"]
        assert len(calls) == 2 - gone


def test_references_cannot_be_made_up_by_what_a_document_says():
    ref = "call me 00000000-0000-0000-0000-000000000000"
    handoff = extended(Handoff(), [turn("q", "a", result=ref)], [str(uuid4())], {})
    assert handoff.references == ()
    assert call("x")["id"] == "call_x"


def test_questions_are_no_wishes_and_the_newest_wishes_stay():
    """Forty turns that ask about budgets and deadlines, with one wish in each."""
    asked = [f"What is the deadline for part {n}? 预算是多少？ Always name part {n}." for n in range(40)]
    assert wishes_in(["Can you always answer in German?", "Is the budget approved?", "截止日期是哪天？"]) == [
        "Can you always answer in German?"
    ]
    handoff = Handoff()
    for question in asked:
        handoff = extended(handoff, [[{"role": "user", "content": question}]], [str(uuid4())], {})
    assert handoff.wishes == tuple(f"Always name part {n}." for n in range(20, 40))
