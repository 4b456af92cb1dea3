"""Folders: a tree without loops, by which documents are found, moved and deleted."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.common.errors import InvalidInput
from apps.knowledge import services
from apps.knowledge.errors import FolderNameTaken, FolderRefused
from apps.knowledge.models import Document, Folder
from apps.knowledge.services.sweeping import erase_deleted


@pytest.fixture
def tree(handbook, ann):
    """a/b/c and d."""

    def at(*path):
        return services.folder_at(knowledge_base=handbook, path=path, actor=ann)

    return at("a", "b", "c"), at("a", "b"), at("a"), at("d")


def test_a_path_makes_what_is_missing_once(tree, handbook, ann):
    assert Folder.objects.count() == 4
    again = services.folder_at(knowledge_base=handbook, path=["a", "b", "c"], actor=ann)
    assert again == tree[0]
    assert [str(pk) for pk in again.lineage] == [str(tree[2].pk), str(tree[1].pk), str(tree[0].pk)]
    assert services.folder_at(knowledge_base=handbook, path=[], actor=ann) is None


def test_names_are_one_a_place_and_for_display(tree, handbook, ann):
    with pytest.raises(FolderNameTaken):
        services.create_folder(knowledge_base=handbook, name="a", actor=ann)
    with pytest.raises(FolderNameTaken):
        services.rename_folder(folder=tree[3], name="a", actor=ann)
    with pytest.raises(InvalidInput):
        services.create_folder(knowledge_base=handbook, name=" .. ", actor=ann)
    assert services.create_folder(knowledge_base=handbook, name="../x", actor=ann).name == "x"


def test_a_folder_never_gets_into_itself_another_base_or_too_deep(tree, handbook, ann, acme, monkeypatch):
    deep, middle, top, other = tree
    elsewhere = services.create_knowledge_base(workspace=acme, name="Other", actor=ann)
    foreign = services.create_folder(knowledge_base=elsewhere, name="x", actor=ann)
    for wrong in (top, middle, deep, foreign):
        with pytest.raises(FolderRefused):
            services.move_folder(folder=top, parent=wrong, actor=ann)
    monkeypatch.setattr(Folder, "DEEPEST", 3)
    with pytest.raises(FolderRefused):
        services.move_folder(folder=top, parent=other, actor=ann)
    with pytest.raises(FolderRefused):
        services.create_folder(knowledge_base=handbook, name="y", actor=ann, parent=deep)
    assert set(Folder.objects.within([top.pk])) == {top, middle, deep}


def test_what_is_below_moves_along(tree, ann):
    deep, middle, top, other = tree
    services.move_folder(folder=middle, parent=other, actor=ann)
    assert set(Folder.objects.within([other.pk])) == {other, middle, deep}
    assert set(Folder.objects.within([top.pk])) == {top}
    services.move_folder(folder=middle, parent=None, actor=ann)
    deep.refresh_from_db()
    assert deep.lineage == [middle.pk, deep.pk]


def test_documents_are_found_by_folder_and_moved(tree, add, handbook, ann):
    deep, middle, top, _ = tree
    document = add("text", "x.txt")
    services.move_documents(knowledge_base=handbook, documents=Document.objects.all(), folder=deep, actor=ann)
    assert Document.objects.in_folders([top.pk]).get() == document
    assert Document.objects.in_folders([middle.pk]).get() == document
    services.move_documents(knowledge_base=handbook, documents=Document.objects.all(), folder=None, actor=ann)
    assert not Document.objects.in_folders([top.pk]).exists()


def test_a_deleted_folder_takes_all_with_it_and_undo_brings_all_back(tree, add, handbook, ann, bea):
    deep, _middle, top, _ = tree
    document = add("text", "x.txt")
    services.move_documents(knowledge_base=handbook, documents=Document.objects.all(), folder=deep, actor=ann)
    job = services.delete_folder(folder=top, actor=ann)
    assert not Document.objects.visible_to(bea).exists()
    assert Folder.objects.visible_to(bea).count() == 1
    services.create_folder(knowledge_base=handbook, name="later", actor=ann)
    services.restore_deleted(job=job, actor=ann)
    document.refresh_from_db()
    assert (document.folder, Folder.objects.visible_to(bea).count()) == (deep, 5)
    services.delete_folder(folder=top, actor=ann)
    before = timezone.now() - timedelta(seconds=11)
    Document.objects.update(deleted_at=before)
    Folder.objects.exclude(deleted_at=None).update(deleted_at=before)
    erase_deleted()
    assert set(Folder.objects.values_list("name", flat=True)) == {"d", "later"}


def test_folders_are_seen_and_changed_through_their_base(tree, bea, mal, ann):
    assert Folder.objects.visible_to(bea).count() == 4
    assert not Folder.objects.editable_by(bea).exists()
    assert Folder.objects.editable_by(ann).count() == 4
    assert not Folder.objects.visible_to(mal).exists()


def test_a_folder_stays_until_nothing_is_left_below_it(tree, add, handbook, ann):
    """Erased sooner it would take its folders along, and what lay in a restricted one would lie in the open."""
    deep, _middle, top, _ = tree
    document = add("text", "x.txt")
    services.move_documents(knowledge_base=handbook, documents=Document.objects.all(), folder=deep, actor=ann)
    services.delete_folder(folder=top, actor=ann)
    Folder.objects.exclude(deleted_at=None).update(deleted_at=timezone.now() - timedelta(seconds=11))
    erase_deleted()
    assert Folder.objects.count() == 4
    document.refresh_from_db()
    services.restore_document(document=document, actor=ann)
    document.refresh_from_db()
    assert document.folder == deep
    assert set(Folder.objects.filter(deleted_at=None).values_list("name", flat=True)) == {"a", "b", "c", "d"}


def test_undo_of_a_folder_brings_back_those_above_it(tree, handbook, ann):
    deep, middle, top, _ = tree
    job = services.delete_folder(folder=deep, actor=ann)
    services.delete_folder(folder=middle, actor=ann)
    Folder.objects.filter(pk=middle.pk).update(deleted_at=timezone.now() - timedelta(seconds=11))
    erase_deleted()
    assert Folder.objects.count() == 4  # the lapsed one holds another that may still come back
    services.restore_deleted(job=job, actor=ann)
    assert set(Folder.objects.filter(deleted_at=None)) >= {deep, middle, top}
