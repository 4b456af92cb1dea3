"""What can go wrong with a document, each with a stable code and a sentence for its owner.

A document that failed stores the code and details; ``failure`` turns them back into the sentence.
"""

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.common.errors import Conflict, InvalidInput, KnowSphereError


class KnowledgeOff(KnowSphereError):
    """The operator has switched documents off on this server (LITE)."""

    code = "knowledge_off"
    status = 409
    user_message = _("This server works without documents. Nothing was stored; ask your operator to switch them on.")


class DocumentFailure(KnowSphereError):
    """Base of all failures that end an attempt to take a document in."""

    code = "document_failed"
    status = 422


class EmptyFile(DocumentFailure):
    """The file has no bytes, or no text in it."""

    code = "empty_file"
    user_message = _("The file has nothing in it to read. Check that it was saved, then upload it again.")


class UnsupportedFileType(DocumentFailure):
    """No parser is registered for what the file is."""

    code = "unsupported_file_type"
    status = 415
    user_message = _(
        "KnowSphere cannot read files of type %(content_type)s. Save it as PDF, Word (.docx), HTML or text."
    )


class TypeMismatch(DocumentFailure):
    """The file is something else than its name says, and nothing that can be read."""

    code = "type_mismatch"
    status = 415
    user_message = _("The name ends in %(extension)s, but the file is of type %(content_type)s. Upload the right file.")


class FileTooLarge(DocumentFailure):
    """The file is larger than the operator allows."""

    code = "file_too_large"
    status = 413
    user_message = _("The file is larger than the %(limit_mb)s MB allowed here. Split it, or ask your operator.")


class PasswordRequired(DocumentFailure):
    """The file is encrypted."""

    code = "password_required"
    user_message = _("The file is protected by a password. Enter it, or upload a copy without it.")


class BrokenFile(DocumentFailure):
    """The file is damaged, or not what its type promises."""

    code = "broken_file"
    user_message = _("The file is damaged and cannot be read. Open it in its own program, save it again, upload it.")


class SuspiciousFile(DocumentFailure):
    """The file inflates beyond all measure or has far too many parts."""

    code = "suspicious_file"
    user_message = _("The file unpacks to far more than its size and was not opened. Save it again and upload that.")


class ParseTimeout(DocumentFailure):
    """Reading took longer than it may."""

    code = "parse_timeout"
    user_message = _("Reading the file took too long and was stopped. Split it into smaller files.")


class ParseMemory(DocumentFailure):
    """Reading wanted more memory than it may have."""

    code = "parse_memory"
    user_message = _("Reading the file needs more memory than is allowed. Split it into smaller files.")


class NeedsOcr(DocumentFailure):
    """The file is made of pictures of text, and no text recognition is installed."""

    code = "needs_ocr"
    user_message = _(
        "The file holds pictures of text only, and no text recognition is installed here. Ask your operator to "
        "install it, or upload a version with text."
    )


class NoTextRecognised(DocumentFailure):
    """The pages are pictures, and nothing legible is on them."""

    code = "no_text_recognised"
    user_message = _(
        "The pages are pictures (%(pages)s looked at), and no text was recognised on them. Scan them again, "
        "upright and sharp, at 200 dots an inch or more."
    )


class NeedsSpeechModel(DocumentFailure):
    """The file is a recording, and nothing here writes down what is said."""

    code = "needs_speech_model"
    user_message = _("The file is a recording, and no speech model is set up. Upload what is said in it as text.")


class TranscriptionFailed(DocumentFailure):
    """The speech model does not answer, or refuses the recording."""

    code = "transcription_failed"
    status = 503
    retryable = True
    user_message = _(
        "The speech model %(model)s did not write down the recording: %(reason)s. The file is safe; try again later."
    )


class DescriptionFailed(DocumentFailure):
    """Nothing is written on the picture, and the vision model did not describe it."""

    code = "description_failed"
    status = 503
    retryable = True
    user_message = _(
        "Nothing is written on the picture, and the vision model did not describe it: %(reason)s. "
        "The file is safe; try again later."
    )


class PageUnreachable(DocumentFailure):
    """A web page could not be fetched."""

    code = "page_unreachable"
    status = 502
    retryable = True
    user_message = _("The page could not be fetched: %(reason)s. What was read of it before is still there; try again.")


class NoRoom(DocumentFailure):
    """A web page is larger than what the workspace, or the person who added it, may still store."""

    code = "no_room"
    status = 429
    user_message = _(
        "The page does not fit into what may still be stored here. What was read of it before is still there; "
        "delete what is not needed, or ask an owner or the operator for more."
    )


class EmbeddingFailed(DocumentFailure):
    """The embedding model gave no usable vector for any part of the document."""

    code = "embedding_failed"
    status = 503
    retryable = True
    user_message = _("The embedding model could not process the text: %(reason)s. The file is safe; try again later.")


