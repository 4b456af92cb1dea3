"""Conditions of doors that are kept compiled say what the ORM would say, wherever in a query they stand."""

import re
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.exceptions import EmptyResultSet
from django.db.models import Exists, OuterRef

from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces import rights
from apps.workspaces.principals import NOBODY, OF_A_WIDGET, SCOPES, Principal

WHO = [
    NOBODY,
    Principal.person(uuid4()),
    Principal("command", user_id=uuid4(), workspace_id=uuid4()),
    Principal("key", user_id=uuid4(), workspace_id=uuid4(), key_id=uuid4(), scopes=frozenset(SCOPES)),
    Principal("key", user_id=uuid4(), workspace_id=uuid4(), key_id=uuid4(), scopes=frozenset({"memory:read"})),
    Principal("widget", workspace_id=uuid4(), widget_id=uuid4(), visitor_id=uuid4(), scopes=OF_A_WIDGET),
]


def doors():
    """Return label → (model's rows, door) of all that are compiled."""
    found = {}
    for model in apps.get_models():
        rows = model._default_manager.all()
        for name in ("visible_to", "editable_by"):
            if hasattr(getattr(type(rows), name, None), "__wrapped__"):
                found[f"{model._meta.label}.{name}"] = rows, getattr(type(rows), name)
    return found


def said(rows):
    """Return a query's SQL with its parameters; tables of subqueries have no names, in the order of their use."""
    try:
        sql, parameters = rows.query.sql_with_params()
    except EmptyResultSet:
        return "nothing"
    return re.sub(r'(?<!["\w])(d\d+_)*[a-zA-Z]{1,2}\d+(?!["\w(])', "t", sql).replace("(", "").replace(
        ")", ""
    ), parameters


def test_a_compiled_door_says_what_the_orm_says():
    known = doors()
    assert len(known) > 40
    offenders = [
        f"{label} for {who}"
        for label, (rows, door) in known.items()
        for who in (*WHO, *WHO)  # the second time what was kept is used
        if said(door(rows, who)) != said(door.__wrapped__(rows, who))
    ]
    assert not offenders, "\n".join(offenders)


@pytest.mark.django_db
def test_a_door_within_a_door_speaks_of_its_own_row(acme, ann, bea, handbook):
    """The same table within itself: no name of the inner one hides one of the outer."""
    KnowledgeBase.objects.filter(pk=handbook.pk).update(restricted=True)
    Document.objects.create(workspace=acme, knowledge_base=handbook, name="a.txt", size_bytes=1)
    for who, readable in ((ann, True), (bea, False)):
        inner = KnowledgeBase.objects.visible_to(who).filter(pk=OuterRef("pk"))
        middle = KnowledgeBase.objects.filter(Exists(inner), pk=OuterRef("knowledge_base"))
        documents = Document.objects.filter(Exists(middle))
        assert documents.exists() is (Document.objects.visible_to(who).exists()) is readable
        assert KnowledgeBase.objects.visible_to(who).with_rights(who).filter(editable=True).exists() is readable
        assert KnowledgeBase.objects.exclude(pk__in=KnowledgeBase.objects.visible_to(who)).exists() is not readable


@pytest.mark.django_db
def test_rights_are_built_once(acme, ann, bea, monkeypatch):
    list(Document.objects.visible_to(ann))
    monkeypatch.setattr(rights, "memberships", pytest.fail)
    assert list(Document.objects.visible_to(bea)) == []


def test_a_door_over_two_tables_is_refused():
    from apps.workspaces.doors import compiled
    from apps.workspaces.models import DepartmentMember

    joined = compiled(type(DepartmentMember.objects.all()).visible_to)
    with pytest.raises(TypeError, match="joins other tables"):
        joined(DepartmentMember.objects.all(), WHO[1])
