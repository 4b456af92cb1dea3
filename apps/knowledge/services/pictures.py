"""Pictures out of documents: files beside the Markdown, and a row each, by generation."""

import uuid
from collections.abc import Sequence

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from apps.knowledge.models import Document, DocumentImage
from apps.knowledge.parsers.parsed import Picture
from apps.knowledge.services.documents import discard, storing


def store(document: Document, pictures: Sequence[Picture]) -> list[str]:
    """Store a document's pictures; return their keys, in order.

    Raises:
        NoSpace, StorageFailed: none was stored.
    """
    keys: list[str] = []
    try:
        for picture in pictures:
            ending = picture.media_type.rpartition("/")[2]
            keys.append(f"documents/{document.workspace_id}/{document.pk}/{uuid.uuid4().hex}.{ending}")
            with storing():
                default_storage.save(keys[-1], ContentFile(picture.data))
    except BaseException:
        for key in keys:
            discard(key)
        raise
    return keys


def replace_pending(document: Document, pictures: Sequence[Picture], keys: Sequence[str]) -> list[str]:
    """Write rows for the generation in the making, in place of an earlier attempt's; return the keys of those."""
    generation, replaced = document.generation + 1, list[str]()
    if document.attempt > 1:
        pending = DocumentImage.objects.filter(document=document, generation=generation)
        replaced = list(pending.values_list("key", flat=True))
        pending.filter(key__in=replaced).delete()
    if pictures:
        DocumentImage.objects.bulk_create(
            DocumentImage(
                document=document,
                generation=generation,
                name=picture.name,
                key=key,
                content_type=picture.media_type,
                size_bytes=len(picture.data),
                width=picture.width,
                height=picture.height,
                page=picture.page,
            )
            for picture, key in zip(pictures, keys, strict=True)
        )
    return replaced


def keys(document: Document) -> list[str]:
    """Return the keys of the pictures of the generation that answers, and of older ones."""
    old = DocumentImage.objects.filter(document=document, generation__lte=document.generation)
    return list(old.values_list("key", flat=True))
