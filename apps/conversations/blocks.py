"""Which parts of a growing Markdown text can no longer change. Pure.

A block closes when the next one has begun. The parser itself says where blocks begin, so lists,
quotes, tables and fences need no rules of ours; this module only decides when to ask it.
"""

import re
from collections.abc import Iterator

from apps.conversations.markdown import block_starts

# After a blank line, such a beginning starts a block of its own whatever follows on the line, so
# its end need not be awaited: it is neither indented nor a list's next marker or a fence.
CERTAIN = re.compile(r"(?:\*\*)?[^\W\d_]|[“‘「『《〈（]")


class BlockStream:
    """Cut an answer into top-level blocks while it is written.

    The blocks, joined, are the answer; each rendered on its own and joined, they are the answer's
    rendering. Cost is linear: after a look that closed nothing, the next waits until the open text
    has grown by half.
    """

    def __init__(self) -> None:
        self._open = ""
        self._looked_at = 0

    def feed(self, text: str) -> Iterator[str]:
        """Take more of the answer; yield the blocks that it closed."""
        self._open += text
        if len(self._open) < self._looked_at * 1.5:
            return
        settled = self._settled(text)
        if not settled:
            return
        starts = block_starts(self._open[:settled])
        if len(starts) < 2:
            self._looked_at = settled
            return
        yield from self._cut(starts)
        self._looked_at = 0

    def finish(self) -> Iterator[str]:
        """Yield what is left."""
        yield from self._cut(block_starts(self._open))
        if self._open.strip():
            yield self._open
        self._open = ""

    def _settled(self, text: str) -> int:
        """Return how much of the open text a look may see: whole lines, or all if that is certain."""
        line = self._open.rfind("\n") + 1
        if line and CERTAIN.match(self._open, line):
            before = self._open.rfind("\n", 0, line - 1)
            if before >= 0 and not self._open[before:line].strip(" \t\n"):
                return len(self._open)
        return line if "\n" in text else 0

    def _cut(self, starts: list[int]) -> Iterator[str]:
        """Yield all blocks but the last, and keep that one."""
        begin = 0
        for start in starts[1:]:
            yield self._open[begin:start]
            begin = start
        self._open = self._open[begin:]
