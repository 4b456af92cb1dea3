"""Vectors from an OpenAI-compatible endpoint: batched, in order, and looked at before they are used."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from apps.models.calls import post
from apps.models.chat import ResolvedModel, Usage
from apps.models.errors import BadVectors, ModelError, ModelRefused, ModelUnavailable
from apps.models.retries import retrying
from apps.models.tokens import estimate
from apps.models.wire.deltas import read_usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TOKENS_A_REQUEST = 8_192  # what most vendors take at least
TOO_MUCH = {400, 413, 422}
SHORTEST_CUT = 256  # tokens; a text this short is not refused for its length

Count = Callable[[Usage], None]

logger = logging.getLogger(__name__)


async def embed_remotely(
    model: ResolvedModel, texts: Sequence[str], *, partial: bool, count: Count = lambda usage: None
) -> "Vectors":
    """Return one row a text, of length 1; ``count`` hears what each answered request cost. See gateway.embed."""
    import numpy as np

    shortened = [fit(text, model.max_input) or " " for text in texts]
    rows: list[Any] = []
    for batch in batches(shortened, model.max_batch, TOKENS_A_REQUEST):
        rows.extend(await _embed_batch(model, batch, partial, count))
    width = model.dimensions or next((len(row) for row in rows if row is not None), 0)
    out = np.full((len(texts), width), np.nan, dtype=np.float32)
    for place, row in enumerate(rows):
        if row is None:
            continue
        if len(row) != width:
            raise BadVectors(model=model.name, reason=_lengths(len(row), width))
        out[place] = row
    return out


def fit(text: str, max_tokens: int) -> str:
    """Cut a text to a model's input limit, by estimate and with room to spare; most texts stay whole."""
    count = estimate(text)
    if count > max_tokens:
        logger.warning("a text of about %d tokens is cut to %d before it is embedded", count, max_tokens)
    while count > max_tokens:
        text = text[: int(len(text) * max_tokens / count * 0.95)]
        count = estimate(text)
    return text


def batches(texts: Sequence[str], most: int, tokens: int) -> Iterator[list[str]]:
    """Cut into requests of at most ``most`` texts and about ``tokens`` tokens, at least one text each."""
    batch: list[str] = []
    held = 0
    for text in texts:
        count = estimate(text)
        if batch and (len(batch) >= most or held + count > tokens):
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += count
    if batch:
        yield batch


async def _embed_batch(model: ResolvedModel, texts: list[str], partial: bool, count: Count) -> list[Any]:
    """Embed one batch. One that is refused for its size, or holds a bad vector, is halved and tried again."""
    try:
        body = {"model": model.name, "encoding_format": "float", "input": texts}
        try:
            value = await retrying(lambda: post(model, "/embeddings", body))
        except asyncio.CancelledError:
            count(Usage(sum(map(estimate, texts)), estimated=True))  # the vendor has them
            raise
        said = read_usage(value.get("usage")) if isinstance(value, dict) else None
        count(said or Usage(sum(map(estimate, texts)), estimated=True))
        return _checked(model, value, len(texts))
    except (ModelRefused, BadVectors, ModelUnavailable) as error:
        if not _may_be_one_text(error):
            raise
        if len(texts) == 1:
            if isinstance(error, ModelRefused) and estimate(texts[0]) > SHORTEST_CUT:
                logger.warning("%s refused a text of about %d tokens; embedding half", model.name, estimate(texts[0]))
                return await _embed_batch(model, [texts[0][: len(texts[0]) // 2]], partial, count)
            if partial:
                return [None]
            raise
        half = len(texts) // 2
        return [
            *await _embed_batch(model, texts[:half], partial, count),
            *await _embed_batch(model, texts[half:], partial, count),
        ]


def _may_be_one_text(error: ModelError) -> bool:
    """Say whether the size of the batch, or one text in it, may be to blame; a down vendor is not."""
    if isinstance(error, BadVectors):
        return True
    if isinstance(error, ModelRefused):
        return error.details.get("http_status") in TOO_MUCH
    return "nan" in str(error.details.get("reason", "")).lower()  # Ollama: "unsupported value: NaN"


def _lengths(found: int, wanted: int) -> str:
    return _("%(found)d numbers instead of %(wanted)d") % {"found": found, "wanted": wanted}


def _checked(model: ResolvedModel, value: Any, count: int) -> list[Any]:
    """Return ``count`` vectors of length 1, in the order of the inputs. Raises BadVectors."""
    import numpy as np

    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, list) or len(data) != count:
        found = len(data) if isinstance(data, list) else 0
        raise BadVectors(
            model=model.name, reason=_("%(found)d vectors for %(count)d texts") % {"found": found, "count": count}
        )
    rows: list[Any] = [None] * count
    for place, item in enumerate(data):
        index = item.get("index") if isinstance(item, dict) else None
        index = index if isinstance(index, int) else place
        if not 0 <= index < count or rows[index] is not None:
            raise BadVectors(model=model.name, reason=_("their numbers do not match the texts"))
        try:
            row = np.asarray(item["embedding"], dtype=np.float32)
        except (TypeError, ValueError, KeyError):
            raise BadVectors(model=model.name, reason=_("one is not a list of numbers")) from None
        norm = float(np.linalg.norm(row)) if row.ndim == 1 and row.size else 0.0
        if not np.isfinite(norm) or norm == 0.0:
            raise BadVectors(model=model.name, reason=_("one is empty, zero or not finite"))
        if model.dimensions and row.size != model.dimensions:
            raise BadVectors(model=model.name, reason=_lengths(row.size, model.dimensions))
        rows[index] = row / norm
    return rows
