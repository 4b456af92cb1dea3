"""The handoff document: what stands for the turns that have left the prompt. Pure.

Original requests and standing wishes are kept in the asker's own words, references to stored results
and cited documents are read from the messages by code; only what was done is told by a model, in
stages, each made from the turns that it stands for alone. Nothing is ever summarised twice.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid5

import orjson

from apps.agents.citations import MARKER
from apps.agents.delimiters import disarmed
from apps.agents.messages import question_and_answer
from apps.models.chat import Wire

REQUESTS, REQUEST = 24, 240  # how many are kept, and characters of each
WISHES, WISH = 20, 400
STAGES, STAGE, OLD_STAGE = 8, 1_400, 350  # older stages are cut to their beginning
REFERENCES, SUMMARY = 16, 90
DOCUMENTS = 20
QUESTION, ANSWER, RESULT = 2_000, 2_500, 700  # characters of a turn that the model sees

SENTENCE_END = re.compile(r"(?<=[。！？!?；;])|(?<=\.)(?=\s|$)|\n")
STANDING = re.compile(
    r"\b(?:always|never|from now on|for the rest|in (?:every|each|all) (?:answers?|repl(?:y|ies))|every time|each time"
    r"|budget|deadline|at most|no more than|do not|don't|must(?: not)?|only (?:use|answer|in|with)|make sure"
    r"|keep in mind|answer (?:me )?in|reply (?:to me )?in|respond in|write in|call me|prefer)\b"
    r"|以后|从现在起|今后|始终|总是|每次|一律|不要|别再|务必|必须|只能|只用|只要|预算|截止|不超过|最多|请用|都用|全部用|称呼我|叫我|记得|保持",
    re.IGNORECASE,
)
# What is asked to be known is no wish; "can you always …?" is one.
ASKED = re.compile(
    r"^\W*(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have)\b.*[?？]\W*$"
    r"|(?:多少|什么|哪|谁|几|怎么|为何|何时|如何).*[?？]\W*$|(?:吗|呢)[?？]?\W*$",
    re.IGNORECASE,
)
RESULT_HEAD = re.compile(r'^<result id="c(\d+)" document="([^"]*)"', re.MULTILINE)
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Handoff:
    """What was handed off so far. ``upto`` is the id of the last answer in it (``summary_upto_message_id``)."""

    upto: UUID | None = None
    turns: int = 0
    requests: tuple[str, ...] = ()
    wishes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    references: tuple[str, ...] = ()  # "<ref id> <tool>: <beginning of its summary>"
    documents: tuple[str, ...] = ()  # cited ones
    made_from: Mapping[str, Collection[str]] = field(default_factory=dict)  # stage, reference, name -> ids of documents

    def as_json(self) -> dict[str, Any]:
        """Return what is stored beside ``upto`` and ``turns``."""
        return {
            "requests": self.requests,
            "wishes": self.wishes,
            "stages": self.stages,
            "references": self.references,
            "documents": self.documents,
            "made_from": {one: list(self.made_from[one]) for one in self._told() if one in self.made_from},
        }

    @classmethod
    def from_json(cls, upto: UUID, turns: int, parts: dict[str, Any]) -> "Handoff":
        """Rebuild a stored one; parts that are not lists of texts are left out."""
        known = {
            name: tuple(str(one) for one in parts[name])
            for name in ("requests", "wishes", "stages", "references", "documents")
            if isinstance(parts.get(name), list)
        }
        made_from = parts.get("made_from")
        return cls(upto=upto, turns=turns, **known, made_from=made_from if isinstance(made_from, dict) else {})

    def _told(self) -> tuple[str, ...]:
        """Return what may tell of documents; requests and wishes are the asker's own words."""
        return (*self.stages, *self.references, *self.documents)

    def sources(self) -> frozenset[str]:
        """Return the ids of all documents that something in it was made from."""
        return frozenset().union(*(self.made_from.get(one, ()) for one in self._told()))

    def without(self, gone: Collection[str]) -> "Handoff":
        """Return it without what was made from documents that may not be read any more."""

        def kept(items: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(one for one in items if not set(self.made_from.get(one, ())) & set(gone))

        return replace(self, stages=kept(self.stages), references=kept(self.references), documents=kept(self.documents))

    def text(self) -> str:
        """Return the document, as segment 3 of the prompt and the page show it; empty before the first handoff."""
        if not self.turns:
            return ""
        lines = [
            f"Background: the first {self.turns} turns of this conversation, handed off. They are over: do not answer "
            "them again, and take no fact from here as evidence. The newest question is at the end of the messages."
        ]
        parts = (
            ("Standing wishes of the asker, in their own words, still valid", self.wishes),
            ("What was asked", self.requests),
            ("What was done", self.stages),
            ("Documents that were cited", self.documents),
            ("Stored results (get_stored_data)", self.references),
        )
        for title, items in parts:
            if items:
                lines.append(f"## {title}")
                lines.extend(f"- {item}" for item in items)
        return "\n".join(lines)


def answer_id(turn: UUID) -> UUID:
    """Return the id of a turn's answer among the conversation's messages."""
    return uuid5(turn, "assistant")


@lru_cache(maxsize=20_000)
def answer_of(turn: str) -> UUID:
    """Return the same for a turn's id as the state has it: each of a conversation's is asked for in every turn."""
    return answer_id(UUID(turn))


def handed_off(turns: Sequence[str], handoff: Handoff) -> int:
    """Return how many of the turns (ids, oldest first; "" where unknown) are in the handoff."""
    if handoff.upto is None:
        return 0
    for place, turn in enumerate(turns, start=1):
        if turn and answer_of(turn) == handoff.upto:
            return place
    return 0


def extended(
    before: Handoff,
    turns: Sequence[Sequence[Wire]],
    ids: Sequence[str],
    told: dict[str, Any],
    read: Collection[str] = (),
) -> Handoff:
    """Return the handoff with more turns in it.

    Args:
        before: the handoff so far; nothing of it is told again.
        turns: the turns that leave the prompt, whole, oldest first; at least one.
        ids: their ids; the last one must be known.
        told: what a model says of them: lists of texts under "done", "abandoned", "open" and "wishes".
            Empty where none could say: then the turns' own words stand for them.
        read: the ids of the documents that the turns were made from.
    """
    asked = [question_and_answer(turn)[0] for turn in turns]
    own = "\n".join(asked)
    wishes = [*wishes_in(asked), *(wish for wish in _texts(told.get("wishes"), WISH) if wish in own)]
    stage = _stage(told) or stage_by_code(turns)
    stages = [*(_cut(one, OLD_STAGE) for one in before.stages[:-1]), *before.stages[-1:], stage]
    references, documents = references_in(turns), documents_cited(turns)
    made_from = {_cut(one, OLD_STAGE): ids_ for one, ids_ in before.made_from.items()} | dict(before.made_from)
    for one in (stage, *references, *documents):
        made_from[one] = sorted({*made_from.get(one, ()), *read})
    return replace(
        before,
        upto=answer_of(ids[-1]),
        turns=before.turns + len(turns),
        requests=tuple([*before.requests, *(_cut(text, REQUEST) for text in asked)][-REQUESTS:]),
        wishes=tuple(dict.fromkeys([*before.wishes, *wishes]))[-WISHES:],
        stages=tuple(stages[-STAGES:]),
        references=tuple(dict.fromkeys([*before.references, *references]))[-REFERENCES:],
        documents=tuple(dict.fromkeys([*before.documents, *documents]))[-DOCUMENTS:],
        made_from=made_from,
    )


def wishes_in(questions: Iterable[str]) -> list[str]:
    """Return the sentences of the asker that say what is to hold from now on, word for word."""
    return [
        _flat(sentence)
        for question in questions
        for found in SENTENCE_END.split(question)
        if STANDING.search(sentence := found.strip()) and not ASKED.search(sentence) and len(sentence) <= WISH
    ]


def references_in(turns: Iterable[Sequence[Wire]]) -> list[str]:
    """Return the stored results that the turns' messages point at; read by code, never told by a model."""
    found = []
    for turn in turns:
        names = {c["id"]: c["function"]["name"] for message in turn for c in message.get("tool_calls") or ()}
        for message in turn:
            if message["role"] == "tool" and str(message["content"]).startswith('{"__stored":'):
                value = orjson.loads(message["content"])
                summary = _cut(_flat(str(value["__summary"])), SUMMARY)
                found.append(f"{value['__refId']} {names.get(message['tool_call_id'], 'tool')}: {summary}")
    return found


def documents_cited(turns: Iterable[Sequence[Wire]]) -> list[str]:
    """Return the names of the documents that the turns' answers cite."""
    found: list[str] = []
    for turn in turns:
        named = {
            int(n): name
            for message in turn
            if message["role"] == "tool"
            for n, name in RESULT_HEAD.findall(str(message["content"]))
        }
        answer = question_and_answer(turn)[1]
        cited = [int(n) for marker in MARKER.finditer(answer) for n in NUMBER.findall(marker[0])]
        found.extend(_flat(named[n]) for n in cited if n in named)
    return list(dict.fromkeys(found))


def stage_by_code(turns: Sequence[Sequence[Wire]]) -> str:
    """Return what was done in the answers' own first words, for when no model tells it."""
    room = max(80, STAGE // max(1, len(turns)) - 10)
    answers = (_cut(_flat(MARKER.sub("", question_and_answer(turn)[1])), room) for turn in turns)
    return _cut(" / ".join(answer for answer in answers if answer), STAGE) or "No answers were given."


def transcript(turns: Iterable[Sequence[Wire]]) -> str:
    """Return turns as a model reads them to tell what was done; delimiters in them are disarmed."""
    lines = []
    for turn in turns:
        question, answer = question_and_answer(turn)
        lines.append(f"Asker: {question[:QUESTION]}")
        for message in turn:
            lines.extend(
                f"Call: {call['function']['name']} {str(call['function']['arguments'])[:300]}"
                for call in message.get("tool_calls") or ()
            )
            if message["role"] == "tool":
                lines.append(f"Result: {_flat(str(message['content']))[:RESULT]}")
        lines.append(f"Answer: {MARKER.sub('', answer)[:ANSWER]}")
    return disarmed("\n".join(lines))


def _stage(told: dict[str, Any]) -> str:
    parts = [
        f"{label}{'; '.join(texts)}"
        for name, label in (("done", ""), ("abandoned", "Abandoned: "), ("open", "Still open: "))
        if (texts := _texts(told.get(name), 400))
    ]
    return _cut(" ".join(part if part.endswith((".", "。")) else f"{part}." for part in parts), STAGE)


def _texts(value: Any, longest: int) -> list[str]:
    if not isinstance(value, list):
        return []
    return [_cut(_flat(one), longest) for one in value if isinstance(one, str) and one.strip()]


def _flat(text: str) -> str:
    return " ".join(text.replace("<", "‹").split())


def _cut(text: str, longest: int) -> str:
    text = _flat(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
