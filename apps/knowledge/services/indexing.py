"""From Markdown to a generation: cut, embed in batches, commit.

The base's embedding model is fixed by the first document: later documents use it, whatever the
workspace's default has become, because vectors of two models cannot be compared.
"""

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from apps.knowledge import chunkers, staging, storage
from apps.knowledge.chunkers.drafts import ChunkDraft
from apps.knowledge.chunkers.windows import Window
from apps.knowledge.errors import EmbeddingChanged, EmbeddingFailed, EmptyFile
from apps.knowledge.index_text import EMBEDDED_LEVELS, POSTED_LEVELS, embedding_input, said
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services import overrides
from apps.knowledge.services.work import LeaseLost, Work
from apps.models import gateway
from apps.models.chat import ResolvedModel
from apps.models.models import Kind
from apps.models.resolution import BUILTIN

if TYPE_CHECKING:  # numpy comes with the first document: the web process takes files in and starts without
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

Embed = Callable[[Work, Sequence[ChunkDraft], ResolvedModel], "Vectors"]
TITLE_TOKENS = 50  # room for the line of titles that is embedded before a chunk
LEAST_TOKENS = 32
MOST_KNOWN_AGAIN = 20_000  # passages of a document whose live vectors are held at once to be used again
BATCH = 32  # chunks between two reports of progress; the gateway cuts further where a vendor wants less


def index(work: Work, parts: Iterable[Window], parsed: dict[str, Any], *, embed: Embed, size_bytes: int = 0) -> None:
    """Make the next generation of a claimed document and let it go live. ``size_bytes`` is that of all parts.

    Raises:
        EmptyFile: the text has nothing in it that could be found.
        EmbeddingFailed, EmbeddingChanged, ModelError: there are no vectors; the old generation stands.
    """
    document = work.document
    model = embedder_of(document.knowledge_base)
    pages = [tuple(page) for page in parsed["pages"]]
    stored = storage.replace_generation(
        document,
        _batches(work, parts, pages, model, embed, size_bytes),
        model=model.reference,
        markdown_key=parsed["key"],
        metadata={**parsed["metadata"], "pages": pages, "indexed_as": [document.name, model.reference]},
        page_count=len(pages) or None,
        progress=lambda share: work.report("storing", share),
    )
    if not stored:
        raise LeaseLost


def _batches(
    work: Work,
    parts: Iterable[Window],
    pages: Sequence[tuple[int, ...]],
    model: ResolvedModel,
    embed: Embed,
    size_bytes: int,
) -> Iterator[storage.Batch]:
    """Cut and embed a window at a time. Raises as ``index`` does, at the end where all of it must be known."""
    import numpy as np

    document, base = work.document, work.document.knowledge_base
    recut = functools.partial(cut, base.chunker, base.chunker_settings, pages=[], model=model)
    numbers: dict[int, int] = {}
    found = wanted = failed = 0
    watched = _watched(work, parts, size_bytes)
    cut_by = functools.partial(chunkers.cut_windows, most_tokens=most_tokens(model), count_tokens=token_counter(model))
    for drafts in cut_by(base.chunker, base.chunker_settings, watched, pages):
        drafts, marks = overrides.applied(document, drafts, recut=recut, numbers=numbers)
        if not drafts:
            continue
        vectors = embed(work, drafts, model)
        tokens, work.tokens = work.tokens, {}
        vectors[[place for place, mark in enumerate(marks) if mark.disabled]] = np.nan
        places = [
            place
            for place, (draft, mark) in enumerate(zip(drafts, marks, strict=True))
            if draft.level in EMBEDDED_LEVELS and not mark.disabled
        ]
        refused = int(np.isnan(vectors[places, 0]).sum()) if places else 0
        found, wanted, failed = found + len(drafts), wanted + len(places), failed + refused
        yield storage.Batch(drafts, vectors, tokens, marks, refused)
    if not found:
        raise EmptyFile
    if wanted and failed == wanted:
        raise EmbeddingFailed(model=model.name, reason="it gave no usable vector")


def _watched(work: Work, parts: Iterable[Window], size_bytes: int) -> Iterator[Window]:
    """Have the work know which part of the whole it is at."""
    behind = 0
    for window in parts:
        if window.start or size_bytes > len(window.text) * 4:  # not all of it, in whatever script
            own = len(window.text.encode("utf-8", "replace"))
            work.part = (behind / size_bytes, own / size_bytes) if size_bytes else (0.0, 1.0)
            behind += own
        yield window


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
        most_tokens=most_tokens(model),
        count_tokens=token_counter(model),
    )


def token_counter(model: ResolvedModel) -> Callable[[str], int]:
    """Return how to count what a model is given of a passage: no addresses of links, no names of pictures."""
    count = gateway.token_counter(model)
    return lambda text: count(said(text))


def most_tokens(model: ResolvedModel) -> int:
    """Return how many tokens of a chunk the model reads, with the title before it."""
    return max(model.max_input - TITLE_TOKENS, LEAST_TOKENS)


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
    ours = model.reference == BUILTIN[Kind.EMBEDDING].reference
    dimensions = model.dimensions if ours else gateway.embed_now(model, ["dimension"], purpose="passage").shape[1]
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
        wanted = _resume(work, model, drafts, texts, wanted, vectors)
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
            signs = {_key(model, texts[place]): known[place] for place in usable if place in known}
            staging.stage_vectors(document, [_key(model, texts[place]) for place in usable], vectors[usable], signs)
    return vectors


def _resume(
    work: Work,
    model: ResolvedModel,
    drafts: Sequence[ChunkDraft],
    texts: Mapping[int, str],
    wanted: list[int],
    vectors: "Vectors",
) -> list[int]:
    """Fill in what an earlier attempt or the generation that answers has embedded; return the places left.

    A passage whose tokens the built-in reranker compares, and of which their signs are not known, is embedded anew.
    """
    document = work.document
    keys = {place: _key(model, texts[place]) for place in wanted}
    staged = staging.staged_vectors(document, keys.values()) if len(wanted) > BATCH else {}
    small = document.chunk_count <= MOST_KNOWN_AGAIN
    if small and document.metadata.get("indexed_as") == [document.name, model.reference]:
        for heading, text, known in staging.live_vectors(document):
            key = _key(model, embedding_input(document.name, heading, text))
            if key not in staged or not staged[key].signs:
                staged[key] = known
    left = []
    for place in wanted:
        found = staged.get(keys[place]) if staged else None
        compared = drafts[place].level in POSTED_LEVELS and model.reference == BUILTIN[Kind.EMBEDDING].reference
        if found is None or len(found.vector) != vectors.shape[1] or (compared and not found.signs):
            left.append(place)
            continue
        vectors[place] = found.vector
        if compared:
            work.tokens[place] = found.signs
    return left


def _key(model: ResolvedModel, text: str) -> UUID:
    return UUID(bytes=hashlib.sha256(f"{model.reference}\0{text}".encode()).digest()[:16])
