"""Whether a model's rewrite of a question may be used. Pure."""

import re
from itertools import pairwise, takewhile

INSTRUCTION = re.compile(
    r"^\s*(?:please\b|search\b|find\b|look\s+up\b|tell\s+me\b|query\b|retrieve\b|请|帮我|搜索|检索|查询|查找|重新)",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+#_-]*|[\u3400-\u9fff]")
NUMBER = re.compile(r"\d[\d.,]*")


def _listed(words: str, characters: str) -> frozenset[str]:
    return frozenset(words.split()) | frozenset(characters)


# Words that a rewrite may replace: they only point at something said before.
POINTERS = _listed(
    "it its they them their theirs he him his she her hers this that these those there here one ones "
    "the a an what how and about so then also else same former latter such above previous i am asking",
    "它他她其这那此该们呢吗的了么个者些之哪些前后上述者另还又也",
)
# Words that a rewrite may bring in without their having been said before.
GLUE = _listed(
    "the a an of in on at for to from by with and or is are was were do does did has have had be been "
    "what which who whom whose when where why how many much either besides except during between near",
    "的了在是和与及或有对于中为从到什么哪谁何时地怎样多少吗呢是否几个关",
)
DEFINITE = _listed("my our your his her their the this that these those", "")
# Words by which a question shows that it leans on what was said before.
LEANING = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|one|ones|same|former|latter"
    r"|above|previous|again|also|else|other|another|more)\b|^\W*(?:and|or|but|so|then|what about|how about|why)\b"
    r"|^\W*(?:no|actually)\b|\bI meant?\b"  # a correction
    r"|[它他她其该此这那另还再又]|上述|上面|前面|前者|后者|刚才|刚刚|之前|同样|呢|^(?:和|以及|为什么|怎么|不对|不是|错了|继续)",
    re.IGNORECASE,
)
GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|thanks|thank you|bye|good (?:morning|afternoon|evening)|你好|您好|谢谢|再见)\W*$",
    re.IGNORECASE,
)
SHORT = 5  # words, or pairs of Chinese characters; a shorter question may be elliptical
KEPT = 0.8
NEW = 0.15


def accepted(question: str, rewrite: str, *, earlier: str) -> bool:
    """Return whether ``rewrite`` only restores references and ellipsis.

    It keeps the question's own words ("recent", "popular", numbers), brings in only words of the
    earlier conversation, stays a question, and stays short. Thresholds are shares of words (of
    characters in Chinese).
    """
    if not rewrite or "\n" in rewrite or len(rewrite) > 3 * len(question) + 200:
        return False
    if INSTRUCTION.match(rewrite) and not _orders(question, _beginning(rewrite)):
        return False
    before, after = _words(question), _words(rewrite)
    heard = {_singular(word) for word in _words(earlier)}
    if not _numbers(question) <= _numbers(rewrite) <= _numbers(question) | _numbers(earlier):
        return False
    if not _names(question) <= set(_written(rewrite)):
        return False
    own = before - POINTERS - _described(question, rewrite, heard)
    if own and len(own & after) < KEPT * len(own):
        return False
    said = _qualifiers(question) | _qualifiers(NONE.sub(" no", earlier))
    if not _qualifiers(question) <= _qualifiers(rewrite) <= said:
        return False
    new = {word for word in after - before - GLUE - POINTERS - said if not word[0].isdigit()}  # numbers are looked at
    fresh = {word for word in new if _singular(word) not in heard}
    return len(fresh) <= NEW * len(after)


def _described(question: str, rewrite: str, heard: set[str]) -> set[str]:
    """Return the words of descriptions that point at something, where the rewrite names it as it was named before.

    "my workout class" for "my swimming". Whole ones of two or three words: where a word of it stays, as in "my sick
    leave" for "my annual leave", it is another thing.
    """
    asked, written = ([word.lower() for word in _written(text)] for text in (question, rewrite))
    found: set[str] = set()
    for place, word in enumerate(asked, start=1):
        if word not in DEFINITE:
            continue
        lost = list(takewhile(lambda one: one not in written, asked[place:]))
        behind = asked[place + len(lost) : place + len(lost) + 1]
        ends = not behind or behind[0] in GLUE | POINTERS or QUALIFIER.fullmatch(behind[0])
        named = {new for before, new in pairwise(written) if before == word and new not in asked}
        if 2 <= len(lost) <= 3 and ends and any(_singular(new) in heard for new in named):
            found.update(lost)
    return found


def _orders(question: str, beginning: str) -> bool:
    """Return whether a question is an instruction, or one of its clauses begins as its rewrite does."""
    return bool(INSTRUCTION.match(question)) or beginning in {_beginning(clause) for clause in CLAUSE.split(question)}


def _beginning(clause: str) -> str:
    return " ".join(WORD.findall(clause.lower())[:2])


def leans(question: str) -> bool:
    """Return whether a question shows by its words that it goes on from what was said before."""
    return bool(LEANING.search(question))


def leaves_out(question: str) -> bool:
    """Return whether a question may need restoring; others are not worth a model's call."""
    if GREETING.match(question):
        return False
    latin = len(re.findall(r"[A-Za-z0-9]+", question))
    return leans(question) or latin + len(re.findall(r"[\u3400-\u9fff]", question)) / 2 < SHORT


QUALIFIER = re.compile(
    r"\b(?:not|no|never|without|only|recent|recently|latest|newest|popular|first|last|best|worst|most|least|all|any|"
    r"every|each|current|currently|today|yesterday|tomorrow|average|total|maximum|minimum|before|after)\b|"
    r"最近|最新|最热|热门|流行|最[\u3400-\u9fff]|第[一二三四五六七八九十]|首次|目前|当前|现在|今天|昨天|明天|不|没|无|仅|只|全部|所有|每|平均|总|之前|之后",
    re.IGNORECASE,
)


SPELLED = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|fifty|hundred|thousand|million)\b"
    r"|[一二两三四五六七八九十百千万亿]+(?=[个年月日天次家人份项种位条页名元岁周倍成点])",
    re.IGNORECASE,
)


CLAUSE = re.compile(r"[,.;:!?，。；：！？]")
NONE = re.compile(r"(?:n't|\bnot) any\b", re.IGNORECASE)  # "there isn't any" says no more than "no"
SMALL = (
    ("two", "两", "二"),
    ("three", "三"),
    ("four", "四"),
    ("five", "五"),
    ("six", "六"),
    ("seven", "七"),
    ("eight", "八"),
    ("nine", "九"),
    ("ten", "十"),
    ("eleven",),
    ("twelve",),
)
DIGITS = {word: str(number) for number, words in enumerate(SMALL, 2) for word in words}


def _numbers(text: str) -> set[str]:
    """Return the numbers of a text, small ones in digits however they are written."""
    digits = {number.rstrip(".,") for number in NUMBER.findall(text)}
    spelled = {found.lower() for found in SPELLED.findall(text)} - {"一"}  # that is also "a"
    return digits | {DIGITS.get(word, word) for word in spelled}


def _names(text: str) -> set[str]:
    """Return the capitalised words of a question, its first one aside."""
    return {word for word in _written(text)[1:] if word[0].isupper() and word != "I"}


def _written(text: str) -> list[str]:
    return [word.rstrip(".") for word in WORD.findall(text)]


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _qualifiers(text: str) -> set[str]:
    return {match.lower() for match in QUALIFIER.findall(text)}


def _words(text: str) -> set[str]:
    return {word.lower() for word in _written(text)}
