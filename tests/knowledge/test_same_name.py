"""The same name with new bytes: asked, replaced, or kept beside."""

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from apps.knowledge import services
from apps.knowledge.errors import SameContent, SameName
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services.ingestion import parse_document

Status = Document.Status


@pytest.fixture
def again(handbook, ann):
    def again(content, if_same_name, name="plan.md", **more):
        file = ContentFile(content.encode())
        return services.add_document(
            knowledge_base=handbook, file=file, name=name, actor=ann, if_same_name=if_same_name, **more
        )

    return again


def test_somebody_is_asked_and_nothing_is_stored(ingest, again):
    document = ingest("# Old", "plan.md")
    with pytest.raises(SameName) as asked:
        again("# New", "ask")
    assert asked.value.details["document"] == str(document.pk)
    assert Document.objects.count() == 1
    assert again("# Old", "ask") == document


def test_another_folder_is_another_place(ingest, again, handbook, ann):
    ingest("# Old", "plan.md")
    folder = services.create_folder(knowledge_base=handbook, name="x", actor=ann)
    assert again("# New", "ask", folder=folder).name == "plan.md"


def test_both_are_kept_and_numbered(ingest, again):
    ingest("# Old", "plan.md")
    assert [again(f"# New {at}", "keep").name for at in range(2)] == ["plan (2).md", "plan (3).md"]


def test_a_replaced_one_answers_until_the_new_one_is_in_and_leaves_no_chunk(ingest, again):
    document = ingest("# Old", "plan.md")
    key = document.file.name
    assert again("# New", "replace") == document
    document.refresh_from_db()
    assert (document.status, document.generation) == (Status.UPLOADED, 1)
    assert Chunk.objects.get(document=document).text == "# Old"
    assert not default_storage.exists(key)
    services.ingest_document(document.pk)
    assert Chunk.objects.get(document=document).text == "# New"
    assert document.file.read() == b"# New"


def test_work_on_the_old_content_is_void(ingest, again, add):
    document = add("# Old", "plan.md")
    parse_document(document=document)
    assert document.claim(Status.INDEXING, among=[Status.PARSED], lease=services.work.LEASE)
    again("# New", "replace")
    assert not document.settle(Status.INDEXED)
    document.refresh_from_db()
    assert document.status == Status.UPLOADED
    assert services.ingest_document(document.pk)


def test_the_content_of_another_document_is_refused(ingest, again):
    ingest("# Old", "plan.md")
    other = ingest("# Other", "other.md")
    with pytest.raises(SameContent) as refused:
        services.replace_content(document=other, file=ContentFile(b"# Old"), actor=None)
    assert refused.value.details["name"] == "plan.md"
    other.refresh_from_db()
    assert other.file.read() == b"# Other"
    assert len(default_storage.listdir(f"documents/{other.workspace_id}/{other.pk}")[1]) == 2
