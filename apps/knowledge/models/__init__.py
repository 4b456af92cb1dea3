"""Knowledge bases, their folders and documents, and what the documents were cut into."""

from apps.knowledge.models.chunks import Chunk, ChunkVector, NextVector, Posting, RetrievedPassage
from apps.knowledge.models.documents import Document, DocumentShare
from apps.knowledge.models.folders import Folder, FolderShare, MetadataField
from apps.knowledge.models.ingestion import ChunkOverride, DocumentImage, IngestionAttempt, StagedVector
from apps.knowledge.models.jobs import Job
from apps.knowledge.models.knowledge_bases import KnowledgeBase, KnowledgeBaseShare
from apps.knowledge.models.search import PassageTokens, SearchProfile, Synonyms

__all__ = [
    "Chunk",
    "ChunkOverride",
    "ChunkVector",
    "Document",
    "DocumentImage",
    "DocumentShare",
    "Folder",
    "FolderShare",
    "IngestionAttempt",
    "Job",
    "KnowledgeBase",
    "KnowledgeBaseShare",
    "MetadataField",
    "NextVector",
    "PassageTokens",
    "Posting",
    "RetrievedPassage",
    "SearchProfile",
    "StagedVector",
    "Synonyms",
]