class EmbeddingChanged(DocumentFailure):
    """The model returns vectors of another length than the base holds."""

    code = "embedding_changed"
    status = 409
    user_message = _(
        "The embedding model now returns %(got)s numbers, the knowledge base holds %(expected)s. "
        "Choose the former model again, or start a new knowledge base."
    )


class EmbeddingSwitched(DocumentFailure):
    """The base was moved to another embedding model while the document was embedded with the former one."""

    code = "embedding_switched"
    status = 409
    retryable = True
    user_message = _("The base moved to another embedding model meanwhile. The document is indexed with that one now.")


class NoSpace(DocumentFailure):
    """The disk of the database or of the file store is full."""

    code = "no_space"
    status = 507
    retryable = True
    user_message = _("There is no disk space left. Nothing was changed; ask your operator, then try again.")


class StorageFailed(DocumentFailure):
    """The file store does not answer or refuses."""

    code = "storage_failed"
    status = 503
    retryable = True
    user_message = _("The file could not be stored or read back. Nothing was changed; try again soon.")


class DatabaseFailed(DocumentFailure):
    """The database refused the rows or went away."""

    code = "database_failed"
    status = 503
    retryable = True
    user_message = _("The database did not take the document. Nothing was changed; try again soon.")


class OriginalMissing(DocumentFailure):
    """The uploaded file is no longer in the file store."""

    code = "original_missing"
    user_message = _("The stored file is gone. Upload it again.")


class WorkerLost(DocumentFailure):
    """The worker ended several times in a row while it was on this document."""

    code = "worker_lost"
    retryable = True
    user_message = _("The worker stopped %(times)s times while working on this file, so it was set aside. Try again.")


class Cancelled(DocumentFailure):
    """Somebody stopped the work."""

    code = "cancelled"
    user_message = _("Stopped on request. The file is safe; start it again when you like.")


class InternalFailure(DocumentFailure):
    """A fault of our own; the log has it, by document id."""

    code = "internal_error"
    status = 500
    user_message = _("Something went wrong on our side, and it has been logged. The file is safe; try again.")


class BusyDocument(Conflict):
    """The document is being worked on, or is in a state from which this act cannot start."""

    code = "document_busy"
    user_message = _("The document is %(state)s now, so this cannot start. Wait until it is done, or cancel it.")


class SameName(Conflict):
    """Another document there has this name and other content: somebody must say what is to become of it."""

    code = "same_name"
    user_message = _("There is a document “%(name)s” with other content here. Replace it, or keep both.")

    @property
    def message(self) -> str:
        """The sentence, and what becomes of the passages that people changed there, where they did."""
        count = self.details.get("changed_passages", 0)
        if not count:
            return super().message
        told = ngettext(
            "People changed %(count)s passage in it: where the new content has no passage with the very same text, "
            "the change is listed and not applied.",
            "People changed %(count)s passages in it: where the new content has no passage with the very same text, "
            "a change is listed and not applied.",
            count,
        )
        return f"{super().message} {told % {'count': count}}"


class SameContent(Conflict):
    """Another document of the base has this very content already."""

    code = "same_content"
    user_message = _("This very content is in the base already, as “%(name)s”. Nothing was changed.")


class JobActive(Conflict):
    """The same act on the same documents is under way."""

    code = "job_active"
    user_message = _("This is being done already. Wait until it has ended, or cancel it.")


class NothingChosen(InvalidInput):
    """An act on documents names none that it could be done to."""

    code = "nothing_chosen"
    user_message = _("None of the chosen documents can be found. Reload the page and choose again.")


class FolderNameTaken(Conflict):
    """There is a folder of this name at this place."""

    code = "folder_name_taken"
    user_message = _("There is already a folder named “%(name)s” here.")


class FolderRefused(InvalidInput):
    """A folder cannot be where it is wanted."""

    code = "folder_refused"
    user_message = _("The folder cannot be put there: it would be inside itself, or more than %(deepest)s levels deep.")


class SandboxBusy(KnowSphereError):
    """Other files are being read here, and who waits for a page would wait too long."""

    code = "sandbox_busy"
    status = 503
    retryable = True
    user_message = _("The source cannot be shown now. Try again.")


class NameTaken(Conflict):
    """Another knowledge base of the workspace has this name."""

    code = "name_taken"
    user_message = _("There is already a knowledge base named “%(name)s” in this workspace.")


def _all(base: type[DocumentFailure]) -> dict[str, type[DocumentFailure]]:
    return {failure.code: failure for failure in base.__subclasses__()}


FAILURES = _all(DocumentFailure)


def failure(code: str, details: dict[str, Any] | None = None) -> DocumentFailure:
    """Return the error that a document's code and details stand for, to show its sentence."""
    return FAILURES.get(code, InternalFailure)(**(details or {}))
