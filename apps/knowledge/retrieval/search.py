"""Search: from a question to passages. The tool, the pages, the command, the API and evaluations all call it.

which of the bases may be read, by which model each is embedded, how each wants to be searched
→ the question embedded, once a model
→ one round trip: the vector leg (one a model) and the lexical leg, each behind the door
→ fusion → only where that is too little: the question in other words
→ the best passages, whole → merging → rerank → diversity → top k → threshold
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from uuid import UUID

import psycopg
from django.utils.translation import gettext as _
from psycopg.rows import DictRow

from apps.common.database import pool
from apps.common.errors import InvalidInput, KnowSphereError
from apps.common.text import storable
from apps.knowledge.index_text import query_terms
from apps.knowledge.retrieval import diversity, empty, expansion, legs, merging, outage, planning, reranking, thresholds
from apps.knowledge.retrieval.candidates import Candidate, by_leg, coverage, fused, joined, scarce, too_far_down
from apps.knowledge.retrieval.execution import fetch, run_legs
from apps.knowledge.retrieval.filters import Filters
from apps.knowledge.retrieval.outage import SearchUnavailable
from apps.knowledge.retrieval.passages import SearchResult, Stage
from apps.knowledge.retrieval.profiles import Profile, Profiles, agreed
from apps.knowledge.retrieval.questions import Group, embed_question
from apps.knowledge.retrieval.scope import Scope, readable_bases, readable_documents
from apps.models.accounting import Caller, charged_to, current
from apps.workspaces.principals import Who

logger = logging.getLogger(__name__)

LONGEST_QUERY = 4000  # characters; of a page pasted as a question the rest is not looked at
FETCH_TIMEOUT_MS = 5_000
BUILT_IN = "builtin:"


async def search(
    user: Who,
    query: str,
    *,
    knowledge_bases: Sequence[UUID],
    top_k: int | None = None,
    rerank: bool = True,
    profile: Profile | None = None,
    filters: Sequence[Filters] = (),
    watched: UUID | None = None,
) -> SearchResult:
    """Find the passages of the selected bases that answer ``query``: the best first, at most ``top_k``.

    Only documents that ``user`` may read at this moment are looked at; a base that they may not read
    counts as absent. When a part fails the others answer, and ``degraded`` names it. While all bases share
    an embedding model a search takes four SQL statements in three round trips, one more for each other model, one for
    the trigrams of a large base, one where the workspace keeps synonyms and may need them, one where a cut-up base
    wants its parents, one where nothing was found and the reason is asked.

    Args:
        user: the person for whom to search.
        query: a question or keywords.
        knowledge_bases: where to look; this narrows what ``user`` may read, and can't widen it.
        top_k: how many passages, from 1; None: as many as the profile says.
        rerank: let a reranker order the candidates, where the profile has one.
        profile: how to search, instead of what is saved with the bases.
        filters: which documents to look at; each narrows further.
        watched: a passage whose way through the stages is traced, even if no leg proposes it.

    Raises:
        InvalidInput: the query is blank, or ``top_k`` below 1.
        SearchUnavailable: the database does not answer, or every leg failed; it names the causes.
    """
    query = " ".join(storable(query).split())[:LONGEST_QUERY]
    if not query:
        raise InvalidInput(field="query", reason=_("it is empty"))
    if top_k is not None and top_k < 1:
        raise InvalidInput(field="top_k", reason=_("it must be at least 1"))
    asked = _Asked(user, query, list(knowledge_bases), top_k, rerank, profile, filters, watched)
    try:
        return await _Search(asked).run()
    except (psycopg.Error, OSError) as error:
        logger.warning("a search could not run", exc_info=error)
        raise SearchUnavailable({"database": outage.cause_of(error)}) from error


@dataclass(frozen=True, slots=True)
class _Asked:
    user: Who
    query: str
    selected: list[UUID]
    top_k: int | None
    rerank: bool
    profile: Profile | None
    filters: Sequence[Filters]
    watched: UUID | None


@dataclass(slots=True)
class _Search:
    """One search on its way: what was asked, and what the stages have written so far."""

    asked: _Asked
    stages: list[Stage] = field(default_factory=list)
    degraded: set[str] = field(default_factory=set)
    profiles: Profiles = field(default_factory=Profiles)
    bases: list[DictRow] = field(default_factory=list)
    traced: dict[UUID, Candidate] = field(default_factory=dict)
    spots: list[Group] = field(default_factory=list)  # the question's vectors
    terms: Mapping[str, float] = field(default_factory=dict)
    scarce: frozenset[str] = frozenset()  # of its terms, see ``legs``
    reranked_by: str = ""
    expanded: tuple[str, ...] = ()

    @property
    def whole(self) -> Profile:
        return self.profiles.whole

    @property
    def top_k(self) -> int:
        return self.asked.top_k or self.whole.top_k

    @property
    def ids(self) -> list[UUID]:
        return [base["id"] for base in self.bases]

    async def run(self) -> SearchResult:
        """Go through the stages in their order."""
        await self._find_bases()
        if not self.bases:
            return self._result([], "no_base")
        if not any(base["embedding_model"] for base in self.bases):
            return self._result([], "nothing_indexed")
        door = readable_documents(self.asked.user, self.asked.filters)
        with charged_to(current() or Caller(self.bases[0]["workspace_id"], self.asked.user.pk)):
            candidates, covered = await self._propose(door, self.asked.query, self.asked.watched)
            candidates = await self._expand(door, candidates)
            choice = reranking.choose(
                self.whole,
                wanted=self.asked.rerank,
                configured=any(base["reranker"] for base in self.bases),
                built_in=any(base["embedding_model"].startswith(BUILT_IN) for base in self.bases),
                covered=covered,
            )
            found = await self._fetch(door, candidates, tokens=choice.kind == reranking.BUILT_IN)
            found = await self._merge(door, found)
            found = await self._rerank(choice, found) if "rerank" not in self.degraded else found
        found = self._diversify(found)
        found = self._cut("top_k", found, found[: self.top_k])
        kept = self._cut("threshold", found, thresholds.kept(found, self.profiles))
        if kept:
            return self._result(kept)
        if found:
            return self._result([], "threshold")
        try:
            return self._result([], await empty.reason(self.asked.user, self.ids, door))
        except (psycopg.Error, OSError) as error:  # nothing was found, that much is known
            logger.warning("why a search found nothing could not be asked", exc_info=error)
            return self._result([], "no_match")

    async def _find_bases(self) -> None:
        began = perf_counter()
        async with (await pool()).connection() as connection:
            statement = legs.bases_statement(readable_bases(self.asked.user), self.asked.selected)
            self.bases = await fetch(connection, statement, timeout_ms=FETCH_TIMEOUT_MS)
        saved = {base["id"]: self._saved(base["profile"]) for base in self.bases}
        self.profiles = agreed(saved, self.asked.profile)
        self._note("bases", began, len(self.asked.selected), len(self.bases))

    def _saved(self, values: Mapping[str, Any] | None) -> Profile | None:
        """Read a base's profile. One of an older version that no longer fits is left out, and said to be."""
        try:
            return Profile.of(values) if values else None
        except InvalidInput as error:
            logger.warning("a saved search profile cannot be used: %s", error.details)
            self.degraded.add("profile")
            return None

    async def _propose(
        self, door: Scope, query: str, watched: UUID | None = None, *, further: bool = False
    ) -> tuple[list[Candidate], float]:
        """Run the legs for one question and fuse them; return the candidates and how much the words cover."""
        began = perf_counter()
        embedded = await embed_question(query, self.bases)
        models = len(embedded.vectors) + len(embedded.failed)
        why = {"failed": outage.words_of(embedded.failed[0])} if embedded.failed else {}
        self._note("embed", began, models, len(embedded.vectors), skip=further, **why)
        terms = query_terms(query)
        plan = planning.plan(door, query, terms, embedded, self.bases, watched, self.whole.expand_below)
        async with (await pool()).connection() as connection:
            outcome = await run_legs(connection, plan)
        self.degraded |= planning.degraded(embedded, outcome)
        causes = planning.causes(embedded, outcome)
        answered = outcome.rows.keys() - {"trigram"} or outcome.rows.get("trigram")  # which alone find little
        if causes and not answered:
            raise SearchUnavailable(causes)
        rows = by_leg(outcome.rows)
        if not further:
            self.spots, self.terms = embedded.vectors, terms
            self.scarce = frozenset() if "lexical" in outcome.failed else scarce(rows, terms)
            for name in {**rows, **causes}:
                if name == "embedding":
                    continue
                asked = len(embedded.vectors) if name == "vector" else len(terms) or 1
                why = {} if name in rows else {"failed": outage.words_of(causes[name])}
                self.stages.append(Stage(name, planning.leg_ms(name, outcome), asked, len(rows.get(name, ())), why))
        began = perf_counter()
        proposed = self.whole.candidate_count(self.top_k)
        beyond = too_far_down(outcome.rows)
        candidates = fused(query, rows, self.profiles, proposed, watched=watched, beyond=beyond)
        for candidate in candidates:
            self.traced.setdefault(candidate.chunk_id, candidate)
        alive = [candidate for candidate in candidates if not candidate.lost_at]
        self._note("fusion", began, sum(map(len, rows.values())), len(alive), skip=further)
        return alive, coverage(rows)

    async def _expand(self, door: Scope, candidates: list[Candidate]) -> list[Candidate]:
        """Ask in other words where too few passages pass the thresholds that can be judged by now.

        And where too few of all that may be read have a word of the question that has synonyms: vectors always find
        plenty, so that the number of passages says nothing about words.
        """
        profile = self.whole
        enough = thresholds.kept(candidates, self.profiles, stages=("vector", "fusion"))
        worded = [candidate for candidate in enough if {"lexical", "trigram"} & set(candidate.ranks)]
        few = len(worded if profile.expansion == "synonyms" else enough) < profile.expand_below
        need = expansion.Need(few, self.terms, self.scarce)
        synonyms = bool(self.bases[0]["synonyms"] and (few or self.scarce))
        if profile.expansion == "off" or not (synonyms or (few and profile.expansion == "auto")):
            return candidates
        began = perf_counter()
        others, failed = await expansion.other_questions(
            self.asked.query, profile, need, workspace_id=self.bases[0]["workspace_id"], synonyms=synonyms
        )
        if failed:
            self.degraded.add("expansion")
        if not others:
            return candidates
        try:
            lists = [(await self._propose(door, other, further=True))[0] for other in others]
        except SearchUnavailable:
            self.degraded.add("expansion")
            return candidates
        self.expanded = tuple(others)
        found = joined(candidates, lists)
        self._note("expansion", began, len(candidates), len(found), questions=others)
        return found

    async def _fetch(self, door: Scope, candidates: list[Candidate], *, tokens: bool) -> list[Candidate]:
        """Fetch the text of the best, behind the door once more: what went meanwhile is not shown."""
        began = perf_counter()
        best = candidates[
            : max(
                self.whole.reranked, max(self.top_k, self.whole.top_k * 2) if self.whole.mmr is not None else self.top_k
            )
        ]
        if not best:
            return []
        vectors = self.whole.mmr is not None
        try:
            rows = await self._passages(door, best, tokens=tokens, vectors=vectors, spots=self.spots)
        except psycopg.Error as error:  # once more, for the texts alone
            if outage.cause_of(error) == outage.CONNECTION:
                raise
            logger.warning("what goes with the passages of a search could not be read", exc_info=error)
            rows = await self._passages(door, best)
            self.degraded |= {name for name, wanted in (("rerank", tokens), ("mmr", vectors)) if wanted}
        for candidate in best:
            candidate.row = rows.get(candidate.chunk_id, {})
        return self._cut("passages", candidates, [candidate for candidate in best if candidate.row], began)

    async def _passages(
        self,
        door: Scope,
        best: Sequence[Candidate],
        *,
        tokens: bool = False,
        vectors: bool = False,
        spots: Sequence[Group] = (),
    ) -> dict[UUID, DictRow]:
        chunks = [candidate.chunk_id for candidate in best]
        unplaced = [one.chunk_id for one in best if not {"lexical", "trigram"} & set(one.ranks)]
        statement = legs.passages_statement(
            door, bases=self.ids, chunks=chunks, tokens=tokens, vectors=vectors, spots=spots, unplaced=unplaced
        )
        async with (await pool()).connection() as connection:
            return {row["chunk_id"]: row for row in await fetch(connection, statement, timeout_ms=FETCH_TIMEOUT_MS)}

    async def _merge(self, door: Scope, found: list[Candidate]) -> list[Candidate]:
        """Let parents stand for their children where enough were hit. Only some chunkers make such chunks."""
        cut_up = [candidate.chunk_id for candidate in found if candidate.row["parent_id"] is not None]
        if not cut_up:
            return found
        began = perf_counter()
        try:
            async with (await pool()).connection() as connection:
                statement = legs.ancestors_statement(door, chunks=cut_up)
                rows = await fetch(connection, statement, timeout_ms=FETCH_TIMEOUT_MS)
        except (psycopg.Error, OSError) as error:
            logger.warning("the hits of a search were not merged", exc_info=error)
            self.degraded.add("merging")
            self._note("merging", began, len(found), len(found), failed=outage.words_of(outage.cause_of(error)))
            return found
        merged = merging.merge(found, {row["chunk_id"]: row for row in rows}, share=self.whole.merge_share)
        for candidate in merged:
            self.traced[candidate.chunk_id] = candidate
        self._note("merging", began, len(found), len(merged))
        return merged

    async def _rerank(self, choice: reranking.Choice, found: list[Candidate]) -> list[Candidate]:
        if not choice.kind or not found:
            return found
        began = perf_counter()
        first, rest = found[: self.whole.reranked], found[self.whole.reranked :]
        before = [(candidate, candidate.score) for candidate in first]
        try:
            workspace_id = self.bases[0]["workspace_id"]
            ordered = await reranking.rerank(choice, self.whole, self.asked.query, first, workspace_id=workspace_id)
        except KnowSphereError as error:
            for candidate, score in before:
                candidate.score = score
                candidate.scores.pop("rerank", None)
            self.degraded.add("rerank")
            self._note("rerank", began, len(first), len(first), by=choice.kind, failed=reranking.explained(error))
            return found
        self.reranked_by = choice.kind
        self._note("rerank", began, len(first), len(first), by=choice.kind)
        return ordered + rest

    def _diversify(self, found: list[Candidate]) -> list[Candidate]:
        share = self.whole.mmr
        if share is None or len(found) < 2:
            return found
        began = perf_counter()
        vectors = diversity.as_vectors([candidate.row.get("embedding") for candidate in found])
        scores = [candidate.score for candidate in found]
        places = diversity.marginal_order(scores, vectors, share=share, count=self.top_k)
        return self._cut("mmr", found, [found[place] for place in places], began)

    def _cut(
        self, stage: str, before: list[Candidate], after: list[Candidate], began: float | None = None
    ) -> list[Candidate]:
        """Note who did not survive a stage."""
        kept = {id(candidate) for candidate in after}
        for candidate in before:
            if not candidate.lost_at and id(candidate) not in kept:
                candidate.lost_at = stage
        self._note(stage, perf_counter() if began is None else began, len(before), len(after))
        return after

    def _note(self, name: str, began: float, entered: int, left: int, *, skip: bool = False, **detail: Any) -> None:
        if not skip:
            self.stages.append(Stage(name, round((perf_counter() - began) * 1000, 3), entered, left, detail))

    def _result(self, kept: list[Candidate], reason: str = "") -> SearchResult:
        return SearchResult(
            tuple(candidate.passage() for candidate in kept),
            tuple(self.stages),
            tuple(sorted(self.degraded)),
            reason,
            self.reranked_by,
            self.expanded,
            tuple(self.traced.values()),
        )
