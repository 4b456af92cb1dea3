"""What the search-test page says about a search: in words, from the trace. Plain values in, sentences out."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from apps.knowledge.retrieval.passages import SearchResult, Trace

LEGS = ("vector", "lexical", "trigram")


@dataclass(frozen=True, slots=True)
class StageLine:
    """One line of the funnel."""

    name: str
    entered: int
    left: int
    ms: float
    share: float  # of the widest stage, 0 to 100, for the bar
    note: str = ""


def stage_names() -> dict[str, str]:
    """Return what each stage is called."""
    return {
        "bases": _("Knowledge bases"),
        "embed": _("Question embedded"),
        "vector": _("By meaning"),
        "lexical": _("By words"),
        "trigram": _("By characters"),
        "fusion": _("Fusion"),
        "expansion": _("Other words"),
        "passages": _("Passages read"),
        "merging": _("Merged into parents"),
        "rerank": _("Rerank"),
        "mmr": _("Diversity"),
        "top_k": _("Best passages"),
        "threshold": _("Threshold"),
    }


def missing(result: SearchResult) -> list[str]:
    """Return what is called what did not answer while the rest did."""
    names = {**stage_names(), "profile": _("Saved settings")}
    return [names.get(part, part) for part in result.degraded]


def empty_words(reason: str) -> str:
    """Return why nothing was found, and what to do."""
    return {
        "no_base": _("No knowledge base is selected, or none of those selected is shared with you."),
        "nothing_indexed": _(
            "The selected knowledge bases hold nothing indexed that you may read. "
            "Add documents, or ask whoever manages them whether some are kept from you."
        ),
        "filter": _("No document fits the filters. Loosen one of them."),
        "threshold": _("Passages were found, but none reaches the threshold that these knowledge bases ask for."),
    }.get(reason, _("Nothing was found. Try fewer or other words."))


def funnel(result: SearchResult) -> list[StageLine]:
    """Return the stages in order, with the width of each."""
    names = stage_names()
    widest = max((stage.left for stage in result.stages), default=1) or 1
    return [
        StageLine(
            names.get(stage.name, stage.name),
            stage.entered,
            stage.left,
            stage.ms,
            100 * stage.left / widest,
            _note(stage.detail),
        )
        for stage in result.stages
    ]


def _note(detail: dict[str, Any]) -> str:
    if "failed" in detail:
        return str(detail["failed"])
    if "questions" in detail:
        return " · ".join(detail["questions"])
    return {
        "built_in": _("built in, by tokens"),
        "model": _("rerank model"),
        "llm": _("chat model"),
    }.get(str(detail.get("by", "")), "")


def why(result: SearchResult, chunk_id: UUID, *, selected: bool) -> str:
    """Say why a passage is not among the hits, or that it is.

    ``selected``: whether its base is among those that were searched.
    """
    place = next((n for n, hit in enumerate(result.passages, start=1) if hit.chunk_id == chunk_id), None)
    if place is not None:
        return _("It is hit number %(place)d.") % {"place": place}
    trace = next((trace for trace in result.traces if trace.chunk_id == chunk_id), None)
    if trace is None:
        if not selected:
            return _("Its knowledge base was not searched.")
        return _("No leg saw it: its document does not fit the filters, or it has no vector and none of the words.")
    return _LOST.get(trace.lost_at, _lost_elsewhere)(trace)


def _ranks(trace: Trace) -> str:
    names = stage_names()
    told = [
        _("%(leg)s: number %(rank)d (%(score).3f)")
        % {"leg": names[leg], "rank": trace.ranks[leg], "score": trace.scores.get(leg, 0.0)}
        for leg in LEGS
        if leg in trace.ranks
    ]
    return ", ".join(told)


def _lost_in_legs(trace: Trace) -> str:
    return _("Too far down in every leg to be a candidate. %(ranks)s.") % {"ranks": _ranks(trace)}


def _lost_in_passages(trace: Trace) -> str:
    return _("A candidate, but its score after fusion, %(score).3f, was too low to be read. %(ranks)s.") % {
        "score": trace.scores.get("fusion", 0.0),
        "ranks": _ranks(trace),
    }


def _lost_in_merging(trace: Trace) -> str:
    return _("The larger passage around it stands for it.")


def _lost_in_diversity(trace: Trace) -> str:
    return _("Another hit says nearly the same; diversity left this one out.")


def _lost_in_top(trace: Trace) -> str:
    return _("Read, but others were better: %(scores)s. %(ranks)s.") % {
        "scores": ", ".join(
            f"{stage_names()[name]} {trace.scores[name]:.3f}" for name in ("fusion", "rerank") if name in trace.scores
        ),
        "ranks": _ranks(trace),
    }


def _lost_at_threshold(trace: Trace) -> str:
    return _("Among the best, but below the threshold: %(scores)s.") % {
        "scores": ", ".join(f"{stage_names().get(name, name)} {score:.3f}" for name, score in trace.scores.items())
    }


def _lost_elsewhere(trace: Trace) -> str:
    return _ranks(trace)


_LOST = {
    "legs": _lost_in_legs,
    "passages": _lost_in_passages,
    "merging": _lost_in_merging,
    "mmr": _lost_in_diversity,
    "top_k": _lost_in_top,
    "threshold": _lost_at_threshold,
}
