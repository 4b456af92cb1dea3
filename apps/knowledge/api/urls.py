"""Addresses of knowledge in the API."""

from django.urls import path

from apps.knowledge.api import bases, documents, order, sharing

BASE, DOCUMENT = "knowledge-bases/<uuid:base_id>/", "documents/<uuid:document_id>/"
urlpatterns = [
    path("knowledge-bases/", bases.KnowledgeBases.as_view(), name="knowledge-bases"),
    path(BASE, bases.OneKnowledgeBase.as_view(), name="knowledge-base"),
    path(f"{BASE}documents/", bases.DocumentsOfBase.as_view(), name="documents-of-base"),
    path(f"{BASE}changed-passages/", documents.ChangedPassagesOfBase.as_view(), name="changed-passages"),
    path(f"{BASE}search/", bases.SearchBase.as_view(), name="search-base"),
    path(f"{BASE}shares/", bases.SharesOfBase.as_view(), name="shares-of-base"),
    path(f"{BASE}shares/<uuid:share_id>/", bases.OneShareOfBase.as_view(), name="share-of-base"),
    path(f"{BASE}folders/", order.FoldersOfBase.as_view(), name="folders-of-base"),
    path(f"{BASE}jobs/", order.JobsOfBase.as_view(), name="jobs-of-base"),
    path(f"{BASE}metadata-fields/", order.FieldsOfBase.as_view(), name="fields-of-base"),
    path(f"{BASE}embedding-model/", order.ModelOfBase.as_view(), name="model-of-base"),
    path("metadata-fields/<uuid:field_id>/", order.OneField.as_view(), name="field"),
    path("folders/<uuid:folder_id>/", order.OneFolder.as_view(), name="folder"),
    path("folders/<uuid:folder_id>/shares/", sharing.SharesOfFolder.as_view(), name="shares-of-folder"),
    path(
        "folders/<uuid:folder_id>/shares/<uuid:share_id>/",
        sharing.OneShareOfFolder.as_view(),
        name="share-of-folder",
    ),
    path("jobs/", order.Jobs.as_view(), name="jobs"),
    path("jobs/<uuid:job_id>/", order.OneJob.as_view(), name="job"),
    path("jobs/<uuid:job_id>/cancel/", order.CancelJob.as_view(), name="cancel-job"),
    path("jobs/<uuid:job_id>/retry/", order.RetryJob.as_view(), name="retry-job"),
    path("documents/", documents.Documents.as_view(), name="documents"),
    path(DOCUMENT, documents.OneDocument.as_view(), name="document"),
    path(f"{DOCUMENT}parse/", documents.ParseDocument.as_view(), name="parse-document"),
    path(f"{DOCUMENT}index/", documents.IndexDocument.as_view(), name="index-document"),
    path(f"{DOCUMENT}cancel/", documents.CancelDocument.as_view(), name="cancel-document"),
    path(f"{DOCUMENT}content/", documents.ContentOfDocument.as_view(), name="content-of-document"),
    path(f"{DOCUMENT}chunks/", documents.ChunksOfDocument.as_view(), name="chunks-of-document"),
    path(f"{DOCUMENT}shares/", sharing.SharesOfDocument.as_view(), name="shares-of-document"),
    path(f"{DOCUMENT}shares/<uuid:share_id>/", sharing.OneShareOfDocument.as_view(), name="share-of-document"),
    path("chunks/", documents.Chunks.as_view(), name="chunks"),
    path("chunks/<uuid:chunk_id>/", documents.OneChunk.as_view(), name="chunk"),
]
