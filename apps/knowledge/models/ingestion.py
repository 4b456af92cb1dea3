"""What ingestion leaves beside a document's chunks: attempts, images, vectors not yet live, people's changes."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from pgvector.django import HalfVectorField

from apps.knowledge.models.documents import Document
from apps.knowledge.querysets import ChunkOverrideQuerySet, DocumentImageQuerySet


class IngestionAttempt(models.Model):
    """One try of one step on a document, and how it ended. An error belongs to its attempt."""

    class Step(models.TextChoices):
        """What was tried."""

        PARSE = "parse", _("Reading")
        INDEX = "index", _("Indexing")

    class Outcome(models.TextChoices):
        """How it ended."""

        SUCCEEDED = "succeeded", _("Succeeded")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Stopped")
        LOST = "lost", _("Worker lost")

    id = models.BigAutoField(primary_key=True)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()  # Document.attempt of the claim
    step = models.CharField(max_length=10, choices=Step.choices)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    stage = models.CharField(max_length=30, blank=True)  # where it was when it ended otherwise than well
    error_code = models.CharField(max_length=60, blank=True)
    error_details = models.JSONField(default=dict, blank=True)
    chunk_count = models.PositiveIntegerField(default=0)
    failed_chunks = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["document", "number"], name="one_end_an_attempt"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.pk}"


class DocumentImage(models.Model):
    """A picture out of a document, of one generation. Served by an authenticated view only.

    The Markdown refers to it as ``![description](image:name)``.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="images")
    generation = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    key = models.CharField(max_length=255)  # in the file store
    content_type = models.CharField(max_length=50)
    size_bytes = models.PositiveIntegerField()
    width = models.PositiveIntegerField(null=True, blank=True)  # pixels
    height = models.PositiveIntegerField(null=True, blank=True)
    page = models.PositiveIntegerField(null=True, blank=True)
    description = models.TextField(blank=True)  # what a model saw, or the text in it

    objects = DocumentImageQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["document", "generation", "name"], name="one_image_a_name"),
        ]

    def __str__(self) -> str:
        return f"image {self.pk}"


class StagedVector(models.Model):
    """A vector of a generation in the making, so that a retry goes on where it stopped. Search never reads it."""

    id = models.BigAutoField(primary_key=True)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    key = models.UUIDField()  # hash of model and input
    embedding = HalfVectorField()
    signs = models.BinaryField(null=True)  # of its tokens, see PassageTokens

    class Meta:
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["document"], name="staged_vectors")]

    def __str__(self) -> str:
        return f"staged vector {self.pk}"


class ChunkOverride(models.Model):
    """What a person decided about a passage: not to be found, or to read otherwise.

    Kept by the hash of the text as it was cut, so that it holds when the document is indexed again.
    ``applied`` is false where the newest generation has no such passage any more: the row is then
    listed on the document's page until somebody lets it go.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="overrides")
    content_hash = models.UUIDField()
    original = models.TextField()  # as it was cut
    text = models.TextField(blank=True)  # what it reads instead; empty: unchanged
    disabled = models.BooleanField(default=False)
    applied = models.BooleanField(default=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    changed_at = models.DateTimeField(auto_now=True)

    objects = ChunkOverrideQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["document", "content_hash"], name="one_override_a_text"),
        ]

    def __str__(self) -> str:
        return f"override {self.pk}"
