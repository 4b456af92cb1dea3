"""Chunks and what makes them findable: vectors and postings.

All three are written by COPY in the transaction that makes a document's new generation live, which
also deletes the old generation's rows: nobody ever sees half a document, nor two.
"""

import uuid
from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from pgvector.django import HalfVectorField

from apps.knowledge.models.documents import Document
from apps.knowledge.models.knowledge_bases import KnowledgeBase
from apps.knowledge.querysets import ChunkQuerySet


class Chunk(models.Model):
    """A piece of a document's Markdown.

    ``level`` 0 is a parent passage (what is read and cited), 1 a child (what is embedded and hit).
    ``start`` and ``end`` are character offsets in the Markdown of the document's generation, so
    ``markdown[start:end] == text`` unless it was ``edited``. ``root_id`` is the topmost ancestor,
    None for a chunk without a parent. A ``disabled`` chunk has no vectors and no postings, and no
    reader but the page on which it can be enabled again gets it. ``content_hash`` is that of the
    text as it was cut: what people changed is kept by it when the document is indexed again.
    """

    PARENT, CHILD = 0, 1

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks")
    generation = models.PositiveIntegerField()
    level = models.PositiveSmallIntegerField()
    ordinal = models.PositiveIntegerField()  # within document and level, from 0
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    root_id = models.UUIDField(null=True, blank=True)
    text = models.TextField()
    content_hash = models.UUIDField(default=uuid.uuid4)  # MD5
    disabled = models.BooleanField(default=False)
    edited = models.BooleanField(default=False)
    heading = models.TextField(blank=True)  # path of headings, " > " between them
    page = models.PositiveIntegerField(null=True, blank=True)  # where it begins, from 1
    page_end = models.PositiveIntegerField(null=True, blank=True)
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()

    objects = ChunkQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["document", "generation", "level", "ordinal"], name="one_chunk_a_place"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["parent"], name="chunk_children"),
            GinIndex(  # the base first: other tenants' texts cost a search nothing
                "knowledge_base",
                OpClass("text", name="gin_trgm_ops"),
                condition=models.Q(level=0),
                name="trigrams_of_base",
            ),
        ]

    def __str__(self) -> str:
        return f"chunk {self.pk}"

    @property
    def place(self) -> str:
        """The chunk's place as an id that can be read: document, page, level, ordinal within the level."""
        return f"{self.document_id}::{self.page or 0}::{self.level}::{self.ordinal}"


class ChunkVector(models.Model):
    """The embedding of one chunk, in a narrow table of its own. ``embedding`` has no fixed dimension.

    Half precision, L2-normalised: it halves what a scan reads, and ranks as single precision does.
    ``passage_id`` is the parent passage's chunk, the chunk itself where it is the parent: siblings
    collapse into their passage inside the scan, without a join.
    """

    chunk = models.OneToOneField(Chunk, on_delete=models.CASCADE, primary_key=True, related_name="vector")
    passage_id = models.UUIDField()
    # No constraints in the database on what repeats the chunk's own: COPY would check each per row.
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    embedding = HalfVectorField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"vector {self.pk}"


class NextVector(models.Model):
    """A chunk's vector of the model that its base is moving to. No search reads it.

    Plain ids: chunks come and go meanwhile, and the move takes over what fits. ``embedding`` is None
    where the model refused the chunk.
    """

    chunk_id = models.UUIDField(primary_key=True)
    knowledge_base_id = models.UUIDField(db_index=True)
    document_id = models.UUIDField(db_index=True)
    embedding = HalfVectorField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"next vector {self.pk}"


class RetrievedPassage(models.Model):
    """A passage that was a source of answers, known by its document and the hash of its text as it was cut.

    So the count holds when the document is indexed again. Plain ids, as of postings: a row is written
    with each answer, and erased with the document.
    """

    pk = models.CompositePrimaryKey("document_id", "content_hash")
    document_id = models.UUIDField()
    content_hash = models.UUIDField()
    times = models.PositiveIntegerField(default=1)
    last_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"retrieved passage of {self.document_id}"


class Posting(models.Model):
    """One term of one chunk, for BM25. ``weight`` is the term's part without idf.

    Plain ids rather than keys: nothing checks or cascades here, the services that write and erase
    chunks write and erase postings in the same transaction. The primary key's index INCLUDEs
    document and weight (migration 0002), so that a search reads nothing but that index.
    """

    pk = models.CompositePrimaryKey("knowledge_base_id", "term", "chunk_id")
    knowledge_base_id = models.UUIDField()
    term = models.TextField(db_collation="C")  # byte order: terms that begin with a character are one range
    chunk_id = models.UUIDField()
    document_id = models.UUIDField(db_index=True)
    weight = models.FloatField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"posting of {self.chunk_id}"
