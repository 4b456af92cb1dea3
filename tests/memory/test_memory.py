"""What a person asked to be remembered: theirs alone, found again, gone when deleted."""

import pytest

from apps.common.errors import NotFound
from apps.memory.models import MemoryItem
from apps.memory.recall import CHARACTERS, FACTS
from apps.memory.services import delete_item, store_items
from tests.memory.recalled import recall

Kind = MemoryItem.Kind


def remembered(user, workspace, question="How is the weather?"):
    return recall(user=user, workspace_id=workspace.pk, question=question)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I work in finance", Kind.PROFILE),
        ("My name is Ann", Kind.PROFILE),
        ("我是财务部的", Kind.PROFILE),
        ("I like short answers", Kind.INTEREST),
        ("我关注新能源", Kind.INTEREST),
        ("The code of the door is 42", Kind.FACT),
        ("合同编号是 K-77", Kind.FACT),
    ],
)
def test_kinds(acme, ann, text, kind):
    [item] = store_items(workspace=acme, texts=[text], actor=ann)
    assert item.kind == kind


def test_the_same_statement_is_kept_once_and_bad_characters_never(acme, ann):
    store_items(workspace=acme, texts=["I work in\x00 finance", " I work in finance ", "\u202e"], actor=ann)
    assert [item.text for item in MemoryItem.objects.all()] == ["I work in finance"]


def test_profile_and_interests_always_facts_where_they_belong(acme, ann):
    store_items(
        workspace=acme,
        texts=["I work in finance", "I like short answers", "The door code is 42", "合同编号是 K-77"],
        actor=ann,
    )
    assert set(remembered(ann, acme)) == {"I work in finance", "I like short answers"}
    assert "The door code is 42" in remembered(ann, acme, "What is the code of the door?")
    assert "合同编号是 K-77" in remembered(ann, acme, "合同的编号是什么？")


def test_caps(acme, ann):
    store_items(workspace=acme, texts=[f"door {i} has code {i}{i}" for i in range(20)], actor=ann)
    assert len(remembered(ann, acme, "door codes")) == FACTS
    store_items(workspace=acme, texts=[f"I like {i} " + "x" * 900 for i in range(5)], actor=ann)
    assert sum(map(len, remembered(ann, acme))) <= CHARACTERS


def test_nobody_elses_and_nowhere_else(acme, ann, bea, mal):
    store_items(workspace=acme, texts=["I work in finance"], actor=ann)
    assert remembered(bea, acme) == remembered(mal, acme) == []
    other = mal.workspaces.get()
    assert remembered(ann, other) == []
    with pytest.raises(NotFound):
        store_items(workspace=acme, texts=["x"], actor=mal)
    acme.memberships.filter(user=ann).delete()
    assert remembered(ann, acme) == []


def test_deleted_is_gone_at_once(acme, ann):
    [item] = store_items(workspace=acme, texts=["I work in finance"], actor=ann)
    delete_item(item=MemoryItem.objects.editable_by(ann).get(pk=item.pk))
    assert remembered(ann, acme) == []
