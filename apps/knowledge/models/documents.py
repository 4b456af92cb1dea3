"""A document and the state machine of its ingestion."""

import uuid
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.database import prepared_values, run
from apps.common.fields import EncryptedField
from apps.knowledge.models.folders import Folder
from apps.knowledge.models.jobs import Job
from apps.knowledge.models.knowledge_bases import KnowledgeBase
from apps.knowledge.querysets import DocumentQuerySet
from apps.workspaces.models import Share, Workspace

# Every document goes through these four times; written by the ORM they are a third of what one costs.
CLAIM = """
    UPDATE knowledge_document SET {} WHERE id = %s AND attempt = %s AND status = ANY(%s) AND deleted_at IS NULL
    RETURNING id
"""
END = """
    WITH mine AS (
        UPDATE knowledge_document SET {} WHERE id = %s AND attempt = %s AND status = %s AND deleted_at IS NULL
        RETURNING id
    ), staged AS (  -- what was kept for another attempt at the generation that is there now
        DELETE FROM knowledge_stagedvector WHERE document_id IN (SELECT id FROM mine) AND %s = 'indexed'
    )
    INSERT INTO {} (document_id, {}) SELECT id, {} FROM mine RETURNING id
"""


def storage_key(document: "Document", filename: str) -> str:
    """Return where the original is stored: ids only, the name is for display."""
    return f"documents/{document.workspace_id}/{document.pk}/original"


