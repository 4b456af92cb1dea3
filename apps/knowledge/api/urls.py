"""Addresses of knowledge in the API."""

from django.urls import path

from apps.knowledge.api import bases, documents

BASE, DOCUMENT = "knowledge-bases/<uuid:base_id>/", "documents/<uuid:document_id>/"
urlpatterns = [
    path("knowledge-bases/", bases.KnowledgeBases.as_view(), name="knowledge-bases"),
    path(BASE, bases.OneKnowledgeBase.as_view(), name="knowledge-base"),
    path(f"{BASE}documents/", bases.DocumentsOfBase.as_view(), name="documents-of-base"),
    path(f"{BASE}search/", bases.SearchBase.as_view(), name="search-base"),
    path(f"{BASE}shares/", bases.SharesOfBase.as_view(), name="shares-of-base"),
    path(f"{BASE}shares/<uuid:share_id>/", bases.OneShareOfBase.as_view(), name="share-of-base"),
    path("documents/", documents.Documents.as_view(), name="documents"),
    path(DOCUMENT, documents.OneDocument.as_view(), name="document"),
    path(f"{DOCUMENT}parse/", documents.ParseDocument.as_view(), name="parse-document"),
    path(f"{DOCUMENT}index/", documents.IndexDocument.as_view(), name="index-document"),
    path(f"{DOCUMENT}cancel/", documents.CancelDocument.as_view(), name="cancel-document"),
    path(f"{DOCUMENT}content/", documents.ContentOfDocument.as_view(), name="content-of-document"),
    path(f"{DOCUMENT}chunks/", documents.ChunksOfDocument.as_view(), name="chunks-of-document"),
    path("chunks/", documents.Chunks.as_view(), name="chunks"),
    path("chunks/<uuid:chunk_id>/", documents.OneChunk.as_view(), name="chunk"),
]
