"""What is too bad to be shown. A threshold names the stage whose score it is about (pure)."""

from collections.abc import Mapping, Sequence

from apps.knowledge.retrieval.candidates import Candidate
from apps.knowledge.retrieval.profiles import STAGES, Profiles, ThresholdStage


def kept(
    candidates: Sequence[Candidate], profiles: Profiles, *, stages: Sequence[ThresholdStage] = STAGES
) -> list[Candidate]:
    """Return the candidates that reach every threshold of their own base's profile; what equals one stays.

    A threshold on a score that nobody has, because its stage did not run, is about nothing and drops nothing. Where
    others have the score and a passage does not, it is below: no leg of that stage listed it.
    """
    if not any(profile.thresholds for profile in (profiles.whole, *profiles.own.values())):
        return list(candidates)
    judged = {stage for stage in stages if any(stage in candidate.scores for candidate in candidates)}
    wanted = {
        base: {stage: least for stage, least in profiles.of(base).thresholds.items() if stage in judged}
        for base in {candidate.knowledge_base_id for candidate in candidates}
    }
    return [candidate for candidate in candidates if _passes(candidate, wanted[candidate.knowledge_base_id])]


def _passes(candidate: Candidate, wanted: Mapping[ThresholdStage, float]) -> bool:
    return all(stage in candidate.scores and candidate.scores[stage] >= least for stage, least in wanted.items())
