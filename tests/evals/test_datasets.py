"""Data sets of a workspace: written, shared, and run against its own base."""

import json

import pytest
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command

from apps.common.errors import InvalidInput, NotAllowed, NotFound
from apps.evals.errors import DatasetNameTaken
from apps.evals.keeping import add_case, create_dataset, rename_dataset
from apps.evals.models import Case, Dataset, EvalRun
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services import add_document, create_knowledge_base, ingest_document
from apps.workspaces import services
from apps.workspaces.models import Role
from apps.workspaces.services import Subject


@pytest.mark.django_db
def test_what_cannot_be_a_set_or_a_case_is_refused(acme, ann, bea, mal, handbook):
    theirs = create_knowledge_base(workspace=mal.workspaces.get(), name="Theirs", actor=mal)
    make = {"workspace": acme, "name": "Set", "actor": ann}
    for error, changed in (
        (InvalidInput, {"kind": "retrieval"}),
        (NotFound, {"kind": "retrieval", "knowledge_base": theirs}),
        (InvalidInput, {"kind": "intent", "name": " \u200b"}),
        (NotAllowed, {"kind": "intent", "actor": bea}),
        (NotFound, {"kind": "intent", "actor": mal}),
    ):
        with pytest.raises(error):
            create_dataset(**{**make, **changed})
    greetings = create_dataset(**make, kind="intent")
    questions = create_dataset(workspace=acme, name="Questions", kind="retrieval", knowledge_base=handbook, actor=ann)
    for refused in ({"name": "Set"}, {"name": "Questions"}):
        with pytest.raises(DatasetNameTaken):
            create_dataset(**{**make, **refused}, kind="intent")
    with pytest.raises(DatasetNameTaken):
        rename_dataset(dataset=greetings, name="Questions", actor=ann)
    foreign = add_document(knowledge_base=theirs, file=ContentFile(b"# X"), name="x.md", actor=mal)
    for error, dataset, case in (
        (InvalidInput, greetings, {"text": "Hi"}),
        (InvalidInput, greetings, {"text": "  ", "intent": "greeting"}),
        (InvalidInput, questions, {"text": "How many days?"}),
        (NotFound, questions, {"text": "How many days?", "documents": [foreign.pk]}),
    ):
        with pytest.raises(error):
            add_case(dataset=dataset, actor=ann, **case)
    assert not Case.objects.exists()


@pytest.mark.django_db
def test_a_restricted_set_is_for_those_whom_it_is_shared_with(acme, ann, bea, mal):
    services.set_membership(workspace=acme, user=bea, role=Role.MEMBER)
    dataset = create_dataset(workspace=acme, name="Set", kind="intent", actor=ann, restricted=True)
    add_case(dataset=dataset, text="Hi", intent="greeting", actor=ann)
    for person, sees in ((ann, True), (bea, False), (mal, False)):
        assert Dataset.objects.visible_to(person).exists() is sees
        assert Case.objects.visible_to(person).exists() is sees
    given = services.share(row=dataset, subject=Subject(role=Role.MEMBER), level="read", actor=ann)
    assert Case.objects.visible_to(bea).exists()
    assert not Dataset.objects.editable_by(bea).exists()
    services.share(row=dataset, subject=Subject(user=bea), level="manage", actor=ann)
    assert Case.objects.editable_by(bea).exists()
    services.unshare(share=given, actor=ann)
    services.unshare(share=dataset.shares.get(user=bea), actor=ann)
    assert not Case.objects.visible_to(bea).exists()


@pytest.mark.django_db(transaction=True)
def test_a_set_is_run_against_its_own_base_as_whoever_runs_it(acme, ann, bea, capsys):
    services.set_membership(workspace=acme, user=bea, role=Role.MEMBER)
    base = create_knowledge_base(workspace=acme, name="House", actor=ann)
    texts = {"leave": "Employees have thirty days of annual leave.", "travel": "Trains are booked in second class."}
    documents = {
        name: add_document(knowledge_base=base, file=ContentFile(text.encode()), name=f"{name}.md", actor=ann)
        for name, text in texts.items()
    }
    for document in documents.values():
        ingest_document(document.pk)
    dataset = create_dataset(workspace=acme, name="House questions", kind="retrieval", knowledge_base=base, actor=ann)
    for text, name in (("How many days of annual leave?", "leave"), ("Which class on trains?", "travel")):
        add_case(dataset=dataset, text=text, documents=[documents[name].pk], actor=ann)

    def run(person):
        call_command("evaluate", "--dataset", dataset.name, "--json", "--as", person.email)
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    printed = run(ann)
    assert (printed["kind"], printed["dataset"]) == ("retrieval", "House questions")
    assert (printed["n"], printed["scored"], printed["metrics"]["hit@1"]) == (2, 2, 1.0)
    assert EvalRun.objects.visible_to(ann).get().configuration["dataset"] == str(dataset.pk)
    services.set_restricted(row=documents["travel"], restricted=True, actor=ann)
    with pytest.raises(CommandError, match="1"):  # half of it is not bea's to read, so it says nothing
        run(bea)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["failed"] == 1
    KnowledgeBase.objects.filter(pk=base.pk).delete()
    with pytest.raises(CommandError):
        run(ann)
    with pytest.raises(CommandError, match="no data set"):
        call_command("evaluate", "--dataset", "Nowhere", "--as", ann.email)
