"""Template tags of documents."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from apps.common.templatetags.ks import percent
from apps.knowledge import errors, progress
from apps.knowledge import remarks as remarks_module
from apps.knowledge.models import Document, Job
from apps.knowledge.services import jobs

register = template.Library()

# The stages of ``services.work`` that are worth a word of their own.
STAGES = {
    "recognising": _("Recognising text in pictures"),
    "describing": _("Describing pictures"),
    "cutting": _("Cutting into passages"),
    "storing": _("Storing"),
}


@register.filter
def failure(document: Document) -> str:
    """Return why a document could not be read or indexed, and what to do, in one sentence."""
    return errors.failure(document.error_code, document.error_details).message


@register.filter
def reason(job: Job) -> str:
    """Return why a job failed, in one sentence."""
    found = jobs.reason(job)
    return found.message if found else ""


@register.filter
def model_name(reference: str) -> str:
    """Return the name of the model that a reference stands for."""
    return reference.partition(":")[2]


@register.filter
def remarks(document: Document) -> list[str]:
    """Return what reading the document left out or had to guess, in sentences."""
    return remarks_module.remarks(document.metadata)


@register.filter
def doing(document: Document) -> str:
    """Return what is being done with a document, else its state."""
    return str(STAGES.get(document.stage) or Document.Status(document.status).label)


@register.filter
def seen_as(document: Document) -> str:
    """Return id and state as the page shows them, to ask only for what has changed since."""
    return progress.seen_as(document)


@register.simple_tag
def state(document: Document) -> SafeString:
    """Draw how far a document has come; rows show it twice, for two widths, so it is no template."""
    moving, word, share = not settled(document), doing(document), percent(document.progress or 0)
    if moving and document.cancel_requested:
        inside: str = str(_("Stopping"))
    elif moving and document.progress:
        inside = format_html('{} <span class="num">{}%</span>', word, share)
    else:
        inside = word
    look = "error" if document.status.startswith("error") else document.status  # both errors look the same
    pill = format_html('<span class="pill" data-s="{}">{}</span>', look, inside)
    if document.status not in {Document.Status.PARSING, Document.Status.INDEXING}:
        return pill
    bar = '{0}<progress class="prog stage" max="100" value="{1}" aria-label="{2} {1}%"></progress>'
    return format_html(bar, pill, share, word)


@register.filter
def settled(document: Document) -> bool:
    """Return whether nothing is being done with the document, so that its row need not be asked for again."""
    return document.status in Document.FINAL