class Document(models.Model):
    """One file, web page, text or list of questions and answers, and how far its ingestion has come.

    ``generation`` counts contents: chunks carry the generation that made them, and search only ever
    finds the rows of the newest one that was committed, whatever the status says meanwhile.
    ``attempt`` counts claims; an error belongs to the attempt that had it. ``interruptions`` counts
    workers in a row that vanished in the middle. ``markdown_key`` and ``metadata`` belong to the
    generation that answers; what parsing left for the next one is in ``parsed`` until it goes live.
    ``metadata`` is what the parser found, ``attributes`` what people say of the document, by the
    base's MetadataField rows.
    """

    class Kind(models.TextChoices):
        """Where the content comes from."""

        FILE = "file", _("File")
        WEB = "web", _("Web page")
        TEXT = "text", _("Written here")
        QA = "qa", _("Questions and answers")

    class Status(models.TextChoices):
        """How far the document is."""

        UPLOADED = "uploaded", _("Uploaded")
        PARSING = "parsing", _("Reading")
        PARSED = "parsed", _("Read, waiting to index")
        INDEXING = "indexing", _("Indexing")
        INDEXED = "indexed", _("Indexed")
        ERROR_PARSING = "error_parsing", _("Not readable")
        ERROR_INDEXING = "error_indexing", _("Not indexed")

    PARSE_FROM = (Status.UPLOADED, Status.ERROR_PARSING)
    INDEX_FROM = (Status.PARSED, Status.ERROR_INDEXING, Status.INDEXED)
    FINAL = (Status.INDEXED, Status.ERROR_PARSING, Status.ERROR_INDEXING)
    # A busy state, and where its work starts again from when the worker is gone.
    BUSY: ClassVar = {Status.PARSING: Status.UPLOADED, Status.INDEXING: Status.PARSED}
    FAILED: ClassVar = {Status.PARSING: Status.ERROR_PARSING, Status.INDEXING: Status.ERROR_INDEXING}

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="documents")
    kind = models.CharField(max_length=4, choices=Kind.choices, default=Kind.FILE)
    folder = models.ForeignKey(Folder, on_delete=models.SET_NULL, null=True, blank=True, related_name="documents")
    tags = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    attributes = models.JSONField(default=dict, blank=True)
    source_url = models.CharField(max_length=2000, blank=True)  # of a web page
    refresh_hours = models.PositiveIntegerField(null=True, blank=True)  # None: by hand only
    refresh_at = models.DateTimeField(null=True, blank=True)  # when the page is fetched next
    fetched_at = models.DateTimeField(null=True, blank=True)
    password = EncryptedField(null=True, blank=True)  # that opens the original
    name = models.CharField(max_length=255)
    content_type = models.CharField(max_length=100, blank=True)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    file = models.FileField(upload_to=storage_key, max_length=255)
    markdown_key = models.CharField(max_length=255, blank=True)
    parsed = models.JSONField(default=dict, blank=True)  # {"key", "pages", "metadata"} of the next generation
    restricted = models.BooleanField(_("Only for people it is shared with"), default=False)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.UPLOADED)
    error_code = models.CharField(max_length=60, blank=True)
    error_details = models.JSONField(default=dict, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    interruptions = models.PositiveSmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)  # the newest claim
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="documents")
    stage = models.CharField(max_length=30, blank=True)
    progress = models.FloatField(default=0.0)  # share of the stage that is done, 0 to 1
    cancel_requested = models.BooleanField(default=False)
    generation = models.PositiveIntegerField(default=0)  # of the chunks that search finds; 0: none yet
    chunk_count = models.PositiveIntegerField(default=0)
    failed_chunks = models.PositiveIntegerField(default=0)
    page_count = models.PositiveIntegerField(null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    indexed_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        default_permissions = ()
        permissions: ClassVar = [("read_document", "May read a restricted document")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["knowledge_base", "sha256"],
                condition=models.Q(deleted_at__isnull=True),
                name="one_document_a_content",
            ),
            models.UniqueConstraint(
                fields=["knowledge_base", "source_url"],
                condition=models.Q(deleted_at__isnull=True) & ~models.Q(source_url=""),
                name="one_document_an_address",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["knowledge_base", "-created_at"], name="document_newest"),
            models.Index(fields=["knowledge_base", "name"], name="document_names"),
            models.Index(fields=["lease_until"], condition=models.Q(lease_until__isnull=False), name="document_leased"),
            models.Index(  # what waits for a worker, by workspace, what is read already first, then the oldest
                fields=["workspace", "status", "changed_at"],
                condition=models.Q(status__in=["uploaded", "parsed"], deleted_at__isnull=True),
                name="document_waiting",
            ),
            models.Index(fields=["workspace", "-started_at"], name="document_started"),
            models.Index(
                fields=["refresh_at"], condition=models.Q(refresh_at__isnull=False), name="document_to_refresh"
            ),
            GinIndex(fields=["tags"], name="document_tags"),
            GinIndex(OpClass("attributes", name="jsonb_path_ops"), name="document_attributes"),
        ]

    def __str__(self) -> str:
        return f"document {self.pk}"

    @property
    def is_shut(self) -> bool:
        """Whether it takes a share to read it, for who neither owns nor administers the workspace."""
        return self.restricted or self.knowledge_base.restricted or bool(self.folder and self.folder.is_shut)

    def claim(self, busy: Status, *, among: Collection[Status], lease: timedelta, stage: str = "") -> bool:
        """Take this document for one step of ingestion. True for one worker at a time.

        The WHERE clause is the lock: no row lock outlives the statement, so nothing is held while a
        300-page PDF is parsed. A worker that vanishes leaves an expired lease, which
        ``services.recover_expired`` turns back into a state that can be claimed.
        """
        now = timezone.now()
        fields: dict[str, object] = {
            "status": busy,
            "lease_until": now + lease,
            "attempt": self.attempt + 1,
            "error_code": "",
            "error_details": {},
            "cancel_requested": False,
            "started_at": now,
            "stage": stage,
            "progress": 0.0,
            "changed_at": now,
        }
        columns, values = prepared_values(Document, fields)
        won = run(CLAIM.format(_set(columns)), [*values, self.pk, self.attempt, [str(status) for status in among]])
        if won:
            self.take(fields)
        return bool(won)

    def mine(self) -> DocumentQuerySet:
        """Return this document's row, only while the claim that this object made holds."""
        return Document.objects.filter(pk=self.pk, attempt=self.attempt, status=self.status, deleted_at__isnull=True)

    def settle(
        self, status: Status, error_code: str = "", error_details: dict[str, object] | None = None, **fields: object
    ) -> bool:
        """Record how the step ended, and the attempt. False if the lease ran out and another worker has it now."""
        settled = self.settlement(status, error_code, error_details, **fields)
        won = self.end(settled, error_code, error_details)
        if won:
            self.take(settled)
        return won

    def end(
        self,
        settled: dict[str, object],
        error_code: str = "",
        error_details: dict[str, object] | None = None,
        outcome: str = "",
        **counts: int,
    ) -> bool:
        """Write a settlement, and how this object's claim ended, in one statement, before ``take``.

        False if the claim holds no more: neither is written.
        """
        attempts = self.attempts.model
        columns, values = prepared_values(Document, settled)
        ended = self._ended(error_code, error_details, outcome, **counts)
        counted, counts_of = prepared_values(attempts, {"chunk_count": 0, "failed_chunks": 0, **ended})
        statement = END.format(
            _set(columns), attempts._meta.db_table, ", ".join(counted), ", ".join(["%s"] * len(counted))
        )
        return bool(
            run(statement, [*values, self.pk, self.attempt, str(self.status), str(settled["status"]), *counts_of])
        )

    def record_attempt(
        self, error_code: str = "", error_details: dict[str, object] | None = None, outcome: str = "", **counts: int
    ) -> None:
        """Write down how this object's claim ended, where another statement ends it, in its transaction."""
        self.attempts.create(**self._ended(error_code, error_details, outcome, **counts))

    def _ended(
        self, error_code: str, error_details: dict[str, object] | None, outcome: str, **counts: int
    ) -> dict[str, object]:
        if not outcome:
            outcome = "cancelled" if error_code == "cancelled" else "failed" if error_code else "succeeded"
        return {
            "number": self.attempt,
            "step": "parse" if self.status == self.Status.PARSING else "index",
            "outcome": outcome,
            "stage": self.stage if error_code else "",
            "error_code": error_code,
            "error_details": error_details or {},
            "started_at": self.started_at,
            "ended_at": timezone.now(),
            **counts,
        }

    @staticmethod
    def settlement(
        status: Status, error_code: str = "", error_details: dict[str, object] | None = None, **fields: object
    ) -> dict[str, object]:
        """Return what the end of a step writes, for an update that is part of a larger transaction."""
        return {
            "status": status,
            "error_code": error_code,
            "error_details": error_details or {},
            "lease_until": None,
            "interruptions": 0,
            "cancel_requested": False,
            "stage": "",
            "progress": 0.0,
            "changed_at": timezone.now(),
            **fields,
        }

    def take(self, fields: dict[str, object]) -> None:
        """Follow an update of the row that has succeeded, without reading it back."""
        for name, value in fields.items():
            setattr(self, name, value)


def _set(columns: Sequence[str]) -> str:
    return ", ".join(f"{column} = %s" for column in columns)


class DocumentShare(Share):
    """A grant on one restricted document. It opens nothing to those who may not read the base."""

    content_object = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="shares")

    class Meta(Share.Meta):
        abstract = False
