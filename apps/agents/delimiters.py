"""What stands around untrusted text in a prompt, and how text is kept from looking like it. Pure."""

import re

DELIMITER = re.compile(
    r"<(?=/?\s*(?:results?|stored|turns?|turn_context|handoff|attach(?:ed|ment)|notice)\b)", re.IGNORECASE
)


def disarmed(text: str) -> str:
    """Return text in which nothing opens or closes one of our blocks."""
    return DELIMITER.sub("‹", text)
