"""Which sentences answer a question, and whether any does (docs/decisions/built-in-answerer.md).

A linear score over few features, fitted once on questions with known answers, with questions whose
passage is not there, and with questions whose passage was taken away. Question and text in the same
language and in two languages have numbers of their own: across languages words do not overlap.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.models.builtin import embedder
from apps.models.builtin.sentences import is_chinese, sentences, terms

TIME_ASKED = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|time|century|decade)\b"
    r"|何时|什么时候|哪年|哪一年|哪天|哪月|几年|几月|年份|日期|什么时间",
    re.IGNORECASE,
)
NUMBER_ASKED = re.compile(
    r"\bhow (?:many|much|long|old|far|large|big|tall|high|often|fast)\b|\bwhat (?:percent|percentage|number|amount)\b"
    r"|多少|几[个次人名位条种天]|百分之|多大|多长|多高|多久|比例|人数|数量",
    re.IGNORECASE,
)
TIME = re.compile(
    r"\b1\d{3}s?\b|\b20\d{2}\b|\d\s?年|世纪|世紀|\d\s?月|\bcentury\b"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千万萬亿億两兩]"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|billion|half"
    r"|third|quarter|dozen|once|twice)\b",
    re.IGNORECASE,
)

MOST_SENTENCES = 72  # that are embedded: about half a second on one core
LONGEST = 600  # characters of a sentence
SHORT = 60  # characters; a shorter one is compared with its heading before it
LEAST_WORDS = 0.25  # share of letters; less is a row of figures, which answers only who asks for one
MOST_SHOWN = 3
MARGIN = 1.2  # of the score behind the best, for what is shown beside it
ANSWERABLE = -1.25  # the operating point


@dataclass(frozen=True, slots=True)
class Text:
    """One passage that was read."""

    n: int  # of its marker
    text: str
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence that may answer, and how well."""

    n: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Extraction:
    """The best sentences, best first; ``confidence`` at or above ANSWERABLE means that they answer."""

    sentences: tuple[Sentence, ...]
    confidence: float

    @property
    def answers(self) -> bool:
        """Whether the question is answered."""
        return bool(self.sentences) and self.confidence >= ANSWERABLE


async def extract(question: str, passages: Sequence[Text]) -> Extraction:
    """Choose sentences of ``passages`` (best first) that answer ``question``: in its own language where they do."""
    chinese = is_chinese(question)
    own = [passage for passage in passages if is_chinese(passage.text) == chinese]
    if 0 < len(own) < len(passages) and (found := await _extract(question, own)).answers:
        return found
    return await _extract(question, passages)


async def _extract(question: str, passages: Sequence[Text]) -> Extraction:
    figures = bool(NUMBER_ASKED.search(question) or TIME_ASKED.search(question))
    found = [
        (rank, passage, sentence[:LONGEST])
        for rank, passage in enumerate(passages)
        for sentence in dict.fromkeys(sentences(passage.text))
        if terms(sentence) and (figures or _words_share(sentence) >= LEAST_WORDS)
    ][:MOST_SENTENCES]
    if not found:
        return Extraction((), float("-inf"))
    vectors = await embedder.embed(
        [f"{p.heading}: {s}" if p.heading and len(s) < SHORT else s for _rank, p, s in found], purpose="passage"
    )
    asked = (await embedder.embed([question], purpose="query"))[0]
    cosines = [float(value) for value in vectors @ asked]
    across = is_chinese(question) != is_chinese(" ".join(sentence for _rank, _p, sentence in found))
    wanted = terms(question)
    words = [terms(sentence) for _rank, _p, sentence in found]
    rarity = {term: 1 / (1 + sum(term in terms(p.text) for p in passages)) for term in wanted}
    scored = [
        Sentence(
            passage.n,
            sentence,
            _score(
                cosine,
                rare=sum(rarity[term] for term in wanted & own) / (sum(rarity.values()) or 1),
                kind=_kind(question, sentence),
                rank=rank,
                across=across,
            ),
        )
        for (rank, passage, sentence), own, cosine in zip(found, words, cosines, strict=True)
    ]
    covered = max(len(wanted & _around(i, found, words)) / (len(wanted) or 1) for i in range(len(found)))
    best = sorted(scored, key=lambda sentence: -sentence.score)
    shown = [sentence for sentence in best[:MOST_SHOWN] if sentence.score >= best[0].score - MARGIN]
    return Extraction(tuple(shown), _confidence(cosines, covered, across=across))


def _words_share(sentence: str) -> float:
    return sum(map(str.isalpha, sentence)) / (len(sentence) - sentence.count(" ") or 1)


def _score(cosine: float, *, rare: float, kind: int, rank: int, across: bool) -> float:
    if across:
        return 28.4 * cosine + 0.8 * kind + 2.6 / (rank + 1)
    return 9.4 * cosine + 5.0 * rare + 1.0 * kind + 2.9 / (rank + 1)


def _confidence(cosines: Sequence[float], covered: float, *, across: bool) -> float:
    """Return the log-odds that the best sentence answers.

    ``cosines`` lie close together (.75–.95), so what counts is also how far the best stands out.
    """
    most, out = max(cosines), max(cosines) - sum(cosines) / len(cosines)
    if across:
        return 15.9 * most + 37.6 * out - 15.1
    return 43.2 * most + 31.0 * out + 7.9 * covered - 43.2


def _kind(question: str, sentence: str) -> int:
    """Return 1 if the sentence has the kind of thing that is asked for, -1 if not, 0 if none is."""
    if TIME_ASKED.search(question):
        return 1 if TIME.search(sentence) else -1
    if NUMBER_ASKED.search(question):
        return 1 if NUMBER.search(sentence) else -1
    return 0


def _around(i: int, found: Sequence[tuple[int, Text, str]], words: Sequence[set[str]]) -> set[str]:
    """Return the terms of a sentence, its neighbours in the passage, and the heading."""
    passage = found[i][1]
    near = [words[j] for j in (i - 1, i, i + 1) if 0 <= j < len(found) and found[j][1] is passage]
    return set().union(*near, terms(passage.heading))
