"""What knowledge looks like in JSON."""

from typing import Any, ClassVar, TypedDict, cast

from rest_framework import serializers

from apps.knowledge.chunkers import CHUNKERS
from apps.knowledge.errors import failure
from apps.knowledge.models import Chunk, ChunkOverride, Document, Folder, Job, KnowledgeBase, MetadataField
from apps.knowledge.services import jobs
from apps.rest.fields import JsonObject
from apps.workspaces.api.shapes import InWorkspace


class KnowledgeBaseOut(serializers.ModelSerializer[KnowledgeBase]):
    """A knowledge base."""

    editable = serializers.BooleanField(read_only=True, help_text="Whether you may manage it.")

    class Meta:
        model = KnowledgeBase
        fields: ClassVar = [
            "id", "workspace", "name", "description", "restricted", "chunker", "chunker_settings",
            "embedding_model", "dimensions", "next_model", "created_at", "editable",
        ]  # fmt: skip
        read_only_fields = fields


class KnowledgeBaseIn(InWorkspace):
    """A new knowledge base."""

    name = serializers.CharField(max_length=100)
    description = serializers.CharField(max_length=500, required=False, allow_blank=True)
    restricted = serializers.BooleanField(required=False, help_text="Only for people whom it is shared with.")
    chunker = serializers.ChoiceField(choices=sorted(CHUNKERS), required=False)
    chunker_settings = JsonObject(required=False)


class KnowledgeBaseChange(serializers.Serializer[Any]):
    """What changes. How documents are cut counts for those that come; `jobs` indexes those that are there again."""

    name = serializers.CharField(max_length=100, required=False)
    description = serializers.CharField(max_length=500, required=False, allow_blank=True)
    restricted = serializers.BooleanField(required=False, help_text="Only for people whom it is shared with.")
    chunker = serializers.ChoiceField(choices=sorted(CHUNKERS), required=False)
    chunker_settings = JsonObject(required=False, help_text="With another chunker and without this: its defaults.")


class ChangedPassages(TypedDict):
    """How many passages of a document people changed; one may be both. `lost` changes have no passage any more."""

    edited: int
    disabled: int
    lost: int


class DocumentOut(serializers.ModelSerializer[Document]):
    """A document and how far it is."""

    error = serializers.SerializerMethodField(help_text="Why it could not be read or indexed.")
    attributes = serializers.DictField(help_text="The facts that the base keeps of its documents.")
    changed_passages = serializers.SerializerMethodField(
        help_text="How many people edited or disabled; new content keeps those that are cut to the same text."
    )

    class Meta:
        model = Document
        fields: ClassVar = [
            "id", "workspace", "knowledge_base", "folder", "kind", "tags", "attributes", "restricted", "name",
            "content_type", "size_bytes", "sha256", "status", "stage", "progress", "error", "generation",
            "chunk_count", "failed_chunks", "changed_passages", "page_count", "created_at", "changed_at", "indexed_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_error(self, document: Document) -> dict[str, Any] | None:
        """Return the failure of the last attempt in the shape of all errors."""
        found = failure(document.error_code, document.error_details) if document.error_code else None
        return found.as_dict() if found else None

    def get_changed_passages(self, document: Document) -> ChangedPassages:
        """Return the counts, which a list has read with its rows."""
        names = {"edited": "edited_passages", "disabled": "disabled_passages", "lost": "lost_changes"}
        if all(hasattr(document, name) for name in names.values()):
            return cast("ChangedPassages", {kind: getattr(document, name) for kind, name in names.items()})
        counts = document.overrides.counts()
        return {"edited": counts["edited"], "disabled": counts["disabled"], "lost": counts["lost"]}


class ChangedPassageOut(serializers.ModelSerializer[ChunkOverride]):
    """A passage that people edited or disabled. `text` is what it reads instead, empty where it was not edited."""

    class Meta:
        model = ChunkOverride
        fields: ClassVar = ["id", "document", "original", "text", "disabled", "changed_by", "changed_at"]
        read_only_fields = fields


class ChangedPassageQuery(serializers.Serializer[Any]):
    """Of which document."""

    document = serializers.UUIDField(required=False)


class DocumentChange(serializers.Serializer[Any]):
    """What changes. `tags` are exactly those that it has then; a `folder` of null is the top."""

    folder = serializers.UUIDField(required=False, allow_null=True)
    tags = serializers.ListField(child=serializers.CharField(max_length=50), max_length=30, required=False)
    restricted = serializers.BooleanField(required=False, help_text="Only for people whom it is shared with.")
    attributes = JsonObject(required=False, help_text="By the base's fields; null takes one away, others stay.")


class MetadataFieldOut(serializers.ModelSerializer[MetadataField]):
    """A fact that a base keeps of its documents."""

    class Meta:
        model = MetadataField
        fields: ClassVar = ["id", "knowledge_base", "key", "type", "choices", "created_at"]
        read_only_fields = fields


class MetadataFieldIn(serializers.Serializer[Any]):
    """A new one."""

    key = serializers.CharField(max_length=50)
    type = serializers.ChoiceField(choices=MetadataField.Type.values)
    choices = serializers.ListField(child=serializers.CharField(max_length=100), max_length=100, required=False)


class EmbeddingIn(serializers.Serializer[Any]):
    """Another embedding model."""

    model = serializers.CharField(max_length=200, help_text="As `embedding_model` of a base names it.")


class DocumentQuery(InWorkspace):
    """Which documents."""

    knowledge_base = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(choices=Document.Status.values, required=False)
    name = serializers.CharField(max_length=255, required=False, help_text="A part of the name.")


class FileIn(serializers.Serializer[Any]):
    """A file."""

    file = serializers.FileField(allow_empty_file=True, max_length=1024, help_text="Its bytes, and its name.")
    folder = serializers.UUIDField(required=False)
    tags = serializers.ListField(child=serializers.CharField(max_length=50), max_length=50, required=False)
    if_same_name = serializers.ChoiceField(
        choices=["keep", "replace", "ask"],
        required=False,
        help_text="What becomes of another document of this name in the same folder.",
    )


class ContentQuery(serializers.Serializer[Any]):
    """Which content."""

    original = serializers.BooleanField(required=False, help_text="The file as it was uploaded, not its text.")


class ChunkOut(serializers.ModelSerializer[Chunk]):
    """A passage of a document; `start` and `end` are characters of its text."""

    class Meta:
        model = Chunk
        fields: ClassVar = [
            "id", "document", "knowledge_base", "ordinal", "text", "heading", "page", "page_end", "start", "end",
        ]  # fmt: skip
        read_only_fields = fields


class ChunkQuery(serializers.Serializer[Any]):
    """Which chunks."""

    document = serializers.UUIDField(required=False)
    knowledge_base = serializers.UUIDField(required=False)


class FolderOut(serializers.ModelSerializer[Folder]):
    """A folder of a base; `lineage` holds the ids from the top down to its own."""

    class Meta:
        model = Folder
        fields: ClassVar = ["id", "knowledge_base", "parent", "name", "lineage", "restricted", "created_at"]
        read_only_fields = fields


class FolderIn(serializers.Serializer[Any]):
    """A new folder, in another or at the top."""

    name = serializers.CharField(max_length=200)
    parent = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]


