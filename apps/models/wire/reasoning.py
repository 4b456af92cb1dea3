"""Thinking that comes inside the answer's text, between tags that chunks cut anywhere."""

OPENERS = ("<think>", "<thinking>")
CLOSERS = ("</think>", "</thinking>")


class ThinkFilter:
    """Split streamed text into answer and reasoning.

    A block counts only before the answer's first visible character, so an answer *about* the tag is
    left alone. What may become a tag is held back until it is decided. A block that is never
    closed is reasoning to the end. With ``opened`` the text begins inside a block (some templates
    write the opening tag themselves); if the closing tag then never comes, ``finish`` gives all of it
    as answer.

    Attributes:
        stray: a closing tag stood alone on a line of the answer; such a vendor wants ``opened``
            next time.
        unopened: ``opened`` was a mistake; this vendor does not think that way any more.
    """

    def __init__(self, *, opened: bool = False) -> None:
        self.stray = False
        self.unopened = False
        self._opened = opened  # we are in a block that the template opened
        self._state = "block" if opened else "start"
        self._held = ""
        self._seen: list[str] = []  # of the template's block, to be given back
        self._last = "\n"  # last character of the answer
        self._thought = opened  # blank space before an answer counts only where no block came before

    def feed(self, text: str) -> tuple[str, str]:
        """Take more text; return what is decided of it as (answer, reasoning)."""
        if self._state == "text" and not self._held and "<" not in text:
            self._last = text[-1:] or self._last
            return text, ""
        answer: list[str] = []
        reasoning: list[str] = []
        text, self._held = self._held + text, ""
        while text:
            if self._state == "block":
                text = self._read_block(text, reasoning)
            elif self._state == "text":
                text = self._read_text(text, answer)
            else:
                text = self._read_start(text)
        return "".join(answer), "".join(reasoning)

    def finish(self) -> tuple[str, str]:
        """The stream is over: return what was held back."""
        held, self._held = self._held, ""
        if self._state == "block":
            if not self._opened:
                return "", held
            self.unopened = True
            return "".join(self._seen) + held, ""
        return (held.strip() if self._state == "start" and self._thought else held), ""

    def _read_start(self, text: str) -> str:
        visible = text.lstrip()
        if not visible or any(tag.startswith(visible) and tag != visible for tag in OPENERS):
            self._held = text
            return ""
        tag = next((tag for tag in OPENERS if visible.startswith(tag)), "")
        if tag:
            self._state, self._thought = "block", True
            return visible[len(tag) :]
        self._state = "text"
        return visible if self._thought else text

    def _read_block(self, text: str, reasoning: list[str]) -> str:
        at, tag = _first(text, CLOSERS)
        end = at if tag else len(text) - _partial(text, CLOSERS)
        if end:
            reasoning.append(text[:end])
            if self._opened:
                self._seen.append(text[:end])
        if tag:
            self._state, self._opened = "start", False
            return text[end + len(tag) :]
        self._held = text[end:]
        return ""

    def _read_text(self, text: str, answer: list[str]) -> str:
        at, tag = _first(text, CLOSERS)
        if not tag:
            end = len(text) - _partial(text, CLOSERS)
            self._say(text[:end], answer)
            self._held = text[end:]
            return ""
        self._say(text[:at], answer)
        rest = text[at + len(tag) :]
        if not rest:  # what follows decides
            self._held = tag
            return ""
        if self._last == "\n" and rest[0] == "\n":
            self.stray = True
            return rest.lstrip("\n")
        self._say(tag, answer)
        return rest

    def _say(self, text: str, answer: list[str]) -> None:
        if text:
            answer.append(text)
            self._last = text[-1]


def _first(text: str, tags: tuple[str, ...]) -> tuple[int, str]:
    found = [(at, tag) for tag in tags if (at := text.find(tag)) >= 0]
    return min(found) if found else (-1, "")


def _partial(text: str, tags: tuple[str, ...]) -> int:
    """Length of the longest end of ``text`` that may grow into a tag."""
    for size in range(min(max(map(len, tags)) - 1, len(text)), 0, -1):
        if any(tag.startswith(text[-size:]) for tag in tags):
            return size
    return 0
