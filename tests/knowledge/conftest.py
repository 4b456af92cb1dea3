"""Files to take in, and an embedding model that costs nothing."""

import threading

import pytest
from django.core.files.base import ContentFile


@pytest.fixture
def embedder(settings, vendor):
    """The environment names the vendor's embedding model; returns the vendor."""
    settings.EMBEDDING_MODEL = "scripted-embedding"
    settings.EMBEDDING_BASE_URL = vendor.url
    settings.EMBEDDING_API_KEY = "key"
    return vendor


@pytest.fixture
def add(handbook, ann):
    """Add a file to the handbook; return the document."""
    from apps.knowledge import services

    def add(content, name="notes.md", knowledge_base=handbook):
        data = content.encode() if isinstance(content, str) else content
        return services.add_document(knowledge_base=knowledge_base, file=ContentFile(data), name=name, actor=ann)

    return add


@pytest.fixture
def ingest(add, embedder):
    """Add a file and take it through all steps; return the document."""
    from apps.knowledge import services

    def ingest(content, name="notes.md", **more):
        document = add(content, name, **more)
        services.ingest_document(document.pk)
        document.refresh_from_db()
        return document

    return ingest


@pytest.fixture
def in_thread():
    """Run a function in a thread with a database connection of its own; return the thread."""
    from django.db import connection

    started = []

    def in_thread(function, *args):
        def work():
            try:
                function(*args)
            finally:
                connection.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        started.append(thread)
        return thread

    yield in_thread
    for thread in started:
        thread.join(30)
