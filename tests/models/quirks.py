"""What vendors really send, streamed and whole, and what it means: the table behind the suite of quirks.

A row has the values of a stream, the message of a whole answer (None: the quirk has no such form), and
what has to come out of both.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.vendor.replies import chunk

A, B = ("a", '{"x": 1}'), ("b", '{"y": 2}')


@dataclass(frozen=True)
class Quirk:
    """``broken``: what came before stands, and the end is an error. ``refused``: the vendor's filter."""

    name: str
    chunks: list[Any]
    message: Any = None
    finish: str | None = "stop"  # of the whole answer
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    reason: str = "stop"
    usage: tuple[int, int, int] | None = None  # prompt, completion, cached; None: estimated
    broken: bool = False
    refused: bool = False
    whole: dict[str, Any] = field(default_factory=dict)  # more of the whole answer's body

    def __str__(self) -> str:
        return self.name


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def part(index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: Any = None):
    function = {k: v for k, v in {"name": name, "arguments": arguments}.items() if v is not None}
    head = {k: v for k, v in {"index": index, "id": call_id}.items() if v is not None}
    return {**head, "function": function}


def pieces(text: str) -> list[Any]:
    return [chunk({"content": piece}) for piece in text]


def odd(name: str, chunks: list[Any], message: Any = None, **more: Any) -> Quirk:
    return Quirk(name, chunks, message if message is not None else said("ok"), text="ok", **more)


def calling(name: str, *parts: Any, finish: str = "tool_calls", calls: Any = (A, B), message: Any = None, **more: Any):
    chunks = [*(chunk({"tool_calls": [one]}) for one in parts), chunk({}, finish)]
    return Quirk(name, chunks, message, finish=finish, calls=calls, reason="tool_calls", **more)


def whole_calls(*parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(parts)}


def thinking(name: str, chunks: list[Any], message: Any) -> Quirk:
    return Quirk(name, [*chunks, chunk({}, "stop")], message, text="yes", reasoning="let me see")


def ended(name: str, last: list[Any], *, finish: str | None, **more: Any) -> Quirk:
    chunks = [chunk({"content": "a b"}), chunk({"content": " c"}), *last]
    return Quirk(name, chunks, said("a b c"), finish=finish, text="a b c", **more)


