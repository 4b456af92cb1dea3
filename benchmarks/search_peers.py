"""The hybrid searches of others over the same passages, vectors and questions, each in an environment of its own.

``measure`` installs what it can under KNOWSPHERE_HOME and runs this file there, once a peer; one that cannot be
installed or does not run is named and left out. None of them is a dependency of ours.
"""

import json
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from time import perf_counter
from typing import Any

# Their package, and what of their time ours may take at most.
PEERS = {
    "langchain-postgres": (["langchain-postgres==0.0.19", "psycopg[binary]"], 0.5),
    "haystack": (["pgvector-haystack==8.1.2", "psycopg[binary]"], 0.1),
    "llama-index": (["llama-index-vector-stores-postgres==0.9.0", "psycopg2-binary", "asyncpg"], 0.1),
}
WARM = 5
PATIENCE_S = 1_800


def measure(world: Any, questions: int, *, place: int | None = None) -> dict[str, tuple[float, float]]:
    """Return each peer's median in ms and the share of it that ours may take.

    ``place``: which tenant asks, of all whose passages lie in one table; each passage then names its tenant, and
    each peer filters by that as its documentation says.
    """
    from django.conf import settings
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("""SELECT c.id::text, c.text, v.embedding::text, c.knowledge_base_id::text FROM knowledge_chunk c
                          JOIN knowledge_chunkvector v ON v.chunk_id = c.id""")
        rows = cursor.fetchall()
    folder = Path(settings.HOME) / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    asked = [
        {"text": text, "vector": vector.tolist()}
        for text, vector in zip(world.questions[:questions], world.vectors, strict=False)
    ]
    tenant = None if place is None else str(world.bases[place].pk)
    (folder / "data.json").write_text(json.dumps({"rows": rows, "questions": asked, "tenant": tenant}))
    database = connection.settings_dict
    options = {"HOST": database["HOST"] or database["OPTIONS"].get("host", ""), "NAME": database["NAME"]}
    options |= {name: str(database[name]) for name in ("USER", "PASSWORD", "PORT")}
    found = {}
    for name, (packages, bar) in PEERS.items():
        try:
            python = _environment(folder / name, packages)
            environment = {**os.environ, "PEER_DATABASE": json.dumps(options)}
            command = [str(python), __file__, name, str(folder / "data.json")]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
            )
            found[name] = (float(done.stdout.splitlines()[-1]), bar)
        except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            print(f"{name} left out: {said[-1] if said else error}", file=sys.stderr)
    return found


