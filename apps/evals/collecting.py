"""Cases for data sets from answers that their askers kept ("Keep as a case" beside the thumbs)."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.conversations.models import Feedback, Message
from apps.knowledge.models import Document
from apps.workspaces.models import User, Workspace
from apps.workspaces.permissions import require


def collect_cases(*, workspace: Workspace, actor: User, folder: Path) -> int:
    """Write the kept answers of a workspace as a data set; return how many there are.

    ``cases.jsonl`` has each question with its answer and what was thought of it. Those that were found
    good are a retrieval set besides (``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv``): their cited
    passages are the right ones. An answer that cites a document which the actor may not read is left out whole.

    Raises:
        NotFound, NotAllowed: by the actor's role in the workspace.
    """
    require("run_evaluation", actor=actor, workspace=workspace)
    kept = Feedback.objects.filter(
        kept=True, turn__conversation__workspace=workspace, turn__conversation__deleted_at=None
    )
    each = (_case(feedback, actor) for feedback in kept.select_related("turn").order_by("created_at"))
    cases = [case for case in each if case is not None]
    good = [case for case in cases if case["good"] and case["passages"]]
    passages = {passage["id"]: passage for case in good for passage in case["passages"]}
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "cases.jsonl", cases)
    _write(folder / "corpus.jsonl", passages.values())
    _write(folder / "queries.jsonl", ({"id": case["id"], "text": case["question"]} for case in good))
    lines = (f"{case['id']}\t{passage['id']}\t1\n" for case in good for passage in case["passages"])
    (folder / "qrels.tsv").write_text("".join(lines), encoding="utf-8")
    return len(cases)


def _case(feedback: Feedback, actor: User) -> dict[str, Any] | None:
    turn = feedback.turn
    answer = turn.messages.filter(role=Message.Role.ASSISTANT).first()
    cited = list(answer.citations.filter(cited=True, kind="chunk").order_by("n")) if answer else []
    readable = set(
        Document.objects.visible_to(actor).filter(pk__in=[c.document_id for c in cited]).values_list("pk", flat=True)
    )
    if any(c.document_id not in readable for c in cited):
        return None
    return {
        "id": str(turn.pk),
        "question": turn.question,
        "answer": answer.text if answer else "",
        "good": feedback.good,
        "reason": feedback.reason,
        "comment": feedback.comment,
        "passages": [{"id": str(c.chunk_id), "title": c.document, "text": c.text} for c in cited],
    }


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
