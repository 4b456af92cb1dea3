"""Reading passages and documents: what may be read now, and nothing else."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.core.files.base import ContentFile

from apps.common import database
from apps.common.errors import InvalidInput
from apps.knowledge import services
from apps.knowledge.models import Chunk, KnowledgeBase
from apps.knowledge.retrieval import reading

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "# Leave\n\nAnnual leave is ten days.\n\n# Sick leave\n\nSick leave is paid. Form K-77 (50% up)."


@pytest.fixture(autouse=True)
async def pools():
    yield
    await database.close_pool()


@pytest.fixture
def document(handbook, ann):
    made = services.add_document(
        knowledge_base=handbook, file=ContentFile(TEXT.encode(), name="l.md"), name="Leave.md", actor=ann
    )
    services.ingest_document(made.pk)
    made.refresh_from_db()
    assert made.status == "indexed"
    return made


@pytest.fixture
def chunks(document):
    return list(Chunk.objects.filter(document=document).order_by("level", "ordinal"))


async def test_a_document_in_its_order_and_passages_by_id(ann, document, chunks):
    parents = [chunk for chunk in chunks if chunk.level == Chunk.PARENT]
    read = await reading.list_chunks(ann, document_id=document.pk)
    assert [p.chunk_id for p in read] == [chunk.pk for chunk in parents]
    assert "".join(p.text for p in read).count("ten days") == 1
    assert [p.chunk_id for p in await reading.list_chunks(ann, document_id=document.pk, first=len(parents))] == []
    wanted = [chunk.pk for chunk in reversed(parents)]
    assert [p.chunk_id for p in await reading.list_chunks(ann, chunk_ids=wanted)] == wanted
    for child in (chunk for chunk in chunks if chunk.level == Chunk.CHILD):
        assert [p.chunk_id for p in await reading.list_chunks(ann, chunk_ids=[child.pk])] == [child.parent_id]


async def test_a_pattern(ann, document, handbook):
    def bases():
        return [handbook.pk]

    assert len(await reading.grep_chunks(ann, r"k-\d+", knowledge_bases=bases())) == 1
    assert len(await reading.grep_chunks(ann, r"50%", knowledge_bases=bases())) == 1
    assert await reading.grep_chunks(ann, "nothing", knowledge_bases=bases()) == []
    assert await reading.grep_chunks(ann, "leave", knowledge_bases=[]) == []
    with pytest.raises(InvalidInput):
        await reading.grep_chunks(ann, "(?<=x*)[", knowledge_bases=bases())


async def test_information_holds_no_text(ann, document, handbook):
    [row] = await reading.document_info(ann, knowledge_bases=[handbook.pk])
    assert (row["document_id"], row["name"], row["status"]) == (str(document.pk), "Leave.md", "indexed")
    assert "ten days" not in str(row)
    assert await reading.document_info(ann, knowledge_bases=[handbook.pk], document_ids=[handbook.pk]) == []
    assert len(await reading.document_info(ann, knowledge_bases=[handbook.pk], document_ids=[document.pk])) == 1


@pytest.mark.parametrize("change", ["stranger", "nobody", "restricted", "deleted"])
async def test_what_may_not_be_read_now_is_not_there(ann, bea, mal, handbook, document, chunks, change):
    reader = {"stranger": mal, "nobody": AnonymousUser()}.get(change, bea)
    ids = [chunk.pk for chunk in chunks]
    if change == "restricted":
        assert await reading.list_chunks(bea, chunk_ids=ids)
        await KnowledgeBase.objects.filter(pk=handbook.pk).aupdate(restricted=True)
    if change == "deleted":
        await sync_to_async(services.delete_document)(document=document, actor=ann)
    assert await reading.list_chunks(reader, chunk_ids=ids) == []
    assert await reading.list_chunks(reader, document_id=document.pk) == []
    assert await reading.grep_chunks(reader, "leave", knowledge_bases=[handbook.pk]) == []
    assert await reading.document_info(reader, knowledge_bases=[handbook.pk]) == []
