"""Delimiters of a base's own: a chunk ends after each, whatever else would fit into it."""

from dataclasses import dataclass

import regex

from apps.knowledge.chunkers.settings import ChunkerSettings, SettingRefused, switch, words

LONGEST = 200  # characters of a delimiter
MATCHING_S = 5.0  # for one document: a pattern may be written so that it never ends
TYPED = {r"\n": "\n", r"\t": "\t", r"\r": "\r"}


@dataclass(frozen=True, slots=True)
class Delimited(ChunkerSettings):
    r"""Settings of a chunker that knows delimiters.

    One typed as ``\n`` is a newline; every other sign stands for itself unless ``delimiter_is_regex``.
    """

    delimiter: str = words(most=LONGEST)
    delimiter_is_regex: bool = switch()

    def check(self) -> None:
        """Refuse also a pattern that is none, or that matches nothing at all."""
        ChunkerSettings.check(self)
        if self.delimiter and self.pattern().match("") is not None:
            raise SettingRefused("delimiter", "must not match an empty text")

    def pattern(self) -> "regex.Pattern[str]":
        """Return the delimiter as a compiled pattern.

        Raises:
            SettingRefused: it is no regular expression.
        """
        typed = self.delimiter
        if not self.delimiter_is_regex:
            for written, meant in TYPED.items():
                typed = typed.replace(written, meant)
            typed = regex.escape(typed)
        try:
            return regex.compile(typed)
        except regex.error as error:
            raise SettingRefused("delimiter", f"is no regular expression: {error}") from error

    def breaks(self, markdown: str) -> list[int]:
        """Return where delimiters end, in order.

        Raises:
            SettingRefused: matching takes too long.
        """
        if not self.delimiter:
            return []
        try:
            return [match.end() for match in self.pattern().finditer(markdown, timeout=MATCHING_S)]
        except TimeoutError as error:
            raise SettingRefused("delimiter", "takes too long to match; write a simpler one") from error
