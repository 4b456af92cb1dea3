"""Files that come with a question: taken in, read at once, taken back."""

from django.core.files import File
from django.db import close_old_connections, connection

from apps.common.text import display_name
from apps.conversations import attachment_errors as errors
from apps.conversations.models import Attachment
from apps.knowledge.errors import DocumentFailure, EmptyFile, SandboxBusy
from apps.knowledge.parsers.content_types import PICTURES
from apps.knowledge.parsers.sniffing import sniff_file
from apps.knowledge.sandbox import reader
from apps.knowledge.sandbox.limits import Limits
from apps.knowledge.services.documents import discard, storing
from apps.workspaces import permissions
from apps.workspaces.models import User, Workspace

LARGEST_BYTES = 25 << 20
LONGEST = 1_000_000  # characters; what is longer belongs into a knowledge base
LIMITS = Limits(wall_s=45, cpu_s=40)  # somebody waits for it
WAIT_S = 30.0  # for files of others, which are read one at a time
WAITING = 50  # of one person, without a question


def add_attachment(*, workspace: Workspace, file: File[bytes], name: str, actor: User) -> Attachment:
    """Read a file with the parsers that documents are read with, and keep it for the next question.

    An image that holds no text that can be read is kept as well: a model may see it.

    Raises:
        NotFound, NotAllowed: the actor may not ask in this workspace.
        AttachmentTooLarge, AttachmentTooLong, TooManyAttachments: nothing was stored.
        AttachmentWaited: other files were being read for too long; nothing was stored.
        DocumentFailure: of the kind that says why the file cannot be read; nothing was stored.
    """
    permissions.require("ask", actor=actor, workspace=workspace)
    waiting = Attachment.objects.visible_to(actor).filter(workspace=workspace, conversation__isnull=True)
    if waiting.count() >= WAITING:
        raise errors.TooManyAttachments(limit=WAITING)
    if not file.size:
        raise EmptyFile
    if file.size > LARGEST_BYTES:
        raise errors.AttachmentTooLarge(limit_mb=LARGEST_BYTES >> 20)
    name = display_name(name)
    media_type = sniff_file(file, name)
    image = media_type in PICTURES
    if not connection.in_atomic_block:
        close_old_connections()  # none is held while the file is read
    text = _text(file, media_type, image=image)
    attachment = Attachment(
        workspace=workspace,
        owner=actor,
        name=name,
        kind=Attachment.Kind.IMAGE if image else Attachment.Kind.DOCUMENT,
        media_type=media_type,
        size_bytes=file.size,
        text=text,
    )
    file.seek(0)
    with storing():
        attachment.file.save(name, file, save=False)
    try:
        attachment.save(force_insert=True)
    except BaseException:
        discard(attachment.file.name or "")
        raise
    return attachment


def _text(file: File[bytes], media_type: str, *, image: bool) -> str:
    file.seek(0)
    try:
        parsed = reader.read(file.file or file, media_type, limits=LIMITS, wait_s=WAIT_S)
    except SandboxBusy as error:
        raise errors.AttachmentWaited from error
    except DocumentFailure:
        if not image:
            raise
        return ""
    markdown = parsed.markdown.strip()
    if not markdown and not image:
        raise EmptyFile
    if parsed.whole or len(markdown) > LONGEST:
        raise errors.AttachmentTooLong(limit=LONGEST)
    return markdown


def remove_attachment(*, attachment: Attachment, actor: User) -> None:
    """Take back a file that nothing was asked about yet; one that belongs to a question stays."""
    key = attachment.file.name or ""
    if Attachment.objects.editable_by(actor).filter(pk=attachment.pk).delete()[0]:
        discard(key)
