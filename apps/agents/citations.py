"""Markers in the answer's stream: ``[[cN]]`` for what was read, nothing else."""

import re
from collections.abc import Callable

OPEN = r"[\[【［]"
CLOSE = r"[\]】］]"
SEPARATOR = r"\s{0,2}[,，、;；]\s{0,2}"
IDS = rf"\s{{0,2}}[cC]\d{{1,4}}(?:{SEPARATOR}[cC]?\d{{1,4}}){{0,15}}\s{{0,2}}"
CHAIN = rf"{OPEN}{{2}}{IDS}(?:{CLOSE}{OPEN}{IDS}){{1,8}}{CLOSE}{{2}}"  # "[[c1][c2]]"
MARKER = re.compile(rf"{CHAIN}|{OPEN}{{2}}({IDS}){CLOSE}{{1,2}}|{OPEN}({IDS}){CLOSE}")
# Any beginning of a marker that ends with the text; also "[[c1]", whose second bracket may follow.
SOME_IDS = rf"\s{{0,2}}(?:[cC](?:\d{{1,4}}(?:{SEPARATOR}[cC]?\d{{1,4}}){{0,15}}(?:\s{{0,2}}|{SEPARATOR}[cC]?))?)?"
PARTIAL = re.compile(
    rf"(?:{OPEN}{{1,2}}{SOME_IDS}|{OPEN}{{2}}{IDS}(?:{CLOSE}{OPEN}{IDS}){{0,8}}{CLOSE}(?:{OPEN}{SOME_IDS})?)\Z"
)
OPENING = re.compile(OPEN)
NUMBER = re.compile(r"\d+")


class CitationFilter:
    """Pass an answer through, text by text, with its markers put right.

    Known markers leave as ``[[cN]]``; ``[[c1, c2]]``, ``【c1】``, ``[c1]`` and ``[[C1]]`` are
    variants of it; unknown numbers are dropped and counted in ``unknown``. Only a possible
    beginning of a marker is held back, so the output does not depend on how the text was cut.
    """

    def __init__(self, is_known: Callable[[int], bool]) -> None:
        self._is_known = is_known
        self._held = ""
        self.unknown = 0

    def feed(self, text: str) -> str:
        """Take more of the answer, return what can be shown."""
        if not self._held and not OPENING.search(text):
            return text  # most tokens
        text = self._held + text
        partial = PARTIAL.search(text)
        cut = partial.start() if partial else len(text)
        self._held = text[cut:]
        return MARKER.sub(self._normalise, text[:cut])

    def finish(self) -> str:
        """Return what was held back; nothing follows."""
        rest, self._held = self._held, ""
        return MARKER.sub(self._normalise, rest)

    def _normalise(self, match: re.Match[str]) -> str:
        numbers = [int(number) for number in NUMBER.findall(match[0])]
        known = [number for number in numbers if self._is_known(number)]
        self.unknown += len(numbers) - len(known)
        return "".join(f"[[c{number}]]" for number in known)
