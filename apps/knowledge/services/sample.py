"""The sample base: the product's own guide in both languages, with its vectors shipped.

``apps/knowledge/sample/`` holds the texts and ``vectors.npz``, which ``manage.py build_sample`` makes: one
vector in half precision a passage and piece, by the hash of what was embedded, and of passages the signs
of their tokens, by which the built-in reranker compares them. They are used only
where the chunker, the titles and the built-in model are those that made them; else the model works.
"""

import hashlib
import re
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from django.core.files.base import ContentFile

from apps.knowledge import services
from apps.knowledge.chunkers.drafts import ChunkDraft
from apps.knowledge.errors import BusyDocument
from apps.knowledge.index_text import EMBEDDED_LEVELS, POSTED_LEVELS, embedding_input
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


class Shipped(NamedTuple):
    """What the model makes of one text: its vector, and the signs of its tokens (none of a mere piece)."""

    vector: "NDArray[np.float16]"
    signs: bytes


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


def _ingest(document: Document, shipped: dict[bytes, Shipped]) -> None:
    """Take a page through its steps here; a worker that is at it already may have it."""
    import numpy as np

    def embed(work: Work, drafts: Sequence[ChunkDraft], model: ResolvedModel) -> "NDArray[np.float32]":
        known = [shipped[key] for key in _keys(document.name, drafts) if key in shipped]
        places = _embedded(drafts)
        if len(known) < len(places):
            return indexing.embed(work, drafts, model)
        vectors = np.full((len(drafts), model.dimensions or 0), np.nan, dtype=np.float32)
        vectors[places] = np.array([one.vector for one in known], dtype=np.float32)
        work.tokens |= {
            place: one.signs
            for place, one in zip(places, known, strict=True)
            if one.signs and drafts[place].level in POSTED_LEVELS
        }
        return vectors

    try:
        parse_document(document=document, among=[Document.Status.UPLOADED])
        index_document(document=document, among=[Document.Status.PARSED], embed=embed)
    except BusyDocument:
        pass


def load() -> dict[bytes, Shipped]:
    """Return what is shipped of each text, by key."""
    import numpy as np

    with np.load(VECTORS, allow_pickle=False) as file:
        signs, ends = file["signs"].tobytes(), file["ends"].tolist()
        pieces = [signs[first:end] for first, end in pairwise([0, *ends])]
        return {
            bytes(key): Shipped(vector, piece)
            for key, vector, piece in zip(file["keys"], file["vectors"], pieces, strict=True)
        }


def build() -> int:
    """Cut and embed the guide with the built-in model and write what came of it; return how many texts."""
    import numpy as np

    inputs = wanted()
    vectors, tokens = gateway.embed_with_tokens_now(
        BUILTIN[Kind.EMBEDDING], [text for text, _posted in inputs.values()]
    )
    signs = [each if posted else b"" for each, (_text, posted) in zip(tokens, inputs.values(), strict=True)]
    np.savez(
        VECTORS,
        keys=np.frombuffer(b"".join(inputs), dtype=np.uint8).reshape(-1, KEY_BYTES),
        vectors=vectors.astype(np.float16),
        signs=np.frombuffer(b"".join(signs), dtype=np.uint8),
        ends=np.cumsum([len(each) for each in signs]),
    )
    return len(inputs)


def wanted() -> dict[bytes, tuple[str, bool]]:
    """Return what is embedded for the guide as it is cut now, by key, and whether its tokens are compared too."""
    parse = PARSERS.get("text/markdown")
    base = KnowledgeBase()
    inputs: dict[bytes, tuple[str, bool]] = {}
    for page in pages():
        parsed = parse(BytesIO(page.content))
        drafts = indexing.cut(
            base.chunker, base.chunker_settings, parsed.markdown, parsed.pages, BUILTIN[Kind.EMBEDDING]
        )
        for place, text in zip(_embedded(drafts), _inputs(page.name, drafts), strict=True):
            _known, posted = inputs.get(_key(text), ("", False))
            inputs[_key(text)] = text, posted or drafts[place].level in POSTED_LEVELS
    return inputs


def _embedded(drafts: Sequence[ChunkDraft]) -> list[int]:
    return [place for place, draft in enumerate(drafts) if draft.level in EMBEDDED_LEVELS]


def _inputs(name: str, drafts: Sequence[ChunkDraft]) -> list[str]:
    return [embedding_input(name, drafts[place].heading, drafts[place].text) for place in _embedded(drafts)]


def _keys(name: str, drafts: Sequence[ChunkDraft]) -> list[bytes]:
    return [_key(text) for text in _inputs(name, drafts)]


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:KEY_BYTES]
