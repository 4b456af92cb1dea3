"""How to search: one value with every setting, saved with a base, the same for everybody who searches it.

Settings are of two kinds. What judges a single passage (weights, thresholds) is taken from the profile of
that passage's own base. What concerns the list as a whole (how many candidates, which reranker,
diversity, expansion) is one for all: that of the searched bases where they agree, else the default.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field
from pydantic import ValidationError as SchemaError

from apps.common.errors import InvalidInput

MOST_CANDIDATES = 100  # passages that a leg scores
MOST_RERANKED = 50
STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

Share = Annotated[float, Field(ge=0, le=1)]
ThresholdStage = Literal["vector", "fusion", "rerank"]
STAGES: tuple[ThresholdStage, ...] = ("vector", "fusion", "rerank")


class Weights(BaseModel):
    """Shares of the legs; only their relation counts. The defaults measured best, docs/decisions/fusion.md."""

    model_config = STRICT

    vector: Share = 0.5
    lexical: Share = 0.5
    trigram: Share = 0.175


class Profile(BaseModel):
    """Every setting of a search. The defaults are what measured best.

    ``thresholds``: the least score of a passage, by the stage that gives the score; 0 is a value, and
    what equals it stays. Applied last, to the ``top_k`` best, and what falls is not replaced.
    ``candidates``: how many passages each leg proposes; None: the setting RETRIEVAL_CANDIDATE_K, else
    ``top_k`` times ``candidates_per_hit``. Scores are stretched over what is proposed, so it is the saved
    ``top_k`` that counts here: whoever asks for more or fewer passages gets a longer or shorter piece of one list.
    """

    model_config = STRICT

    fusion: Literal["convex", "rrf"] = "convex"
    weights: Weights = Weights()
    top_k: int = Field(8, ge=1, le=50)
    candidates: int | None = Field(None, ge=1, le=MOST_CANDIDATES)
    candidates_per_hit: int = Field(13, ge=1, le=MOST_CANDIDATES)
    thresholds: dict[ThresholdStage, float] = Field(default_factory=dict)
    rerank: Literal["auto", "off", "built_in", "model", "llm"] = "auto"
    rerank_model: UUID | None = None
    rerank_weight: Share = 0.6  # of the built-in reranker's score beside the fused one
    reranked: int = Field(30, ge=1, le=MOST_RERANKED)
    mmr: Share | None = None  # relevance against diversity: 1 is relevance alone, None leaves the stage out
    expansion: Literal["auto", "synonyms", "off"] = "auto"
    expand_below: int = Field(3, ge=1, le=20)
    merge_share: Share = 0.5  # of a parent's children that must be hit for it to replace them

    def candidate_count(self, top_k: int) -> int:
        """Return how many passages each leg proposes, never fewer than the ``top_k`` that are asked for."""
        setting: int = settings.RETRIEVAL_CANDIDATE_K
        wanted = self.candidates or setting or max(self.reranked, self.top_k * self.candidates_per_hit)
        return min(max(wanted, top_k), MOST_CANDIDATES)

    def stored(self) -> dict[str, Any]:
        """Return what is saved: only what differs from the defaults, which may become better ones."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Profile":
        """Return a checked profile.

        Raises:
            InvalidInput: a setting that does not exist, or a value that it cannot have.
        """
        try:
            return cls.model_validate(values)
        except SchemaError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "profile"
            raise InvalidInput(field=where, reason=_(problem["msg"])) from None


DEFAULT = Profile.of({})


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of one search: ``whole`` for the list, and each base's own for its passages."""

    whole: Profile = DEFAULT
    own: Mapping[UUID, Profile] = field(default_factory=dict)

    def of(self, knowledge_base_id: UUID) -> Profile:
        """Return the profile by which a base's passages are judged."""
        return self.own.get(knowledge_base_id, self.whole)


def agreed(saved: Mapping[UUID, Profile | None], given: Profile | None) -> Profiles:
    """Put the profiles of the searched bases together; one that is ``given`` stands for all of them.

    Args:
        saved: each base's own profile, None where it has none.
        given: what to use instead, as when somebody tries out settings.
    """
    if given is not None:
        return Profiles(given)
    each = {base: profile or DEFAULT for base, profile in saved.items()}
    shared = _shared(each.values())
    return Profiles(shared) if shared else Profiles(DEFAULT, each)


def _shared(profiles: Iterable[Profile]) -> Profile | None:
    first, *others = list(profiles) or [DEFAULT]
    return first if all(other == first for other in others) else None
