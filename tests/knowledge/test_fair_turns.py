"""Turns of the worker: one tenant's thousand files do not hold up another's one."""

import pytest
from django_q.models import OrmQ

from apps.knowledge import services
from apps.knowledge.models import Document, IngestionAttempt, KnowledgeBase
from apps.knowledge.services import fairness, ingestion
from apps.knowledge.services.ingestion import parse_document
from apps.knowledge.tasks import ingest_document
from apps.workspaces.models import Workspace

MANY = 1_000
Status = Document.Status


@pytest.fixture
def crowd(acme, handbook):
    """A thousand files of acme that wait."""
    Document.objects.bulk_create(
        Document(
            workspace=acme,
            knowledge_base=handbook,
            name=f"{at}.txt",
            size_bytes=1,
            sha256=f"{at:064}",
            file=f"none/{at}",
        )
        for at in range(MANY)
    )


@pytest.fixture
def neighbour(mal, add):
    """Add one file in another tenant's workspace."""

    def neighbour(content="One small file.", name="one.txt"):
        workspace = Workspace.objects.get(memberships__user=mal)
        base, _ = KnowledgeBase.objects.get_or_create(workspace=workspace, name="Theirs")
        return add(content, name, knowledge_base=base)

    return neighbour


def steps():
    return list(IngestionAttempt.objects.order_by("pk").values_list("document_id", "step"))


def test_anothers_single_file_waits_for_one_step_at_most(crowd, neighbour, embedder):
    """A thousand turns are ahead of its own in the queue, and still it comes after the step in hand."""
    ingest_document("a turn of the thousand")
    before = len(steps())
    theirs = neighbour()
    while Document.objects.get(pk=theirs.pk).status not in Document.FINAL:
        ingest_document("a turn of the thousand")
    own = [place for place, (document, _) in enumerate(steps()[before:]) if document == theirs.pk]
    assert [step for _, step in steps()[before:] if _ == theirs.pk] == ["parse", "index"]
    assert own[0] <= 1
    assert own[1] - own[0] <= 2


def test_two_workspaces_take_turns(crowd, neighbour, embedder, acme):
    theirs = {neighbour(f"File {at}.", f"{at}.txt").pk for at in range(3)}
    for _ in range(8):
        ingest_document("")
    order = [document in theirs for document, _ in steps()]
    assert sum(order[:7]) >= 3
    assert any(not one for one in order[:3])


def test_a_workspace_with_work_in_hand_comes_after_one_without(crowd, neighbour):
    busy = fairness.next_waiting()
    assert busy.claim(Status.PARSING, among=[Status.UPLOADED], lease=services.work.LEASE)
    theirs = neighbour()
    assert fairness.next_waiting().pk == theirs.pk


def test_what_is_read_already_is_finished_first(add, embedder):
    first, second = add("first", "1.txt"), add("second", "2.txt")
    parse_document(document=second)
    assert fairness.next_waiting().pk == second.pk
    assert first.status == Status.UPLOADED


def test_each_turn_settles_one_document(add, embedder):
    for at in range(3):
        add(f"text {at}", f"{at}.txt")
    assert OrmQ.objects.count() == 3
    for at in range(3):
        ingest_document("")
        assert Document.objects.filter(status=Status.INDEXED).count() == at + 1
    assert ingest_document("") == "nothing waits"


def test_turns_that_a_killed_worker_took_along_are_made_up_for_at_once(add, embedder):
    for at in range(3):
        add(f"text {at}", f"{at}.txt")
    OrmQ.objects.all().delete()  # in the hands of a worker that is killed
    add("one more", "more.txt")
    turns = 0
    while OrmQ.objects.exists():
        OrmQ.objects.first().delete()
        ingest_document("")
        turns += 1
    assert turns == Document.objects.filter(status=Status.INDEXED).count() == 4


def test_who_is_next_is_one_statement_however_many_wait(crowd, neighbour, django_assert_num_queries):
    neighbour()
    with django_assert_num_queries(2):
        assert fairness.next_waiting()


def test_the_load_is_told_by_workspace(crowd, neighbour, acme):
    neighbour()
    assert fairness.next_waiting().claim(Status.PARSING, among=[Status.UPLOADED], lease=services.work.LEASE)
    load = {row["slug"]: (row["waiting"], row["running"], row["stuck"]) for row in fairness.load()}
    assert load[acme.slug][0] + load[acme.slug][1] == MANY
    assert sum(running for _, running, _ in load.values()) == 1


def test_whoever_loses_a_race_takes_the_next_one(add, embedder, monkeypatch):
    first, second = add("One.", "1.txt"), add("Two.", "2.txt")

    def outrun():
        found = fairness.next_waiting()
        if found and found.pk == first.pk:
            assert Document.objects.get(pk=first.pk).claim(
                Status.PARSING, among=[Status.UPLOADED], lease=services.work.LEASE
            )
        return found

    monkeypatch.setattr(ingestion, "next_waiting", outrun)
    assert ingestion.take_turn() == f"{second.pk} indexed"
