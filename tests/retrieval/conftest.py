"""Knowledge bases with rows in them, written as ingestion writes them."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from unittest.mock import patch

import pytest
from django.db import connection
from psycopg import AsyncCursor

from apps.common.database import close_pool
from apps.knowledge.index_text import embedding_input, lexical_input, postings
from apps.knowledge.models import Chunk, ChunkVector, Document, KnowledgeBase, Posting
from apps.models import connections
from tests.vendor.server import vector

MODEL = "scripted-embedding"


def embedded(texts):
    """The scripted vendor's vectors, of length 1 as the gateway makes them."""
    import numpy as np

    vectors = np.array([vector(text) for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
async def _pool():
    """Leave no connection behind: the next test's database is another."""
    yield
    await close_pool()
    await connections.close()


@pytest.fixture(autouse=True)
def _embedding_model(settings, vendor):
    settings.EMBEDDING_BASE_URL = vendor.url
    settings.EMBEDDING_API_KEY = "sk-test"
    settings.EMBEDDING_MODEL = MODEL


@asynccontextmanager
async def counted():
    """Collect the queries that the pool's connections run meanwhile; settings and BEGIN are none."""
    statements = []
    execute = AsyncCursor.execute

    async def counting(self, query, *args, **kwargs):
        if "FROM" in str(query):
            statements.append(query)
        return await execute(self, query, *args, **kwargs)

    with patch.object(AsyncCursor, "execute", counting):
        yield statements


@pytest.fixture
def in_thread(db):
    """Run work that uses the ORM from an async test, and wait for it."""

    def in_thread(work, *args, **kwargs):
        def whole():
            try:
                return work(*args, **kwargs)
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(whole).result()

    return in_thread


@pytest.fixture
def broken_table(in_thread):
    """Make every statement that touches a table fail, for a while."""

    @contextmanager
    def broken_table(name):
        in_thread(_sql, f"ALTER TABLE {name} RENAME TO {name}_away")
        try:
            yield
        finally:
            in_thread(_sql, f"ALTER TABLE {name}_away RENAME TO {name}")

    return broken_table


def _sql(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def make_base(db):
    """Make a base, embedded by the scripted vendor's model unless told otherwise."""

    def make_base(workspace, name="Base", **fields):
        fields.setdefault("embedding_model", f"openai_compatible:{MODEL}")
        return KnowledgeBase.objects.create(workspace=workspace, name=name, **fields)

    return make_base


@pytest.fixture
def add_passages(db):
    """Add a document whose passages are given, each with its children; return (document, passages).

    A passage is a text or (text, [child, …]). ``embed`` turns a list of texts into vectors.
    """

    def add_passages(base, *passages, name="notes.md", embed=embedded):
        document = Document.objects.create(
            workspace=base.workspace,
            knowledge_base=base,
            name=name,
            size_bytes=1,
            sha256=uuid.uuid4().hex * 2,
            status=Document.Status.INDEXED,
            generation=1,
            chunk_count=len(passages),
        )
        common = {"knowledge_base": base, "document": document, "generation": 1, "start": 0}
        parents, chunks = [], []
        for ordinal, given in enumerate(passages):
            text, children = given if isinstance(given, tuple) else (given, [])
            parent = Chunk(**common, level=0, ordinal=ordinal, text=text, end=len(text), page=ordinal + 1)
            parents.append(parent)
            chunks.append(parent)
            for child in children:
                place = sum(chunk.level for chunk in chunks)
                chunks.append(Chunk(**common, level=1, ordinal=place, text=child, end=len(child), parent=parent))
        Chunk.objects.bulk_create(chunks)
        vectors = embed([embedding_input(name, chunk.heading, chunk.text) for chunk in chunks])
        ChunkVector.objects.bulk_create(
            ChunkVector(
                chunk=chunk,
                passage_id=chunk.parent_id or chunk.pk,
                knowledge_base=base,
                document=document,
                embedding=list(numbers),
            )
            for chunk, numbers in zip(chunks, vectors, strict=True)
        )
        Posting.objects.bulk_create(
            Posting(knowledge_base_id=base.pk, term=term, chunk_id=parent.pk, document_id=document.pk, weight=weight)
            for parent in parents
            for term, weight in postings(lexical_input(name, "", parent.text)).items()
        )
        return document, parents

    return add_passages