class FolderChange(serializers.Serializer[Any]):
    """What changes."""

    name = serializers.CharField(max_length=200, required=False)
    parent = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    restricted = serializers.BooleanField(required=False, help_text="Only for people whom it is shared with.")


class JobOut(serializers.ModelSerializer[Job]):
    """An act on many documents, and how far it has come. How each document is, the document says."""

    progress = serializers.DictField()
    result = serializers.DictField()
    error = serializers.SerializerMethodField(help_text="Why it failed.")

    class Meta:
        model = Job
        fields: ClassVar = [
            "id", "workspace", "knowledge_base", "kind", "status", "stage", "position", "total", "progress", "result",
            "error_code", "error", "cancel_requested", "created_by", "created_at", "changed_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_error(self, job: Job) -> dict[str, Any] | None:
        """Return the failure in the shape of all errors."""
        found = jobs.reason(job)
        return found.as_dict() if found else None


class JobIn(serializers.Serializer[Any]):
    """What to do, and with which documents of the base."""

    kind = serializers.ChoiceField(
        choices=[(kind.value, kind.label) for kind in (Job.Kind.PARSE, Job.Kind.INDEX, Job.Kind.RETRY)]
    )
    documents = serializers.ListField(
        child=serializers.UUIDField(), max_length=1000, required=False, help_text="Left out: all that it applies to."
    )


class JobQuery(InWorkspace):
    """Which jobs."""

    knowledge_base = serializers.UUIDField(required=False)


class ConditionIn(serializers.Serializer[Any]):
    """One fact that a base keeps of its documents."""

    field = serializers.CharField(max_length=200)
    op = serializers.ChoiceField(choices=["eq", "ne", "gte", "lte", "contains"], default="eq")
    value = serializers.JSONField(help_text="A text, a number, true or false; a day as 2026-05-31.")


class FiltersIn(serializers.Serializer[Any]):
    """What a document must fit; everything given must hold."""

    tags = serializers.ListField(child=serializers.CharField(max_length=200), required=False, help_text="All of them.")
    folders = serializers.ListField(child=serializers.UUIDField(), required=False, help_text="In one, or below it.")
    documents = serializers.ListField(child=serializers.UUIDField(), required=False)
    name = serializers.CharField(max_length=200, required=False, help_text="Its name contains this.")
    added_from = serializers.DateField(required=False)
    added_to = serializers.DateField(required=False)
    metadata = ConditionIn(many=True, required=False)


class SearchIn(serializers.Serializer[Any]):
    """A search."""

    query = serializers.CharField(max_length=4000)
    top_k = serializers.IntegerField(
        min_value=1, max_value=50, required=False, help_text="Without it as many as the base's profile says."
    )
    rerank = serializers.BooleanField(default=True)
    filters = FiltersIn(required=False)


class HitOut(serializers.Serializer[Any]):
    """A passage that was found."""

    chunk_id = serializers.UUIDField()
    document_id = serializers.UUIDField()
    document = serializers.CharField(help_text="The document's name.")
    text = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    heading = serializers.CharField()
    score = serializers.FloatField(help_text="Orders this list, and means nothing outside it.")
    ranks = serializers.DictField(child=serializers.IntegerField(), help_text="Its place in each leg, from 1.")
    rerank_score = serializers.FloatField(allow_null=True)


class StageOut(serializers.Serializer[Any]):
    """One stage of a search."""

    name = serializers.CharField()
    ms = serializers.FloatField()
    entered = serializers.IntegerField()
    left = serializers.IntegerField()


class SearchOut(serializers.Serializer[Any]):
    """What a search found. `degraded` names what failed while the rest answered."""

    hits = HitOut(many=True, source="passages")
    stages = StageOut(many=True)
    degraded = serializers.ListField(child=serializers.CharField())
    empty_reason = serializers.CharField(
        help_text="Why there is nothing: no_base, nothing_indexed, filter, threshold, no_match."
    )
