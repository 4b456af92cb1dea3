"""Files that come with a question: taken in as they are dropped, taken back, opened again."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.common.errors import InvalidInput
from apps.conversations import services
from apps.conversations.attachment_errors import AttachmentGone
from apps.conversations.models import Attachment
from apps.knowledge import originals
from apps.knowledge.services.documents import storing
from apps.workspaces.pages import PersonRequest, enter


@require_POST
@login_required
def upload_attachment(request: PersonRequest, slug: str) -> HttpResponse:
    """Take one file and read it; the answer says what it is called, as a later question names it."""
    frame = enter(request, slug)
    file = request.FILES.get("file")
    if file is None:
        raise InvalidInput(field="file", reason=_("no file arrived. Choose one and try again."))
    row = services.add_attachment(
        workspace=frame["workspace"], file=file, name=str(file.name or ""), actor=request.user
    )
    content = {"id": str(row.pk), "name": row.name, "kind": row.kind, "characters": len(row.text)}
    return JsonResponse(content, status=201)


@require_POST
@login_required
def remove_attachment(request: PersonRequest, slug: str, attachment_id: UUID) -> HttpResponse:
    """Take back a file that nothing was asked about yet."""
    frame = enter(request, slug)
    waiting = Attachment.objects.editable_by(request.user).filter(workspace=frame["workspace"])
    services.remove_attachment(attachment=get_object_or_404(waiting, pk=attachment_id), actor=request.user)
    return HttpResponse(status=204)


@require_safe
@login_required
def download_attachment(request: PersonRequest, slug: str, attachment_id: UUID) -> HttpResponseBase:
    """Send a file's bytes to the person who attached it."""
    frame = enter(request, slug)
    mine = Attachment.objects.visible_to(request.user).filter(workspace=frame["workspace"])
    attachment = get_object_or_404(mine, pk=attachment_id)
    try:
        with storing():
            file = attachment.file.open("rb")
        return originals.send(file, name=attachment.name, size_bytes=attachment.size_bytes)
    except FileNotFoundError as error:
        raise AttachmentGone from error
