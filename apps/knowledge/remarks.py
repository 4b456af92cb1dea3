"""What reading a document left out or had to guess, in sentences for its owner."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MOST_NAMED = 30  # runs of pages


def remarks(metadata: Mapping[str, Any]) -> list[str]:
    """Return the sentences that a document's metadata stand for, the gravest first."""
    return list(_remarks(metadata))


def _remarks(metadata: Mapping[str, Any]) -> Iterator[str]:
    unread = metadata.get("unread_pages")
    if isinstance(unread, list) and unread:
        yield _("Pages that could not be read: %(pages)s. The rest of the document is searchable.") % {
            "pages": _runs(sorted(unread))
        }
    if inside := metadata.get("unread"):
        yield _("Files inside that could not be read: %(names)s.") % {"names": inside}
    if cut := metadata.get("truncated"):
        yield _("Left out because it is too large: %(parts)s.") % {"parts": cut}
    if hidden := metadata.get("hidden_sheets"):
        yield _("Hidden sheets that were left out: %(names)s.") % {"names": hidden}
    if count := metadata.get("formulas_without_values"):
        yield ngettext(
            "%(count)s formula has no saved value and is left out: open the file in a spreadsheet program, save it, "
            "and add it again.",
            "%(count)s formulas have no saved value and are left out: open the file in a spreadsheet program, save it, "
            "and add it again.",
            count,
        ) % {"count": count}
    if count := metadata.get("tables_skipped"):
        yield ngettext(
            "The tables of %(count)s page were read as plain text, because there are so many.",
            "The tables of %(count)s pages were read as plain text, because there are so many.",
            count,
        ) % {"count": count}
    if metadata.get("not_described"):
        yield _("Pictures were not described, because the vision model did not answer.")
    if count := metadata.get("pictures_left_out"):
        yield ngettext(
            "%(count)s picture was not kept: too large, too many, or of a kind that browsers do not show.",
            "%(count)s pictures were not kept: too large, too many, or of a kind that browsers do not show.",
            count,
        ) % {"count": count}
    if metadata.get("best_effort"):
        yield _("This format is read as well as possible; parts may be missing or out of order.")
    if count := metadata.get("recognised_pages"):
        yield ngettext(
            "The text of %(count)s page was recognised from its picture and may hold mistakes.",
            "The text of %(count)s pages was recognised from their pictures and may hold mistakes.",
            count,
        ) % {"count": count}
    if model := metadata.get("transcribed_by"):
        yield _("Written down by the speech model %(model)s; it may hold mistakes.") % {"model": model}


def _runs(numbers: Sequence[int]) -> str:
    """Return sorted numbers with runs joined: 3, 7–9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in runs[:MOST_NAMED]]
    return ", ".join([*texts, "…"] if len(runs) > MOST_NAMED else texts)
