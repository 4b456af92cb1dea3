"""Pictures of documents: stored with the generation, shown to readers only, gone with the document."""

from datetime import timedelta

from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone

from apps.knowledge import services
from apps.knowledge.models import Document, DocumentImage
from apps.knowledge.services.ingestion import index_document
from apps.knowledge.services.sweeping import erase_deleted, sweep_files
from tests.knowledge.files import p
from tests.knowledge.test_illustrations import PLAIN, blip, run, word


def files(document):
    return sorted(default_storage.listdir(f"documents/{document.workspace_id}/{document.pk}")[1])


def test_pictures_live_with_the_text_that_they_stand_in(ingest, client, ann, mal, acme):
    document = ingest(word(p("Before.") + run(blip("red", "A red square")), red=PLAIN), "a.docx")
    image = DocumentImage.objects.get(document=document)
    assert (image.generation, image.width, image.content_type) == (1, 64, "image/jpeg")
    address = reverse("knowledge:show-picture", args=[acme.slug, document.pk, image.name])
    client.force_login(ann)
    assert client.get(address)["Content-Type"] == "image/jpeg"
    client.force_login(mal)
    assert client.get(address).status_code == 404

    index_document(document=document)
    assert list(DocumentImage.objects.values_list("pk", "generation")) == [(image.pk, 2)]
    services.reparse_document(document=document, actor=ann)
    services.ingest_document(document.pk)
    again = DocumentImage.objects.get(document=document)
    assert (again.generation, again.name) == (3, image.name)
    assert not default_storage.exists(image.key)
    assert sweep_files() == 0
    assert len(files(document)) == 3

    services.delete_document(document=document, actor=ann)
    client.force_login(ann)
    assert client.get(address).status_code == 404
    Document.objects.update(deleted_at=timezone.now() - timedelta(seconds=11))
    erase_deleted()
    assert not DocumentImage.objects.exists()
    assert not default_storage.exists(again.key)


def test_an_attempt_that_read_but_was_not_indexed_leaves_no_pictures_behind(add, embedder):
    document = add(word(p("Before.") + run(blip("red")), red=PLAIN), "a.docx")
    for _ in range(2):
        services.parse_document(document=document)
        Document.objects.filter(pk=document.pk).update(status="error_parsing")
        document.refresh_from_db()
    assert DocumentImage.objects.count() == 1
    assert len(files(document)) == 3
