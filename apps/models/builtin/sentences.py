"""Text into sentences and terms, for the built-in answerer. Pure.

The lexical index has better terms, but it belongs to knowledge, which stands above models.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

HAN = "\u3400-\u4dbf\u4e00-\u9fff"
CJK = re.compile(f"[{HAN}]")
LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
RUN = re.compile(rf"[{HAN}]+|[A-Za-z0-9\u00c0-\u024f]+(?:[.\-+#_][A-Za-z0-9\u00c0-\u024f]+)*[+#]*")
ABBREVIATED = "".join(
    rf"(?<!\b{word}\.)" for word in ("vs", "cf", "al", r"e\.g", r"i\.e", "No", "Fig", "Dr", "Mr", "Mrs", "Ms")
)
END = re.compile(
    r"(?<=[。！？；])(?![”’」』）)])|(?<=[。！？；][”’」』）)])"
    rf"|(?<=[.!?]){ABBREVIATED}\s+(?=[\"'“‘(\[]?[A-Z0-9\u00c0-\u00de])|(?<=[.!?][\"'”’)])\s+(?=[\"'“‘(\[]?[A-Z0-9])"
)
MARK = re.compile(r"^\s*(?:[-*+•]\s+|\d{1,3}[.)、]\s*|>\s*)+")
EMPHASIS = re.compile(r"\*\*|__|`|!?\[([^\]]*)\]\([^)]*\)")
RULE = re.compile(r"^[\s|:\-=*_]+$")
FULL_STOP = re.compile(r"[.。]; ")
STOP = frozenset(
    [
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "had", "has"),
        *("have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "many", "me", "much", "my", "of"),
        *("on", "or", "our", "she", "so", "that", "the", "their", "them", "there", "they", "this", "to", "us"),
        *("was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with"),
        *("you", "your", "please", "tell", "about", "not"),
    ]
)
STOP_HAN = re.compile(
    "什么时候|什么|甚么|哪一年|哪些|哪个|哪里|哪位|哪年|谁|何时|何地|如何|怎么样|怎么|怎样|为什么|为何|多少|几个|是否|"
    "請問|请问|告诉我|有没有|可以|的|了|吗|呢|是|在|和|与|及|有|被|把|就|都|而|或|一个"
)


def is_chinese(text: str) -> bool:
    """Return whether a text is Chinese rather than written in letters."""
    return len(CJK.findall(text)) * 2 > len(LATIN_WORD.findall(text))


def sentences(text: str) -> Iterator[str]:
    """Yield what a passage says, one sentence or table row at a time, without Markdown's marks.

    Headings are not sentences. A table's rows carry its column names ("Name: Ann; Age: 9").
    """
    header: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
            if RULE.match(line):
                continue
            if not header:
                header = cells
            elif len(cells) == len(header):
                yield _joined(
                    f"{name}: {cell}" if name else cell for name, cell in zip(header, cells, strict=True) if cell
                )
            else:
                yield _joined(filter(None, cells))
            continue
        header = []
        if not line.strip() or line.lstrip().startswith("#") or RULE.match(line):
            continue
        for sentence in END.split(MARK.sub("", line)):
            if sentence and (kept := _plain(sentence)):
                yield kept


def _joined(cells: Iterable[str]) -> str:
    """Return a row as one sentence, with the full stop of its last cell alone."""
    return FULL_STOP.sub("; ", "; ".join(cells))


def terms(text: str) -> set[str]:
    """Return what texts are compared by: stemmed words, and pairs of Chinese characters."""
    found: set[str] = set()
    for run in RUN.findall(text.lower()):
        if CJK.match(run):
            for piece in STOP_HAN.split(run):
                found.update(piece[i : i + 2] for i in range(max(1, len(piece) - 1)) if piece)
        elif run not in STOP:
            found.add(_stem(run))
    return found


def _plain(text: str) -> str:
    return " ".join(EMPHASIS.sub(lambda match: match[1] or "", text).split())


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")
