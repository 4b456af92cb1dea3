"""``manage.py evaluate``: the whole way, on a small set of our own; broken sets; the public bars."""

import json

import pytest
from django.core.management import CommandError, call_command

from apps.evals.models import EvalRun
from apps.evals.services import run_evaluation
from apps.knowledge.models import KnowledgeBase

pytestmark = pytest.mark.django_db(transaction=True)

CORPUS = [
    {"id": "leave", "title": "Handbook", "text": "Employees have thirty days of annual leave."},
    {"id": "travel", "title": "Handbook", "text": "Trains are booked in second class."},
    {"id": "rain", "title": "手册", "text": "今天下雨，出门请带伞。"},
    {"id": "same", "title": "手册", "text": "今天下雨，出门请带伞。"},
]
QUERIES = [
    {"id": "q1", "text": "How many days of annual leave?", "lang": "en"},
    {"id": "q2", "text": "下雨要带什么？", "lang": "zh"},
    {"id": "q3", "text": "not judged", "lang": "en"},
]
QRELS = "q1\tleave\t1\nq2\train\t1\nq2\ttravel\t0\n"


@pytest.fixture
def folder(tmp_path):
    """A small retrieval set that works."""
    write(tmp_path, "corpus.jsonl", CORPUS)
    write(tmp_path, "queries.jsonl", QUERIES)
    (tmp_path / "qrels.tsv").write_text(QRELS)
    return tmp_path


def write(folder, name, rows):
    (folder / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def test_retrieval_prints_and_stores_a_run_and_leaves_no_base(folder, acme, ann, capsys):
    call_command("evaluate", str(folder), "--kind", "retrieval", "--json", "--as", ann.email)
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    run = EvalRun.objects.visible_to(ann).get()
    assert printed["run_id"] == str(run.pk)
    assert (printed["kind"], printed["dataset"]) == ("retrieval", folder.name)
    assert (printed["n"], printed["scored"], printed["failed"]) == (2, 2, 0)
    assert printed["metrics"] == {"hit@1": 1.0, "hit@10": 1.0, "recall@10": 1.0, "mrr@10": 1.0, "ndcg@10": 1.0}
    assert not KnowledgeBase.objects.visible_to(ann).exists()


def test_a_question_whose_document_was_not_read_has_failed(folder, acme, ann, capsys):
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    rows[0]["text"] = "%PDF-1.7 and nothing of one"  # the document ends in an error
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(CommandError):
        call_command("evaluate", str(folder), "--kind", "retrieval", "--json")
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["failed"] >= 1
    assert printed["n"] == printed["scored"] + printed["failed"]
    assert printed["valid"] is False


def test_other_corpora_are_mixed_in(folder, acme, ann, tmp_path_factory):
    extra = tmp_path_factory.mktemp("extra")
    write(extra, "corpus.jsonl", [{"id": "leave", "title": "Other", "text": "Leaves fall in autumn."}])
    run = run_evaluation(kind="retrieval", folder=folder, extra=(extra,), workspace=acme, actor=ann)
    assert run.configuration["corpus"] == len(CORPUS) + 1
    assert run.metrics["hit@10"] == 1.0


def test_intent_asks_what_the_node_asks(tmp_path, acme, ann, capsys):
    items = [{"text": "Hello!", "intent": "greeting"}, {"text": "你好", "coarse": "greeting"}]
    write(tmp_path, "items.jsonl", items)
    call_command("evaluate", str(tmp_path), "--kind", "intent", "--json", "--as", ann.email)
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (printed["n"], printed["scored"], printed["metrics"]) == (2, 2, {"accuracy": 1.0, "macro_f1": 1.0})


def test_answers_cannot_be_evaluated_yet(folder, acme, ann):
    with pytest.raises(CommandError, match="cannot be evaluated yet"):
        call_command("evaluate", str(folder), "--kind", "generation", "--as", ann.email)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("corpus.jsonl", None, 0),
        ("corpus.jsonl", "\n", 0),
        ("corpus.jsonl", '{"id": "a", "text": "x"}\n{"id": ', 2),
        ("corpus.jsonl", '["a"]\n', 1),
        ("corpus.jsonl", '{"id": "a", "text": ""}\n', 1),
        ("corpus.jsonl", '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', 2),
        ("corpus.jsonl", '{"id": "a", "title": 7, "text": "x"}\n', 1),
        ("corpus.jsonl", b'{"id": "a", "text": "x"}\n\xff\n', 2),
        ("queries.jsonl", '{"id": "q1"}\n', 1),
        ("qrels.tsv", "q1\tleave\t1\nq1 travel 1\n", 2),
        ("qrels.tsv", "q1\tnowhere\t1\n", 1),
        ("qrels.tsv", "q1\tleave\t0\n", 0),
    ],
)
def test_a_broken_set_names_file_and_line_and_runs_nothing(folder, acme, ann, name, content, line):
    path = folder / name
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CommandError, match=rf"{name}, line {line}:"):
        call_command("evaluate", str(folder), "--kind", "retrieval", "--as", ann.email)
    assert not EvalRun.objects.exists()
    assert not KnowledgeBase.objects.exists()


BARS = {"xquad_cross_zh2en": 0.895, "xquad_zh": 0.969, "xquad_en": 0.981}  # docs/retrieval.md
QUESTIONS = 60  # of 505 a set: enough to tell a break, quick enough for every run


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BARS))
def test_public_sets_meet_their_bars(data_folder, tmp_path, acme, ann, name):
    whole = data_folder / "retrieval" / name
    (tmp_path / "corpus.jsonl").write_bytes((whole / "corpus.jsonl").read_bytes())
    (tmp_path / "queries.jsonl").write_bytes((whole / "queries.jsonl").read_bytes())
    (tmp_path / "qrels.tsv").write_text("".join((whole / "qrels.tsv").read_text().splitlines(True)[::8][:QUESTIONS]))
    run = run_evaluation(kind="retrieval", folder=tmp_path, workspace=acme, actor=ann)
    assert run.failed == 0
    assert run.metrics["ndcg@10"] >= BARS[name]
