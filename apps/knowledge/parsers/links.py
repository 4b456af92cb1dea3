"""Links of a document: ``[words](address)`` in its Markdown, for those that lead to the web or to a mailbox.

Others lead nowhere from here: places in the page itself, files beside it, scripts. Their words stay.
"""

import re

LONGEST_ADDRESS = 1_000  # characters; longer ones are made for machines
ABROAD = re.compile(r"(?:https?://[^\s/?#]|mailto:[^\s@]+@)\S*", re.I)
ENCODED = {mark: f"%{ord(mark):02X}" for mark in '()<>"\\|[]`'}
LINK = re.compile(r"(?<!!)\[([^\[\]\n]++)\]\((?:https?://|mailto:)[^\s()]++\)", re.I)


def linked(words: str, address: str | None) -> str:
    """Return Markdown that leads where a link led; its words alone where that is nowhere from here, or what they say.

    Words with brackets or a picture in them are left as they are: they would have to be written differently.
    """
    target = "".join(ENCODED.get(mark, mark) for mark in (address or "").strip())
    shown = words.strip()
    if not shown or len(target) > LONGEST_ADDRESS or not ABROAD.fullmatch(target) or set(words) & set("[]\n"):
        return words
    if shown.lower() in (target.lower(), target.lower().removeprefix("mailto:")):
        return words
    before, after = words[: len(words) - len(words.lstrip())], words[len(words.rstrip()) :]
    return f"{before}[{shown}]({target}){after}"


def without_addresses(markdown: str) -> str:
    """Return Markdown with the words of links in their place."""
    return LINK.sub(r"\1", markdown) if "](" in markdown else markdown
