"""Sentences that the product itself says in a turn, in the turn's language."""

from django.utils import translation
from django.utils.translation import gettext_lazy as _

NOTICES = {
    "no_base": _(
        "No knowledge base is selected, so there is nothing to look this up in. "
        "Select one, or upload documents, and ask again."
    ),
    "web_off": _("This needs the web, and web access is off for this question. Turn it on and ask again."),
    "remembered": _("I will remember that."),
    "no_memory": _("This could not be saved to your memory. Ask again to remember it."),
    "passages_found": _("Passages: %(passages)s, documents: %(documents)s"),
    "image_by_text": _("No model that sees is set up: only the text in the picture was read."),
    "image_unseen": _("The picture could not be looked at: no model that sees is set up, and there is no text in it."),
    "pages_found": _("Pages: %(pages)s"),
    "plan_written": _("Done: %(done)s of %(steps)s"),
    "address_refused": _("Refused: neither you nor a search gave this address."),
    "nothing_found": _("Nothing was found for this. Looked for: %(queries)s"),
    "no_answer": _("The model looked things up but wrote no answer. Ask again, or choose another model."),
    "lookup_failed": _(
        "What was to be looked up could not be reached just now, so there is no answer. Ask again in a moment."
    ),
    "characters_read": _("Characters: %(read)s of %(of)s"),
    "documents_described": _("Documents: %(documents)s"),
    "tool_refused": _("Not done: the call was wrong."),
    "tool_failed": _("Did not work."),
    "tool_stopped": _("Stopped."),
    "tool_retried": _("%(tool)s: try %(n)s of %(of)s"),
    "no_checkpoint": _(
        "The conversation's state could not be reached. This answer was made from memory and is complete."
    ),
    "no_history": _(
        "The earlier turns of this conversation could not be read. This answer was made without them; "
        "ask again if it depends on them."
    ),
    "cut": _("The answer reached the model's length limit."),
}


def say(language: str, code: str, **values: object) -> str:
    """Return a notice in ``language``."""
    with translation.override(language):
        return str(NOTICES[code]) % values