def _environment(folder: Path, packages: list[str]) -> Path:
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", "numpy", *packages]
        subprocess.run(install, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
        (folder / "installed").touch()
    return python


def langchain(database: dict[str, str], rows: list[Any], questions: list[Any], tenant: str | None) -> list[float]:
    """Time langchain-postgres's hybrid search, by its own fusion; the tenant has a column of its own."""
    from langchain_core.embeddings import Embeddings
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion

    class Given(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise NotImplementedError

        def embed_query(self, text: str) -> list[float]:
            return vectors[text]

    vectors = {question["text"]: question["vector"] for question in questions}
    engine = PGEngine.from_connection_string(url=_address("postgresql+psycopg", database))
    hybrid = HybridSearchConfig(fusion_function=reciprocal_rank_fusion, tsv_column="content_tsv")
    size = len(questions[0]["vector"])
    engine.init_vectorstore_table(
        "peer_langchain",
        size,
        hybrid_search_config=hybrid,
        overwrite_existing=True,
        metadata_columns=[Column("tenant", "TEXT")],
    )
    store = PGVectorStore.create_sync(
        engine, Given(), "peer_langchain", hybrid_search_config=hybrid, metadata_columns=["tenant"]
    )
    for at in range(0, len(rows), 500):
        part = rows[at : at + 500]
        tenants = [{"tenant": row[3]} for row in part]
        store.add_embeddings([row[1] for row in part], [_vector(row[2]) for row in part], tenants)
    store.apply_hybrid_search_index()

    only = {"filter": {"tenant": tenant}} if tenant else {}

    def ask(question: Any) -> int:
        fresh = HybridSearchConfig(fusion_function=reciprocal_rank_fusion, tsv_column="content_tsv")
        return len(store.similarity_search(question["text"], k=8, hybrid_search_config=fresh, **only))

    return _timed(ask, questions)


def haystack(database: dict[str, str], rows: list[Any], questions: list[Any], tenant: str | None) -> list[float]:
    """Time haystack's two retrievers and its joiner; the tenant is in a passage's meta."""
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner
    from haystack.utils import Secret
    from haystack_integrations.components.retrievers.pgvector import (
        PgvectorEmbeddingRetriever,
        PgvectorKeywordRetriever,
    )
    from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

    store = PgvectorDocumentStore(
        connection_string=Secret.from_token(_address("postgresql", database)),
        table_name="peer_haystack",
        embedding_dimension=len(questions[0]["vector"]),
        recreate_table=True,
    )
    for at in range(0, len(rows), 500):
        part = rows[at : at + 500]
        store.write_documents(
            [Document(id=row[0], content=row[1], embedding=_vector(row[2]), meta={"tenant": row[3]}) for row in part]
        )
    by_vector = PgvectorEmbeddingRetriever(document_store=store, top_k=8)
    by_words = PgvectorKeywordRetriever(document_store=store, top_k=8)
    joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=8)
    only = {"field": "meta.tenant", "operator": "==", "value": tenant} if tenant else None

    def ask(question: Any) -> int:
        lists = [
            by_vector.run(query_embedding=question["vector"], filters=only)["documents"],
            by_words.run(query=question["text"], filters=only)["documents"],
        ]
        return len(joiner.run(documents=lists)["documents"])

    return _timed(ask, questions)


def llama_index(database: dict[str, str], rows: list[Any], questions: list[Any], tenant: str | None) -> list[float]:
    """Time llama-index's hybrid query; the tenant is in a passage's metadata, with the index that it offers for it."""
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores.types import (
        ExactMatchFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
    )
    from llama_index.vector_stores.postgres import PGVectorStore

    store = PGVectorStore(
        connection_string=_address("postgresql+psycopg2", database),
        async_connection_string=_address("postgresql+asyncpg", database),
        table_name="peer_llama",
        schema_name="public",
        embed_dim=len(questions[0]["vector"]),
        hybrid_search=True,
        text_search_config="english",
        indexed_metadata_keys={("tenant", "text")},
    )
    for at in range(0, len(rows), 500):
        part = rows[at : at + 500]
        store.add(
            [TextNode(id_=row[0], text=row[1], embedding=_vector(row[2]), metadata={"tenant": row[3]}) for row in part]
        )
    only = MetadataFilters(filters=[ExactMatchFilter(key="tenant", value=tenant)]) if tenant else None

    def ask(question: Any) -> int:
        query = VectorStoreQuery(
            query_embedding=question["vector"],
            query_str=question["text"],
            similarity_top_k=8,
            sparse_top_k=8,
            mode=VectorStoreQueryMode.HYBRID,
            filters=only,
        )
        return len(store.query(query).nodes or ())

    return _timed(ask, questions)


def _vector(text: str) -> list[float]:
    return [float(number) for number in json.loads(text)]


def _address(scheme: str, database: dict[str, str]) -> str:
    """Return a URL; a socket's folder goes into the query, where all drivers but asyncpg look for it."""
    person = database["USER"] + (f":{database['PASSWORD']}" if database["PASSWORD"] else "")
    if database["HOST"].startswith("/"):
        port = f"&port={database['PORT']}" if database["PORT"] else ""
        return f"{scheme}://{person}@/{database['NAME']}?host={database['HOST']}{port}"
    port = f":{database['PORT']}" if database["PORT"] else ""
    return f"{scheme}://{person}@{database['HOST']}{port}/{database['NAME']}"


def _timed(ask: Any, questions: list[Any]) -> list[float]:
    times = []
    for question in questions[:WARM] + questions:
        began = perf_counter()
        ask(question)
        times.append((perf_counter() - began) * 1000)
    return times[WARM:]


if __name__ == "__main__":
    data = json.loads(Path(sys.argv[2]).read_text())
    run = {"langchain-postgres": langchain, "haystack": haystack, "llama-index": llama_index}[sys.argv[1]]
    database = json.loads(os.environ["PEER_DATABASE"])
    print(statistics.median(run(database, data["rows"], data["questions"], data["tenant"])))
