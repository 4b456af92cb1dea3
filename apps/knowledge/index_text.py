"""From text to what is indexed: terms, BM25 weights, and the input of the embedding model.

Pure functions, and the same ones for a passage that is stored and for a question that is asked.

Terms of "C++ 服务器 returned 5G-errors": ``c++``, ``服务``, ``务器``, ``服务器``, ``return``, ``5g-errors``,
``5g``, ``error``. A word of two Chinese characters and a bigram are one and the same term, so that
bigrams cost no second posting for most words.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from threading import Lock
from typing import Any

from apps.knowledge.parsers.illustrations import without_references
from apps.knowledge.parsers.links import without_addresses

# Levels are those of models.Chunk: 0 a parent passage, 1 a child.
# Vectors: the passage says what it is about, the child where in it; search takes the mean of the
# passage and its best child. Postings: the whole passage, so that words that answer a question
# together are found together. A child that is its whole passage needs no vector of its own.
EMBEDDED_LEVELS = (0, 1)
POSTED_LEVELS = (0,)

K1, B, AVERAGE_LENGTH = 1.2, 0.75, 300.0
LONGEST_TERM = 64  # characters; longer runs (base64, hashes joined) are noise and bloat the index
CROSSING = 0.5  # share of a bigram that the segmenter does not hold for a word, in a question

_HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_SCRIPTS = _HAN + "\u3040-\u30ff\u31f0-\u31ff\u1100-\u11ff\uac00-\ud7af"  # and kana, hangul
_PIECES = re.compile(
    rf"(?P<cjk>[{_SCRIPTS}]+)"
    rf"|(?P<word>[^\W_{_SCRIPTS}]+(?:[._\-/@:'][^\W_{_SCRIPTS}]+|_+[^\W_{_SCRIPTS}]+)*(?:\+\+|\#)?)"
)
_HAN_RUN = re.compile(rf"[{_HAN}]+")
_SEPARATORS = re.compile(r"[^\w]|_")
_LATIN_MARKS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_stemming = Lock()  # a stemmer holds the word it is working on
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,9}$")

_ENGLISH = """
a about after all also am an and any are as at be because been before being but by can could did do does doing
for from had has have having he her here hers him his how i if in into is it its itself just me more most my no
nor not of on or other our ours out over own same she should so some such than that the their theirs them then
there these they this those through to too under until up very was we were what when where which while who whom
whose why will with would you your yours
"""
_CHINESE = """
的 了 是 在 和 与 及 或 也 都 就 而 把 被 吗 呢 吧 啊 么 着 之 其 有 什么 哪 哪些 怎么 请问 多少
與 嗎 麼 著 什麼 怎麼 請問
"""
STOP_WORDS = frozenset(_ENGLISH.split()) | frozenset(_CHINESE.split())


def fold(text: str) -> str:
    """Return the form that is compared: full width to half, lower case, Latin letters without accents."""
    text = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _LATIN_MARKS.sub("", unicodedata.normalize("NFD", text)))


def terms(text: str) -> list[str]:
    """Return the terms of a passage, as often as they occur, without stop words."""
    found: list[str] = []
    for run, word in _PIECES.findall(fold(text)):
        if run:
            found += _kept(_cjk_terms(run))
        else:
            found += _known_word(word) if len(word) <= LONGEST_TERM else _kept(_word_terms(word))
    return found


def postings(text: str) -> dict[str, float]:
    """Return each term's BM25 weight in a passage, without idf, which a search adds.

    weight = tf · (K1 + 1) / (tf + K1 · (1 - B + B · length / AVERAGE_LENGTH))

    K1 and B are the usual ones. The average length is fixed, because weights are stored: with the
    true average each new document would change every stored row. The chunker aims at passages of
    one size, so the constant is near the truth, and being off only scales K1 a little.

    Source: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """
    counts = Counter(terms(text))
    damping = K1 * (1 - B + B * counts.total() / AVERAGE_LENGTH)
    return {term: round(tf * (K1 + 1) / (tf + damping), 4) for term, tf in counts.items()}


def query_terms(text: str) -> dict[str, float]:
    """Return the terms of a question and their weights: 1 for a word, CROSSING for a mere bigram.

    A question of stop words alone, or of marks like "%", has no terms; search then looks for it
    verbatim.
    """
    weights: dict[str, float] = {}
    for piece in _PIECES.finditer(fold(text)):
        found = _cjk_terms(piece.group()) if piece.lastgroup == "cjk" else _word_terms(piece.group())
        for term, is_word in found:
            if term not in STOP_WORDS and len(term) <= LONGEST_TERM:
                weight = 1.0 if is_word or term == piece.group() else CROSSING
                weights[term] = max(weights.get(term, 0.0), weight)
    return weights


def lone_characters(text: str) -> frozenset[str]:
    """Return the Chinese characters of a question that stand alone, as in "5G 网"; stop words are none."""
    pieces = (piece.group() for piece in _PIECES.finditer(fold(text)) if piece.lastgroup == "cjk")
    return frozenset(piece for piece in pieces if len(piece) == 1 and piece not in STOP_WORDS)


def title_of(document_name: str, heading: str) -> str:
    """Return what stands above a passage: the document's name without its ending, then its headings."""
    name = _EXTENSION.sub("", document_name).replace("_", " ").strip()
    if heading == name or heading.startswith(f"{name} > "):
        return heading
    return f"{name} > {heading}" if heading else name