USAGE = {"prompt_tokens": 90, "completion_tokens": 7}
EVEN = [chunk({"content": "o"}), chunk({"content": "k"}), chunk({}, "stop")]
QUIRKS = [
    # chunks without choices
    odd("nothing odd", EVEN),
    odd("empty choices first and last", [{"choices": []}, *EVEN, {"choices": []}]),
    odd("null delta", [chunk(None), *EVEN[:2], chunk(None, "stop")]),
    odd("null content", [chunk({"content": None}), *EVEN[:2], chunk({"content": None}, "stop")]),
    odd("empty finish reason until the end", [chunk({"content": "ok"}, ""), chunk({}, "stop")]),
    odd("no object, no id", [{"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}]),
    odd(
        "content in parts",
        [chunk({"content": [{"type": "text", "text": "ok"}]}), chunk({}, "stop")],
        said([{"type": "text", "text": "o"}, {"type": "image"}, {"text": "k"}]),
    ),
    odd("strangers", [None, 5, "x", [], {"choices": None}, {"choices": [None]}, *EVEN]),
    odd("unknown reason", [*EVEN[:2], chunk({}, "eos")], finish="eos"),
    odd("many bytes a character", [chunk({"content": "o"}), chunk({"role": "👩‍🚀é中"}), *EVEN[1:]]),
    odd("usage on every chunk", [{**each, "usage": USAGE} for each in EVEN], usage=(90, 7, 0), whole={"usage": USAGE}),
    odd(
        "usage that grows",
        [{**each, "usage": {**USAGE, "completion_tokens": n}} for n, each in enumerate(EVEN, start=5)],
        usage=(90, 7, 0),
        whole={"usage": USAGE},
    ),
    odd("usage after the end", [*EVEN, {"choices": [], "usage": USAGE}], usage=(90, 7, 0), whole={"usage": USAGE}),
    odd("usage inside the choice", [*EVEN[:2], {"choices": [{"delta": {}, "finish_reason": "stop", "usage": USAGE}]}],
        usage=(90, 7, 0), whole={"usage": USAGE}),
    odd("usage of null and zeros", [*EVEN, {"choices": [], "usage": None}, {"usage": {"prompt_tokens": 0}}],
        whole={"usage": None}),
    *[
        odd(
            f"cached tokens as {next(iter(cached))}",
            [*EVEN, {"choices": [], "usage": {**USAGE, **cached}}],
            usage=(90, 7, 64),
            whole={"usage": {**USAGE, **cached}},
        )
        for cached in (
            {"prompt_tokens_details": {"cached_tokens": 64}},
            {"prompt_cache_hit_tokens": 64},
            {"cached_tokens": 64},
        )
    ],
    # tool calls in shapes of every kind
    calling("interleaved, id on the first only", part(0, "1", "a", '{"x"'), part(1, "2", "b", '{"y"'),
            part(0, arguments=": 1}"), part(1, arguments=": 2}"),
            message=whole_calls(part(0, "1", *A), part(1, "2", *B))),
    calling("two ids, one index", part(0, "1", *A), part(0, "2", "b", '{"y": '), part(0, arguments="2}"),
            message=whole_calls(part(0, "1", *A), part(0, "2", *B))),
    calling("no index", part(None, "1", "a", '{"x": '), part(arguments="1}"), part(None, "2", *B),
            message=whole_calls(part(None, "1", *A), part(None, "2", *B))),
    calling("head and tail at different indices", part(0, "1", "a", '{"x": '), part(1, "1", arguments="1}"),
            part(2, "2", *B)),
    calling("id in every fragment", part(0, "1", "a", '{"x": '), part(0, "1", arguments="1}"),
            part(1, "2", "b", '{"y": '), part(1, "2", arguments="2}")),
    calling("one id for two calls", part(0, "1", "a", ""), part(0, "1", arguments='{"x": 1}'), part(1, "1", "b", ""),
            part(1, "1", arguments='{"y": 2}'), message=whole_calls(part(0, "1", *A), part(1, "1", *B))),
    calling("one id for two calls of one tool", part(0, "1", *A), part(1, "1", *A), calls=(A, A),
            message=whole_calls(part(0, "1", *A), part(1, "1", *A))),
    calling("name in every fragment", part(0, "1", "a", '{"x": '), part(0, name="a", arguments="1}"),
            part(1, "2", "b", ""), part(1, name="b", arguments='{"y": 2}')),
    calling("arguments as an object", part(0, "1", "a", {"x": 1}), part(1, "2", "b", {"y": 2}),
            message=whole_calls(part(0, "1", "a", {"x": 1}), part(1, "2", "b", {"y": 2}))),
    calling("empty ids", part(0, "", "a", '{"x": '), part(0, "", arguments="1}"), part(1, "", *B),
            message=whole_calls(part(0, "", *A), part(1, "", *B))),
    calling("no id, no index", part(None, None, *A), part(None, None, *B),
            message=whole_calls(part(None, None, *A), part(None, None, *B))),
    calling("no id, all at index 0", part(0, None, *A), part(0, None, *B),
            message=whole_calls(part(0, None, *A), part(0, None, *B))),
    calling("id after the name", part(0, name="a"), part(0, "1", arguments='{"x": 1}'), part(1, "2", *B)),
    calling("the same call twice", part(0, None, *A), part(0, None, *A), calls=(A, A),
            message=whole_calls(part(0, None, *A), part(0, None, *A))),
    calling("calls that end with stop", part(0, "1", *A), finish="stop", calls=(A,),
            message=whole_calls(part(0, "1", *A))),
    calling("null arguments", part(0, "1", "a"), calls=(("a", ""),), message=whole_calls(part(0, "1", "a"))),
    Quirk("a call cut by the length limit", [chunk({"tool_calls": [part(0, "1", "a", '{"x": ')]}), chunk({}, "length")],
          whole_calls(part(0, "1", "a", '{"x": ')), finish="length", reason="length"),
    Quirk("a call and no end", [chunk({"tool_calls": [part(0, "1", *A)]})], whole_calls(part(0, "1", *A)), finish=None,
          broken=True),
    # thinking
    thinking("a field of its own", [chunk({"reasoning_content": "let me"}), chunk({"reasoning_content": " see"}),
                                    chunk({"content": "yes"})], said("yes", reasoning_content="let me see")),
    thinking("another name", [chunk({"reasoning": "let me see"}), chunk({"content": "yes"})],
             said("yes", reasoning="let me see")),
    thinking("details", [chunk({"reasoning_details": [{"text": "let me see"}]}), chunk({"content": "yes"})],
             said("yes", reasoning_details=[{"text": "let me see"}])),
    thinking("both at once", [chunk({"reasoning": "let me see", "content": ""}), chunk({"content": "yes"})],
             said("yes", reasoning="let me see")),
    thinking("tags", pieces("<think>let me see</think>yes"), said("<think>let me see</think>yes")),
    thinking("tags among blanks", pieces("\n<think>let me see</think>\n\nyes"),
             said("\n<think>let me see</think>\n\nyes")),
    thinking("longer tags in halves", [chunk({"content": piece}) for piece in
                                       ("<thin", "king>let me", " see</thinking", ">yes")],
             said("<thinking>let me see</thinking>yes")),
    Quirk("a block that is never closed", [*pieces("<think>on and on"), chunk({}, "stop")], said("<think>on and on"),
          reasoning="on and on"),
    *[
        Quirk(f"an answer about tags: {text!r}", [*pieces(text), chunk({}, "stop")], said(text), text=text)
        for text in (
            "The tag <think> opens.", "no </think> here", "< 5", "x </think", "<thorough>", "`</think>`\n", "二<")
    ],
    # ends
    ended("length", [chunk({}, "length")], finish="length", reason="length"),
    ended("length by another name", [chunk({}, "max_tokens")], finish="max_tokens", reason="length"),
    ended("an error in the stream", [{"error": {"message": "crashed", "code": 500}}], finish="error", broken=True),
    ended("a rate limit in the stream", [{"error": {"message": "slow", "code": "429"}}], finish="error", broken=True),
    ended("an error without a code", [{"error": "crashed"}], finish="error", broken=True),
    ended("an error of another shape", [{"object": "error", "message": "crashed", "code": 1}], finish="error",
          broken=True),
    ended("an error with a number of the vendor's own", [{"error": {"message": "crashed", "code": "1305"}}],
          finish="error", broken=True),
    ended("a refusal in the stream", [{"error": {"message": "too long", "code": 400}}], finish="error", broken=True),
    ended("no finish reason", [], finish=None, broken=True),
    ended("finish reason error", [chunk({}, "error")], finish="error", broken=True),
    ended("finish reason network_error", [chunk({}, "network_error")], finish="network_error", broken=True),
    ended("the vendor's filter", [chunk({}, "content_filter")], finish="content_filter", refused=True),
]  # fmt: skip
