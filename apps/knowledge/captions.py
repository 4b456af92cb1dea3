"""Words for the pictures inside a document: what is written in them, and what a model sees in them."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from uuid import UUID

from apps.knowledge import describing
from apps.knowledge.errors import BrokenFile, NeedsOcr, ParseMemory, ParseTimeout, SuspiciousFile
from apps.knowledge.parsers.illustrations import REFERENCE, reference
from apps.knowledge.parsers.parsed import Picture
from apps.knowledge.sandbox import reader
from apps.models import gateway

Progress = Callable[[str, float], None]

MOST_READ = 100
READING_S = 600.0  # for the pictures of one document
LEAST_READ = (64, 20)  # pixels; nothing is written on less
MOST_DESCRIBED = 40
LEAST_DESCRIBED = 120  # pixels a side
LONGEST_INLINE = 300  # characters, where a caption stands inside a line
HEADING = re.compile(r"^#+ ", re.M)
OF_A_PICTURE = (NeedsOcr, ParseTimeout, ParseMemory, BrokenFile, SuspiciousFile)


def recognised(pictures: Sequence[Picture], check: Callable[[], None], progress: Progress) -> dict[str, str]:
    """Return what is written in pictures, by their names; pictures beyond the limits are left out."""
    texts: dict[str, str] = {}
    until = time.monotonic() + READING_S
    legible = [one for one in pictures if one.width >= LEAST_READ[0] and one.height >= LEAST_READ[1]][:MOST_READ]
    for done, picture in enumerate(legible):
        progress("recognising", done / len(legible))
        if time.monotonic() > until:
            break
        try:
            found = reader.read(BytesIO(picture.data), picture.media_type, page=1, check=check).markdown
        except NeedsOcr:
            break
        except OF_A_PICTURE:
            continue
        texts[picture.name] = HEADING.sub("", found)
    return texts


def described(
    pictures: Sequence[Picture], workspace_id: UUID | None, check: Callable[[], None], progress: Progress
) -> tuple[dict[str, str], gateway.ModelError | None]:
    """Return what a vision model sees in pictures, by their names, and the error that ended it early.

    Nothing where no model of the kind is set up.
    """
    model = describing.vision_model(workspace_id)
    if model is None:
        return {}, None
    texts: dict[str, str] = {}
    visible = [one for one in pictures if min(one.width, one.height) >= LEAST_DESCRIBED][:MOST_DESCRIBED]
    for done, picture in enumerate(visible):
        progress("describing", done / len(visible))
        try:
            texts[picture.name] = describing.described(model, picture, check)
        except gateway.ModelError as error:
            return texts, error
    return texts, None


def written(markdown: str, captions: Mapping[str, str], seen: set[str]) -> str:
    """Return Markdown with captions at the first place where each picture stands; ``seen`` is added to.

    A picture on a line of its own gets paragraphs, one inside a line gets the caption as its words.
    """

    def caption(match: re.Match[str]) -> str:
        name = match.group(2)
        text = captions.get(name, "")
        if not text or name in seen:
            return match.group()
        seen.add(name)
        alone = _line_around(markdown, match) == match.group()
        if alone:
            return f"{match.group()}\n\n{text}"
        return match.group() if match.group(1) else reference(name, " ".join(text.split())[:LONGEST_INLINE])

    return REFERENCE.sub(caption, markdown)


def _line_around(markdown: str, match: re.Match[str]) -> str:
    start = markdown.rfind("\n", 0, match.start()) + 1
    end = markdown.find("\n", match.end())
    return markdown[start : end if end >= 0 else len(markdown)].strip()