def said(markdown: str) -> str:
    """Return what a passage says: pictures and links by their words, without names and addresses."""
    return without_addresses(without_references(markdown))


def embedding_input(document_name: str, heading: str, text: str) -> str:
    """Return what is embedded for a chunk: its title line, then its text."""
    return f"{title_of(document_name, heading)}\n{said(text)}"


def lexical_input(document_name: str, heading: str, text: str) -> str:
    """Return the text whose postings a passage gets: words of its name and headings find it too."""
    return f"{title_of(document_name, heading)}\n{said(text)}"


def _cjk_terms(run: str) -> Iterator[tuple[str, bool]]:
    """Yield (term, is it a word): the segmenter's words, then the bigrams that are none.

    The last character stands alone too. With a bigram begun by each of the others, whatever term begins with a
    character finds it: that is how questions of one character match without a posting a character.
    """
    words: Counter[str] = Counter()
    for han in _HAN_RUN.finditer(run):
        words.update(_segmenter()(han.group()))
    others = Counter(run[i : i + 2] for i in range(len(run))) - words
    yield from ((word, True) for word in words.elements())
    yield from ((other, False) for other in others.elements())


def _word_terms(word: str) -> Iterator[tuple[str, bool]]:
    """Yield a word stemmed; a compound (a code, an identifier, an address) whole, then its parts."""
    parts = [part for part in _SEPARATORS.split(word) if part]
    if len(parts) != 1 or parts[0] != word:
        if not word.endswith("'s"):
            yield word, True
        if word.endswith(("++", "#")):
            return
    for part in parts:
        if len(part) > 1 or part == word:
            yield (_stem(part) if part.isascii() and part.isalpha() else part), True


def _kept(found: Iterator[tuple[str, bool]]) -> tuple[str, ...]:
    return tuple(term for term, _ in found if term not in STOP_WORDS and len(term) <= LONGEST_TERM)


@lru_cache(maxsize=50_000)
def _known_word(word: str) -> tuple[str, ...]:
    return _kept(_word_terms(word))


@lru_cache(maxsize=1)
def _segmenter() -> Callable[[str], list[str]]:
    import rjieba  # on first use: its dictionary takes a moment, and most processes never need it

    cut: Callable[[str], list[str]] = rjieba.cut_for_search
    return cut


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if len(word) < 3 or word in STOP_WORDS:
        return word
    with _stemming:
        stemmed: str = _stemmer().stemWord(word)
    return stemmed


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")
