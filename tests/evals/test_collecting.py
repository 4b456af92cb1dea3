"""Answers that their askers kept become a data set."""

import json
from uuid import uuid4

import pytest
from django.core.management import call_command

from apps.common.errors import KnowSphereError
from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.conversations.services import rate_turn
from apps.evals.collecting import collect_cases
from apps.evals.datasets import read_retrieval_set
from apps.knowledge.models import Document


def a_document(base, person, name):
    return Document.objects.create(
        workspace=base.workspace, knowledge_base=base, name=name, uploaded_by=person, size_bytes=1, sha256=name
    )


def answered(workspace, person, question, *documents):
    conversation = Conversation.objects.create(workspace=workspace, owner=person)
    turn = Turn.objects.create(
        conversation=conversation, number=1, client_id=uuid4().hex, status="succeeded", question=question
    )
    answer = Message.objects.create(conversation=conversation, turn=turn, role="assistant", text="Ten days [[c1]].")
    for n, document in enumerate(documents, start=1):
        Citation.objects.create(
            message=answer, n=n, document_id=document.pk, chunk_id=uuid4(), document=document.name, text="Ten days.",
            cited=True,
        )  # fmt: skip
    return turn


def test_kept_answers_are_written_as_a_set_that_evaluate_reads(tmp_path, acme, ann, bea, handbook, capsys):
    seen = a_document(handbook, ann, "leave.md")
    good = answered(acme, ann, "How long is annual leave?", seen)
    rate_turn(turn=good, good=True, actor=ann, kept=True)
    bad = answered(acme, ann, "And in May?", seen)
    rate_turn(turn=bad, good=False, reason="wrong", actor=ann, kept=True)
    rate_turn(turn=answered(acme, ann, "Not kept?", seen), good=True, actor=ann)
    call_command("collect_cases", str(tmp_path / "set"), "--as", ann.email)
    assert "2" in capsys.readouterr().out
    cases = [json.loads(line) for line in (tmp_path / "set" / "cases.jsonl").read_text().splitlines()]
    assert [(case["question"], case["good"], case["reason"]) for case in cases] == [
        ("How long is annual leave?", True, ""),
        ("And in May?", False, "wrong"),
    ]
    found = read_retrieval_set(tmp_path / "set")
    assert list(found.queries.values()) == ["How long is annual leave?"]
    assert [passage.text for passage in found.corpus.values()] == ["Ten days."]


def test_only_who_may_evaluate_collects_and_no_answer_from_what_they_may_not_read(tmp_path, acme, ann, bea, handbook):
    with pytest.raises(KnowSphereError):
        collect_cases(workspace=acme, actor=bea, folder=tmp_path)
    gone = a_document(handbook, ann, "gone.md")
    rate_turn(turn=answered(acme, ann, "Where?", gone), good=True, actor=ann, kept=True)
    gone.delete()
    assert collect_cases(workspace=acme, actor=ann, folder=tmp_path) == 0
    assert all("Ten days." not in path.read_text() for path in tmp_path.iterdir())
