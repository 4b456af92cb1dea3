"""Routes of knowledge bases and documents, inside a workspace."""

from django.urls import path

from apps.knowledge.views import documents, knowledge_bases, search

app_name = "knowledge"
BASES, BASE, DOCUMENT = "knowledge-bases/", "knowledge-bases/<uuid:base_id>/", "documents/<uuid:document_id>/"
urlpatterns = [
    path(BASES, knowledge_bases.list_knowledge_bases, name="list-knowledge-bases"),
    path(f"{BASES}create/", knowledge_bases.create_knowledge_base, name="create-knowledge-base"),
    path(f"{BASES}sample/", knowledge_bases.create_sample, name="create-sample"),
    path(BASE, knowledge_bases.show_knowledge_base, name="show-knowledge-base"),
    path(f"{BASE}progress/", knowledge_bases.show_progress, name="show-progress"),
    path(f"{BASE}delete/", knowledge_bases.delete_knowledge_base, name="delete-knowledge-base"),
    path(f"{BASE}documents/", documents.upload_documents, name="upload-documents"),
    path(DOCUMENT, documents.show_document, name="show-document"),
    path(f"{DOCUMENT}original/", documents.download_original, name="download-original"),
    path(f"{DOCUMENT}pictures/<str:name>", documents.show_picture, name="show-picture"),
    path(f"{DOCUMENT}retry/", documents.retry_document, name="retry-document"),
    path(f"{DOCUMENT}cancel/", documents.cancel_document, name="cancel-document"),
    path("documents/", documents.upload_first, name="upload-first"),
    path(f"{DOCUMENT}restore/", documents.restore_document, name="restore-document"),
    path(f"{DOCUMENT}delete/", documents.delete_document, name="delete-document"),
    path("search/", search.search_documents, name="search-documents"),
    path("search/try/", search.try_search, name="try-search"),
    path("search/synonyms/", search.list_synonyms, name="list-synonyms"),
    path("search/synonyms/add/", search.add_synonyms, name="add-synonyms"),
    path("search/synonyms/<uuid:synonyms_id>/delete/", search.delete_synonyms, name="delete-synonyms"),
    path(f"{BASE}search-profile/", search.save_profile, name="save-profile"),
]
