"""Passages that people disable, enable and edit."""

import pytest

from apps.common.errors import InvalidInput
from apps.knowledge import services
from apps.knowledge.errors import BusyDocument
from apps.knowledge.models import Chunk, ChunkOverride, ChunkVector, Document, PassageTokens, Posting

TEXT = "\n\n".join(f"# Part {at}\n\n" + f"Sentence number {at} is said. " * 20 for at in range(3))


def passages(document):
    return list(Chunk.objects.filter(document=document, level=0).order_by("ordinal"))


def findable(chunk):
    family = [chunk.pk, *chunk.children.values_list("pk", flat=True)]
    return ChunkVector.objects.filter(chunk__in=family).exists(), Posting.objects.filter(chunk_id__in=family).exists()


def test_a_disabled_passage_is_out_of_every_index_at_once_and_comes_back(ingest, ann, embedder):
    document = ingest(TEXT)
    first, second, _ = passages(document)
    services.disable_chunk(chunk=first, actor=ann)
    assert (findable(first), findable(second)) == ((False, False), (True, True))
    asked = len(embedder.requests)
    services.enable_chunk(chunk=first, actor=ann)
    assert not ChunkOverride.objects.exists()
    services.ingest_document(document.pk)
    assert findable(passages(document)[0]) == (True, True)
    texts = [text for request in embedder.requests[asked:] for text in request.body["input"]]
    assert texts
    assert all("Sentence number 0" in text for text in texts)  # the others keep the vectors that they have


def test_an_edited_passage_answers_when_it_is_indexed_and_goes_back(ingest, ann):
    document = ingest(TEXT)
    second = passages(document)[1]
    services.edit_chunk(chunk=second, text="# Part 1\r\n\r\nA zebra was here.", actor=ann)
    assert passages(document)[1].text == second.text
    services.ingest_document(document.pk)
    edited = passages(document)[1]
    assert (edited.text, edited.edited) == ("# Part 1\n\nA zebra was here.", True)
    assert Posting.objects.filter(chunk_id=edited.pk, term="zebra").exists()
    services.edit_chunk(chunk=edited, text="", actor=ann)
    services.ingest_document(document.pk)
    assert [chunk.edited for chunk in passages(document)] == [False] * 3
    assert passages(document)[1].text == second.text
    with pytest.raises(InvalidInput):
        services.edit_chunk(chunk=passages(document)[0], text="x" * 20_001, actor=ann)


def test_a_passage_that_answers_is_disabled_though_its_document_could_not_be_read_again(ingest, ann):
    document = ingest(TEXT)
    Document.objects.update(status="error_parsing", error_code="parse_timeout")
    first = passages(document)[0]
    services.disable_chunk(chunk=first, actor=ann)
    assert findable(first) == (False, False)
    assert Document.objects.get().error_code == "parse_timeout"


def test_a_document_in_work_is_left_alone(ingest, ann):
    document = ingest(TEXT)
    Document.objects.update(status="indexing")
    for act in (services.disable_chunk, services.enable_chunk):
        with pytest.raises(BusyDocument):
            act(chunk=passages(document)[0], actor=ann)
    assert not ChunkOverride.objects.exists()


def test_what_the_reranker_compares_is_kept_through_every_change(ingest, ann, settings):
    """By the built-in model: signs of tokens are kept for all passages, not for those alone that are embedded anew."""
    settings.EMBEDDING_MODEL = settings.EMBEDDING_BASE_URL = settings.EMBEDDING_API_KEY = ""
    document = ingest(TEXT)

    def compared():
        return [bytes(chunk.tokens.signs) for chunk in passages(document) if hasattr(chunk, "tokens")]

    before = compared()
    assert len(before) == 3
    services.ingest_document(document.pk)
    services.reindex_document(document=document, actor=ann)
    services.ingest_document(document.pk)
    assert compared() == before
    services.edit_chunk(chunk=passages(document)[1], text="# Part 1\n\nA zebra was here.", actor=ann)
    services.ingest_document(document.pk)
    services.disable_chunk(chunk=passages(document)[2], actor=ann)
    assert not PassageTokens.objects.filter(chunk=passages(document)[2]).exists()
    services.enable_chunk(chunk=passages(document)[2], actor=ann)
    services.ingest_document(document.pk)
    after = compared()
    assert [signs == old for signs, old in zip(after, before, strict=True)] == [True, False, True]
