"""The built-in answerer: a chat model's place taken by quoting. No network, no invention.

It drives the same graph as any model: it calls ``doc_retrieval``, reads the best hits in full with
``list_chunks``, then quotes the sentences that answer, each with its marker, or says that nothing
does.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from html import unescape
from typing import Any
from uuid import uuid4

import orjson

from apps.models.builtin.extraction import Text, extract
from apps.models.builtin.sentences import is_chinese
from apps.models.chat import ChatDelta, ChatRequest, Usage, Wire
from apps.models.tokens import estimate, estimate_prompt

SEARCH, READ = "doc_retrieval", "list_chunks"
READ_IN_FULL = 4  # of the best hits, and of the best in the question's language

CONTEXT = re.compile(r"\A(?:<(\w+)>\n.*?\n</\1>\n\n)+", re.DOTALL)
RESULT = re.compile(r'^<result id="c(\d+)" ([^\n]*)>\n(.*?)\n</result>$', re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"""\bheading=(?:"([^"]*)"|'([^']*)')""")
FOLLOWS = re.compile(
    r"^\W*(?:and|what about|how about|why|go on|continue|tell me more)\b|^\W*(?:那|它|其|该|继续|然后|为什么)|呢\W*$",
    re.I,
)
POINTS = re.compile(r"^(?=.*\b(?:it|its|they|them)\b)\W*(?:[\w'-]+\W+){0,6}[\w'-]+\W*$", re.I)  # seven words at most
PIECE = re.compile(r"\s*\S{1,12}")
HELLO = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|你好|您好|嗨|哈喽|早上好|下午好|晚上好|早安)", re.I
)
THANKS = re.compile(r"\b(?:thanks|thank you|thx|cheers)\b|谢谢|多谢|感谢|謝謝", re.I)

# What it says, in English and in Chinese. It speaks as a model does, in the question's language.
SAYS = {
    "lead": ("From your documents:", "文档中的相关内容："),
    "nothing": ("Not in your documents.", "文档中没有相关内容。"),
    "failed": (
        "The documents could not be searched just now, so there is no answer. Ask again in a moment.",
        "暂时无法检索文档，因此没有答案。请稍后再试。",
    ),
    "hello": (
        "Hello! Ask me something about your documents, and I will quote what they say, with its source.",
        "你好！请提出与文档有关的问题，我会引用文档中的原文并注明出处。",
    ),
    "thanks": ("You're welcome!", "不客气！"),
    "talk": (
        "I am a small built-in model: I can only quote your documents. Ask me something that they may answer, "
        "or connect a chat model for conversation.",
        "我是一个内置的小模型，只能引用你的文档。请提出文档可能回答的问题，或连接一个聊天模型来对话。",
    ),
}


async def answer(request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
    """Stream one answer, or the one tool call that has to come before it."""
    question, turn = _turn(request.messages)
    call = _next_call(request, question, turn)
    if call is not None:
        usage = Usage(estimate_prompt(request.messages, request.tools), 20, estimated=True)
        yield ChatDelta(tool_calls=[call], finish_reason="tool_calls", usage=usage)
        return
    text = await _text(request, question, turn)
    for piece in PIECE.findall(text):
        yield ChatDelta(text=piece)
    usage = Usage(estimate_prompt(request.messages, request.tools), estimate(text), estimated=True)
    yield ChatDelta(finish_reason="stop", usage=usage)


NOTICE = "\n\n<notice>\n"  # what the agent says behind a question whose answer is due


def _turn(messages: Sequence[Wire]) -> tuple[str, list[Wire]]:
    """Return the question without what the prompt puts before it, and the messages after it.

    A question that only goes on from the one before ("and in Japan?", "它多少钱？") takes it along.
    """
    asked = [i for i, message in enumerate(messages) if message["role"] == "user"]
    if not asked:
        return "", []
    question, *before = [
        CONTEXT.sub("", str(messages[i]["content"])).partition(NOTICE)[0].strip() for i in asked[:-3:-1]
    ]
    if before and (FOLLOWS.search(question) or POINTS.search(question)):
        question = f"{before[0]} {question}"
    return question, list(messages[asked[-1] + 1 :])


def _next_call(request: ChatRequest, question: str, turn: Sequence[Wire]) -> Wire | None:
    """Return the call to make now: search first, then read the best hits that were only excerpts."""
    offered = {tool["function"]["name"] for tool in request.tools}
    made = {call["function"]["name"] for message in turn for call in message.get("tool_calls") or ()}
    if request.tool_choice == "none" or not question:
        return None
    if SEARCH in offered and SEARCH not in made:
        return _call(SEARCH, {"query": question[:500]})
    excerpts = [
        n for n, attributes, _text in _worth_reading(question, _results(turn)) if 'part="full"' not in attributes
    ]
    if READ in offered and READ not in made and excerpts:
        return _call(READ, {"ids": [f"c{n}" for n in excerpts]})
    return None


def _worth_reading(question: str, results: Sequence[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Return the best results, and the best of those in the question's own language: it is quoted where it answers."""
    chinese = is_chinese(question)
    own = [result for result in results if is_chinese(result[2]) == chinese]
    chosen = {result[0] for result in (*results[:READ_IN_FULL], *own[:READ_IN_FULL])}
    return [result for result in results if result[0] in chosen]


def _call(name: str, arguments: dict[str, Any]) -> Wire:
    text = orjson.dumps(arguments).decode()
    return {"id": f"call_{uuid4().hex[:12]}", "type": "function", "function": {"name": name, "arguments": text}}


async def _text(request: ChatRequest, question: str, turn: Sequence[Wire]) -> str:
    chinese = is_chinese(question)

    def says(what: str) -> str:
        return SAYS[what][chinese]

    if not request.tools and not turn:
        return says("hello" if HELLO.search(question) else "thanks" if THANKS.search(question) else "talk")
    passages = _passages(question, turn)
    if not passages:
        told = [str(message["content"]) for message in turn if message["role"] == "tool"]
        return says("failed" if told and all(text.startswith("Error:") for text in told) else "nothing")
    found = await extract(question, passages)
    if not found.answers:
        return says("nothing")
    quotes = "\n".join(f"- {_shown(sentence.text)} [[c{sentence.n}]]" for sentence in found.sentences)
    return f"{says('lead')}\n\n{quotes}"


def _results(turn: Sequence[Wire]) -> list[tuple[int, str, str]]:
    """Return (number, attributes, text) of every result, in the order in which they came."""
    return [
        (int(n), attributes, text)
        for message in turn
        if message["role"] == "tool"
        for n, attributes, text in RESULT.findall(str(message["content"]))
    ]


def _passages(question: str, turn: Sequence[Wire]) -> list[Text]:
    """Return what was worth reading, in the order of the search, the longest text of each number."""
    results = _results(turn)
    read: dict[int, Text] = {n: Text(n, "", "") for n, _attributes, _text in _worth_reading(question, results)}
    for n, attributes, text in results:
        heading = HEADING.search(attributes)
        last = unescape(heading[1] or heading[2] or "").rpartition(" > ")[2] if heading else ""
        if n in read and len(text) > len(read[n].text):
            read[n] = Text(n, text.strip("…"), last)
    return list(read.values())


def _shown(text: str) -> str:
    """Return a sentence as it may stand in a list: no marker of its own."""
    return text.replace("[[", "[").replace("]]", "]").strip()
