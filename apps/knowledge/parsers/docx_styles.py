"""What a Word file's styles and numbering say: which paragraph is a heading, which label a list item has."""

import re
from collections import defaultdict
from typing import Any

HEADING_NAME = re.compile(r"(?:heading|标题|標題|überschrift|titre|見出し)\s*(\d)$", re.I)
DEEPEST_STYLE = 20
_ZH_DIGITS = "零一二三四五六七八九"


def local(element: Any) -> str:
    """Return an element's name without its namespace; "" for what is no element."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def child(element: Any, *path: str) -> Any | None:
    """Return the first descendant along a path of local names."""
    for name in path:
        element = next((one for one in element if local(one) == name), None)
        if element is None:
            return None
    return element


def value(element: Any | None, name: str = "val") -> str:
    """Return an attribute by its local name, "" where there is none."""
    if element is None:
        return ""
    return next((found for key, found in element.attrib.items() if key.rpartition("}")[2] == name), "")


def number(text: str, default: int = 0) -> int:
    """Return a whole number, however the file wrote it."""
    try:
        return int(text)
    except ValueError:
        return default


class Styles:
    """Paragraph styles: their heading level and numbering, inherited from the style they are based on."""

    def __init__(self, root: Any | None) -> None:
        self._levels: dict[str, int] = {}
        self._numbering: dict[str, tuple[str, int]] = {}
        based: dict[str, str] = {}
        for style in () if root is None else root:
            if local(style) != "style":
                continue
            key, name = value(style, "styleId"), value(child(style, "name"))
            based[key] = value(child(style, "basedOn"))
            outline = child(style, "pPr", "outlineLvl")
            named = HEADING_NAME.match(name.strip())
            if outline is not None:
                self._levels[key] = number(value(outline), 9) + 1
            elif named:
                self._levels[key] = int(named.group(1))
            elif name.lower() in ("title", "标题"):
                self._levels[key] = 1
            numbered = child(style, "pPr", "numPr")
            if numbered is not None:
                self._numbering[key] = value(child(numbered, "numId")), number(value(child(numbered, "ilvl")))
        for known in (self._levels, self._numbering):
            for key in based:
                self._inherit(known, based, key)

    @staticmethod
    def _inherit(known: dict[str, Any], based: dict[str, str], key: str) -> None:
        at = key
        for _ in range(DEEPEST_STYLE):
            if at in known:
                known[key] = known[at]
                return
            at = based.get(at, "")

    def level(self, style: str) -> int:
        """Return a style's heading level, 0 for none."""
        found = self._levels.get(style, 0)
        return found if 1 <= found <= 6 else 0

    def numbering(self, style: str) -> tuple[str, int]:
        """Return the list that a style puts its paragraphs in: (number id, level), ("", 0) for none."""
        return self._numbering.get(style, ("", 0))


class Numbering:
    """Labels of list items, counted as Word counts them."""

    def __init__(self, root: Any | None) -> None:
        self._formats: dict[str, dict[int, tuple[str, str, int]]] = {}
        self._abstract: dict[str, str] = {}
        self._counts: dict[str, defaultdict[int, int]] = {}
        for element in () if root is None else root:
            if local(element) == "abstractNum":
                levels = (level for level in element if local(level) == "lvl")
                self._formats[value(element, "abstractNumId")] = {
                    number(value(level, "ilvl")): (
                        value(child(level, "numFmt")),
                        value(child(level, "lvlText")),
                        number(value(child(level, "start")), 1),
                    )
                    for level in levels
                }
            elif local(element) == "num":
                self._abstract[value(element, "numId")] = value(child(element, "abstractNumId"))

    def label(self, key: str, level: int) -> str:
        """Return the next label of a list's level: "-" for a bullet, "" where the item has no mark."""
        abstract = self._abstract.get(key, "")
        formats = self._formats.get(abstract, {})
        kind, pattern, _ = formats.get(level, ("bullet", "", 1))
        if kind == "bullet":
            return "-"
        if kind == "none" or not pattern:
            return ""
        counts = self._counts.setdefault(abstract, defaultdict(int))
        counts[level] = counts[level] + 1 if counts[level] else formats[level][2]
        for deeper in [one for one in counts if one > level]:
            del counts[deeper]

        def shown(match: re.Match[str]) -> str:
            at = int(match.group(1)) - 1
            name, _, start = formats.get(at, ("decimal", "", 1))
            return _written(counts.get(at) or start, name)

        return re.sub(r"%(\d)", shown, pattern).strip()


def _written(count: int, kind: str) -> str:
    if kind in ("lowerLetter", "upperLetter"):
        letter = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
        return letter if kind == "lowerLetter" else letter.upper()
    if kind in ("lowerRoman", "upperRoman"):
        roman = _roman(count)
        return roman if kind == "lowerRoman" else roman.upper()
    if kind.startswith(("chinese", "ideograph", "japanese", "taiwanese")):
        return _chinese(count)
    return str(count)


def _roman(count: int) -> str:
    text = ""
    for size, sign in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    ):
        times, count = divmod(count, size)
        text += sign * min(times, 10)
    return text


def _chinese(count: int) -> str:
    if count >= 100:
        return str(count)
    tens, ones = divmod(count, 10)
    head = ("" if tens == 1 else _ZH_DIGITS[tens]) + "十" if tens else ""
    return head + (_ZH_DIGITS[ones] if ones or not tens else "")
