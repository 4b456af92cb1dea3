"""One thing of every kind in acme, by the names that addresses have for them."""

from types import SimpleNamespace

from django.core.files.base import ContentFile


def furnish(acme, ann, bea, base):
    """Put one thing of every kind into acme; conversations and what is remembered are ann's."""
    from apps.knowledge.models import Chunk, Document
    from apps.knowledge.services import grant

    document = Document(
        workspace=acme, knowledge_base=base, name="plan.md", size_bytes=6, sha256="0" * 64,
        status="error_parsing", error_code="empty_file", uploaded_by=ann,
    )  # fmt: skip
    document.file.save("original", ContentFile(b"# Plan"), save=False)
    document.markdown_key = document.file.storage.save("plan.md", ContentFile(b"# Plan"))
    document.save()
    chunk = Chunk.objects.create(
        knowledge_base=base, document=document, generation=0, level=0, ordinal=0, text="# Plan", start=0, end=6
    )
    grant(knowledge_base=base, user=bea, level="read", actor=ann)
    return SimpleNamespace(base_id=base.pk, document_id=document.pk, chunk_id=chunk.pk, user_id=bea.pk)
