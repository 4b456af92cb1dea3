"""Knowledge bases, their documents, and what the documents were cut into."""

from apps.knowledge.models.chunks import Chunk, ChunkVector, Posting
from apps.knowledge.models.documents import Document
from apps.knowledge.models.knowledge_bases import KnowledgeBase, KnowledgeBaseUserPermission

__all__ = ["Chunk", "ChunkVector", "Document", "KnowledgeBase", "KnowledgeBaseUserPermission", "Posting"]
