"""The sample base: the product's own guide in both languages, with its vectors shipped.

``apps/knowledge/sample/`` holds the texts and ``vectors.npz``, which ``manage.py build_sample`` makes: one
vector in half precision a passage and piece, by the hash of what was embedded. They are used only
where the chunker, the titles and the built-in model are those that made them; else the model works.
"""

import hashlib
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from django.core.files.base import ContentFile

from apps.knowledge import services
from apps.knowledge.chunkers.drafts import ChunkDraft
from apps.knowledge.errors import BusyDocument
from apps.knowledge.index_text import EMBEDDED_LEVELS, embedding_input
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.parsers import PARSERS
from apps.knowledge.services import indexing
from apps.knowledge.services.ingestion import index_document, parse_document
from apps.knowledge.services.work import Work
from apps.models import gateway
from apps.models.chat import ResolvedModel
from apps.models.models import Kind
from apps.models.resolution import BUILTIN
from apps.workspaces.models import User, Workspace

if TYPE_CHECKING:  # the web process knows the guide's name, and starts without numpy
    import numpy as np
    from numpy.typing import NDArray

NAME = "KnowSphere guide"
FOLDER = Path(__file__).resolve().parent.parent / "sample"
VECTORS = FOLDER / "vectors.npz"
LANGUAGES = ("en", "zh")
TITLE = re.compile(r"\A# (.+)\n")
KEY_BYTES = 16


class Page(NamedTuple):
    """One page of the guide; its name is its title, as people see it."""

    name: str
    content: bytes


def pages() -> list[Page]:
    """Return the guide's pages, in both languages."""
    found = []
    for path in (path for language in LANGUAGES for path in sorted((FOLDER / language).glob("*.md"))):
        content = path.read_bytes()
        title = TITLE.match(content.decode())
        found.append(Page(f"{title.group(1) if title else path.stem}.md", content))
    return found


def create_sample_base(*, workspace: Workspace, actor: User) -> KnowledgeBase:
    """Create the sample base and make it answer at once; what is there already is left as it is.

    With an embedding model of its own the workspace's worker does the indexing, as for any file.
    """
    there = KnowledgeBase.objects.filter(workspace=workspace, name=NAME, deleted_at__isnull=True).first()
    base = there or services.create_knowledge_base(
        workspace=workspace, name=NAME, actor=actor, description="The user guide, in English and Chinese."
    )
    model = indexing.embedder_of(base)
    shipped = load()
    for page in pages():
        document = services.add_document(
            knowledge_base=base, file=ContentFile(page.content), name=page.name, actor=actor
        )
        if model.reference == BUILTIN[Kind.EMBEDDING].reference and document.status not in Document.FINAL:
            _ingest(document, shipped)
    return base


def _ingest(document: Document, shipped: "dict[bytes, NDArray[np.float16]]") -> None:
    """Take a page through its steps here; a worker that is at it already may have it."""
    import numpy as np

    def embed(work: Work, drafts: Sequence[ChunkDraft], model: ResolvedModel) -> "NDArray[np.float32]":
        found = [shipped.get(key) for key in _keys(document.name, drafts)]
        if any(vector is None for vector in found):
            return indexing.embed(work, drafts, model)
        vectors = np.full((len(drafts), model.dimensions or 0), np.nan, dtype=np.float32)
        vectors[_embedded(drafts)] = np.array(found, dtype=np.float32)
        return vectors

    try:
        parse_document(document=document, among=[Document.Status.UPLOADED])
        index_document(document=document, among=[Document.Status.PARSED], embed=embed)
    except BusyDocument:
        pass


def load() -> "dict[bytes, NDArray[np.float16]]":
    """Return the shipped vectors by key."""
    import numpy as np

    with np.load(VECTORS, allow_pickle=False) as file:
        return {bytes(key): vector for key, vector in zip(file["keys"], file["vectors"], strict=True)}


def build() -> int:
    """Cut and embed the guide with the built-in model and write its vectors; return how many."""
    import numpy as np

    inputs = wanted()
    vectors = gateway.embed_now(BUILTIN[Kind.EMBEDDING], list(inputs.values()), purpose="passage").astype(np.float16)
    np.savez(VECTORS, keys=np.frombuffer(b"".join(inputs), dtype=np.uint8).reshape(-1, KEY_BYTES), vectors=vectors)
    return len(inputs)


def wanted() -> dict[bytes, str]:
    """Return what is embedded for the guide as it is cut now, by key."""
    parse = PARSERS.get("text/markdown")
    base = KnowledgeBase()
    inputs: dict[bytes, str] = {}
    for page in pages():
        parsed = parse(BytesIO(page.content))
        drafts = indexing.cut(
            base.chunker, base.chunker_settings, parsed.markdown, parsed.pages, BUILTIN[Kind.EMBEDDING]
        )
        texts = _inputs(page.name, drafts)
        inputs.update(zip(map(_key, texts), texts, strict=True))
    return inputs


def _embedded(drafts: Sequence[ChunkDraft]) -> list[int]:
    return [place for place, draft in enumerate(drafts) if draft.level in EMBEDDED_LEVELS]


def _inputs(name: str, drafts: Sequence[ChunkDraft]) -> list[str]:
    return [embedding_input(name, drafts[place].heading, drafts[place].text) for place in _embedded(drafts)]


def _keys(name: str, drafts: Sequence[ChunkDraft]) -> list[bytes]:
    return [_key(text) for text in _inputs(name, drafts)]


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:KEY_BYTES]
