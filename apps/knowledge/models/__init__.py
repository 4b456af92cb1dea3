"""Knowledge bases, their folders and documents, and what the documents were cut into."""

from apps.knowledge.models.chunks import Chunk, ChunkVector, Posting
from apps.knowledge.models.documents import Document
from apps.knowledge.models.folders import Folder, MetadataField
from apps.knowledge.models.ingestion import ChunkOverride, DocumentImage, IngestionAttempt, StagedVector
from apps.knowledge.models.jobs import Job
from apps.knowledge.models.knowledge_bases import KnowledgeBase, KnowledgeBaseUserPermission

__all__ = [
    "Chunk",
    "ChunkOverride",
    "ChunkVector",
    "Document",
    "DocumentImage",
    "Folder",
    "IngestionAttempt",
    "Job",
    "KnowledgeBase",
    "KnowledgeBaseUserPermission",
    "MetadataField",
    "Posting",
    "StagedVector",
]
