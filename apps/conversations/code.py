"""Code in answers with its words in colour: classes alone, since the pages' policy allows no inline style.

Only languages whose lexers are quick are coloured, and only code of a usual length: it is done while the answer
streams, and a pattern that backtracks must not hold up the others.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

from django.utils.html import escape

LONGEST, LONGEST_LINE = 8_000, 500  # characters
LANGUAGES = {
    "bash": "bash", "sh": "bash", "shell": "bash", "zsh": "bash", "console": "console",
    "c": "c", "cpp": "cpp", "c++": "cpp", "cs": "csharp", "csharp": "csharp", "c#": "csharp", "css": "css",
    "diff": "diff", "dockerfile": "docker", "docker": "docker", "go": "go", "golang": "go", "html": "html",
    "ini": "ini", "java": "java", "javascript": "javascript", "js": "javascript", "json": "json", "kotlin": "kotlin",
    "php": "php", "powershell": "powershell", "python": "python", "py": "python", "r": "r", "ruby": "ruby",
    "rust": "rust", "rs": "rust", "sql": "sql", "swift": "swift", "toml": "toml", "ts": "typescript",
    "typescript": "typescript", "xml": "xml", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
# Kinds of words, the narrower before the wider, and the class that colours them (static/css/chat.css).
CLASSES = (
    ("Token.Comment", "hc"), ("Token.Keyword", "hk"), ("Token.Operator.Word", "hk"), ("Token.Name.Tag", "hk"),
    ("Token.Literal.String", "hs"), ("Token.Literal.Number", "hn"), ("Token.Name.Function", "hf"),
    ("Token.Name.Class", "hf"), ("Token.Name.Builtin", "hf"), ("Token.Name.Attribute", "hf"),
    ("Token.Generic.Inserted", "hs"), ("Token.Generic.Deleted", "hd"), ("Token.Generic.Heading", "hk"),
)  # fmt: skip


def highlight(code: str, language: str, attributes: str = "") -> str:
    """Return code as HTML; without colours where the language is not known. What markdown-it asks of a highlighter."""
    words = language.split()
    name = LANGUAGES.get(words[0].lower()) if words else None
    if name is None or len(code) > LONGEST or any(len(line) > LONGEST_LINE for line in code.split("\n")):
        return escape(code)
    return "".join(_coloured(name, code))


def _coloured(name: str, code: str) -> Iterator[str]:
    for kind, group in groupby(_lexer(name).get_tokens(code), key=lambda token: _class(token[0])):
        text = escape("".join(value for _kind, value in group))
        yield f'<span class="{kind}">{text}</span>' if kind else text


@lru_cache(maxsize=32)
def _lexer(name: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # some milliseconds, for those who write code

    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


@lru_cache(maxsize=256)
def _class(kind: Any) -> str:
    return next((name for prefix, name in CLASSES if f"{kind}.".startswith(f"{prefix}.")), "")
