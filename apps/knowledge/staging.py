"""What a model has made of a document's texts already: kept by an attempt for the next one, and by what is live."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.db import transaction

from apps.common import database
from apps.knowledge import storage
from apps.knowledge.models import ChunkVector, Document, StagedVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedded(NamedTuple):
    """What a model made of a text: its vector, and the signs of its tokens, b"" where they were not kept."""

    vector: "NDArray[np.float32]"
    signs: bytes

    @classmethod
    def of(cls, embedding: Any, signs: Any) -> "Embedded":
        """Return it as rows hold it."""
        import numpy as np

        return cls(np.asarray(embedding, dtype=np.float32), bytes(signs or b""))


def stage_vectors(document: Document, keys: Sequence[UUID], vectors: "Vectors", signs: Mapping[UUID, bytes]) -> None:
    """Keep vectors of a generation in the making, by the hash of their input, and signs. Only a retry reads them."""
    columns = "document_id, key, embedding"
    rows = storage.wide_rows([[document.pk.bytes] * len(keys), [key.bytes for key in keys]], vectors)
    with transaction.atomic():
        if Document.objects.filter(pk=document.pk, deleted_at__isnull=True).exists():
            storage.copy_rows(StagedVector, columns, iter([rows]))
            if signs:
                database.run(
                    "UPDATE knowledge_stagedvector s SET signs = given.signs"
                    " FROM unnest(%s::uuid[], %s::bytea[]) AS given(key, signs)"
                    " WHERE s.document_id = %s AND s.key = given.key",
                    [list(signs), list(signs.values()), document.pk],
                )


def staged_vectors(document: Document, keys: Iterable[UUID]) -> "dict[UUID, Embedded]":
    """Return what an earlier attempt has embedded already of these, by the hash of its input."""
    rows = StagedVector.objects.filter(document=document, key__in=set(keys)).values_list("key", "embedding", "signs")
    return {key: Embedded.of(embedding, signs) for key, embedding, signs in rows}


def live_vectors(document: Document) -> "list[tuple[str, str, Embedded]]":
    """Return heading, text and vector of what the document is found by now."""
    rows = ChunkVector.objects.filter(document=document).values_list(
        "chunk__heading", "chunk__text", "embedding", "chunk__tokens__signs"
    )
    return [(heading, text, Embedded.of(embedding, signs)) for heading, text, embedding, signs in rows]
