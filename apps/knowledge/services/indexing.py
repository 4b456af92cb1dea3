"""From Markdown to a generation: cut, embed in batches, commit.

The base's embedding model is fixed by the first document: later documents use it, whatever the
workspace's default has become, because vectors of two models cannot be compared.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from apps.knowledge import chunkers, storage
from apps.knowledge.chunkers.drafts import ChunkDraft
from apps.knowledge.errors import EmbeddingChanged, EmbeddingFailed, EmptyFile
from apps.knowledge.index_text import EMBEDDED_LEVELS, POSTED_LEVELS, embedding_input
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.services import overrides
from apps.knowledge.services.work import LeaseLost, Work
from apps.models import gateway
from apps.models.chat import ResolvedModel

if TYPE_CHECKING:  # numpy comes with the first document: the web process takes files in and starts without
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

Embed = Callable[[Work, Sequence[ChunkDraft], ResolvedModel], "Vectors"]
TITLE_TOKENS = 50  # room for the line of titles that is embedded before a chunk
LEAST_TOKENS = 32
BATCH = 32  # chunks between two reports of progress; the gateway cuts further where a vendor wants less


def index(work: Work, markdown: str, parsed: dict[str, Any], *, embed: Embed) -> None:
    """Make the next generation of a claimed document and let it go live.

    Raises:
        EmptyFile: the text has nothing in it that could be found.
        EmbeddingFailed, EmbeddingChanged, ModelError: there are no vectors; the old generation stands.
    """
    import numpy as np

    document = work.document
    base = document.knowledge_base
    model = embedder_of(base)
    drafts = cut(base.chunker, base.chunker_settings, markdown, parsed["pages"], model)
    if not drafts:
        raise EmptyFile
    recut = functools.partial(cut, base.chunker, base.chunker_settings, pages=[], model=model)
    drafts, marks = overrides.applied(document, drafts, recut=recut)
    vectors = embed(work, drafts, model)
    vectors[[place for place, mark in enumerate(marks) if mark.disabled]] = np.nan
    wanted = [
        place
        for place, (draft, mark) in enumerate(zip(drafts, marks, strict=True))
        if draft.level in EMBEDDED_LEVELS and not mark.disabled
    ]
    failed = int(np.isnan(vectors[wanted, 0]).sum()) if wanted else 0
    if wanted and failed == len(wanted):
        raise EmbeddingFailed(model=model.name, reason="it gave no usable vector")
    pages = [tuple(page) for page in parsed["pages"]]
    stored = storage.replace_generation(
        document,
        drafts,
        vectors,
        work.tokens,
        marks=marks,
        model=model.reference,
        markdown_key=parsed["key"],
        metadata={**parsed["metadata"], "pages": pages, "indexed_as": [document.name, model.reference]},
        page_count=len(pages) or None,
        failed_chunks=failed,
        progress=lambda share: work.report("storing", share),
    )
    if not stored:
        raise LeaseLost


def cut(
    chunker: str,
    settings: Mapping[str, Any],
    markdown: str,
    pages: Sequence[Sequence[int]],
    model: ResolvedModel,
) -> list[ChunkDraft]:
    """Cut with a base's chunker, so that the model reads each chunk whole, with the title before it.

    The settings are checked again, because the row may be old.
    """
    return chunkers.cut(
        chunker,
        settings,
        markdown,
        pages,
        most_tokens=max(model.max_input - TITLE_TOKENS, LEAST_TOKENS),
        count_tokens=gateway.token_counter(model),
    )


def embedder_of(knowledge_base: KnowledgeBase) -> ResolvedModel:
    """Return the base's own embedding model, fixing it now if the base has none.

    Whoever comes first decides, by a conditional update; the dimension is measured, not believed.

    Raises:
        ModelUnavailable: the base's model is not configured any more.
    """
    workspace_id = knowledge_base.workspace_id
    if not knowledge_base.embedding_model:  # once it is set it stays
        knowledge_base.refresh_from_db(fields=["embedding_model", "dimensions"])
    if knowledge_base.embedding_model:
        return gateway.resolve_reference("embedding", knowledge_base.embedding_model, workspace_id=workspace_id)
    model = gateway.resolve("embedding", workspace_id=workspace_id)
    dimensions = model.dimensions or gateway.embed_now(model, ["dimension"], purpose="passage").shape[1]
    unset = KnowledgeBase.objects.filter(pk=knowledge_base.pk, embedding_model="")
    if not unset.update(embedding_model=model.reference, dimensions=dimensions):
        return embedder_of(knowledge_base)
    knowledge_base.refresh_from_db(fields=["embedding_model", "dimensions"])
    return model


def embed(work: Work, drafts: Sequence[ChunkDraft], model: ResolvedModel) -> "Vectors":
    """Return one row a draft; NaN where the model cannot embed that one.

    Texts of like length go together, which is what a model pads least. What a batch gave is kept
    beside the live rows, where no search looks, so that another attempt goes on from there.
    """
    import numpy as np

    document = work.document
    dimensions = document.knowledge_base.dimensions or 0
    vectors = np.full((len(drafts), dimensions), np.nan, dtype=np.float32)
    wanted = [place for place, draft in enumerate(drafts) if draft.level in EMBEDDED_LEVELS]
    wanted.sort(key=lambda place: len(drafts[place].text))
    texts = {place: embedding_input(document.name, drafts[place].heading, drafts[place].text) for place in wanted}
    kept = len(wanted) > BATCH  # a document of one batch has nothing to resume
    if kept or document.generation:
        wanted = _resume(document, model, texts, wanted, vectors)
    for at in range(0, len(wanted), BATCH):
        work.report("embedding", at / len(wanted), slow=True)
        places = wanted[at : at + BATCH]
        found, tokens = gateway.embed_with_tokens_now(model, [texts[place] for place in places], check=work.check)
        known = {place: signs for place, signs in zip(places, tokens, strict=True) if signs}
        work.tokens |= {place: signs for place, signs in known.items() if drafts[place].level in POSTED_LEVELS}
        if found.shape[1] and found.shape[1] != dimensions:
            raise EmbeddingChanged(got=found.shape[1], expected=dimensions)
        if found.shape[1]:
            vectors[places] = found
        usable = [place for place in places if not np.isnan(vectors[place, 0])]
        if kept and usable:
            storage.stage_vectors(document, [_key(model, texts[place]) for place in usable], vectors[usable])
    return vectors


def _resume(
    document: Document, model: ResolvedModel, texts: Mapping[int, str], wanted: list[int], vectors: "Vectors"
) -> list[int]:
    """Fill in what an earlier attempt or the generation that answers has embedded; return the places left."""
    staged = storage.staged_vectors(document) if len(wanted) > BATCH else {}
    if document.metadata.get("indexed_as") == [document.name, model.reference]:
        for heading, text, vector in storage.live_vectors(document):
            staged.setdefault(_key(model, embedding_input(document.name, heading, text)), vector)
    left = []
    for place in wanted:
        found = staged.get(_key(model, texts[place])) if staged else None
        if found is None or len(found) != vectors.shape[1]:
            left.append(place)
        else:
            vectors[place] = found
    return left


def _key(model: ResolvedModel, text: str) -> UUID:
    return UUID(bytes=hashlib.sha256(f"{model.reference}\0{text}".encode()).digest()[:16])
