"""Facts that people keep of documents: typed, seen by readers, written by managers, used by search."""

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from apps.common.errors import InvalidInput
from apps.knowledge import services
from apps.knowledge.errors import NameTaken
from apps.knowledge.models import Document, MetadataField
from apps.knowledge.retrieval.filters import Filters

pytestmark = pytest.mark.django_db


@pytest.fixture
def fields(handbook, ann):
    """A field of each type, by its name."""
    types = {"author": "text", "year": "number", "since": "date", "valid": "boolean", "kind": "choice"}
    return {
        key: services.add_metadata_field(
            knowledge_base=handbook, key=key, of_type=of, actor=ann, choices=["law", "memo"] if of == "choice" else ()
        )
        for key, of in types.items()
    }


def test_values_are_kept_by_type_and_search_is_narrowed_by_them(fields, add, ann):
    document, other = add("One.", "1.txt"), add("Two.", "2.txt")
    said = {"author": " Li Na ", "year": "2024", "since": "2026-05-31", "valid": "yes", "kind": "law"}
    services.describe_document(document=document, attributes=said, tags=["red", "red "], actor=ann)
    kept = {"author": "Li Na", "year": 2024, "since": "2026-05-31", "valid": True, "kind": "law"}
    document.refresh_from_db()
    assert (document.attributes, document.tags) == (kept, ["red"])
    for field, op, value in [
        ("year", "gte", 2024), ("since", "lte", "2026-06-01"), ("valid", "eq", True), ("author", "contains", "li"),
    ]:  # fmt: skip
        filters = Filters.of({"metadata": [{"field": field, "op": op, "value": value}]})
        assert list(filters.apply(Document.objects.visible_to(ann))) == [document], field
    services.describe_document(document=document, attributes={"author": "", "year": None}, actor=ann)
    document.refresh_from_db()
    assert set(document.attributes) == {"since", "valid", "kind"}
    assert document.tags == ["red"]
    services.delete_metadata_field(field=fields["kind"], actor=ann)
    document.refresh_from_db()
    assert set(document.attributes) == {"since", "valid"}
    assert other.attributes == {}


def test_what_is_of_another_type_changes_nothing(fields, add, ann, handbook):
    document = add("One.", "1.txt")
    wrong = [
        ("year", "soon"), ("year", True), ("year", float("inf")), ("since", "31.5.2026"), ("valid", "perhaps"),
        ("kind", "novel"), ("author", "x" * 501), ("author", 5), ("colour", "red"),
    ]  # fmt: skip
    for key, value in wrong:
        with pytest.raises(InvalidInput):
            services.describe_document(document=document, attributes={"valid": True, key: value}, actor=ann)
    document.refresh_from_db()
    assert document.attributes == {}
    for key, of, choices in [
        ("two words", "text", ()), ("", "text", ()), ("x", "colour", ()), ("x", "choice", ()), ("x", "text", ["a"]),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput):
            services.add_metadata_field(knowledge_base=handbook, key=key, of_type=of, choices=choices, actor=ann)
    with pytest.raises(NameTaken):
        services.add_metadata_field(knowledge_base=handbook, key="year", of_type="text", actor=ann)


def test_the_pages_show_and_change_them(fields, add, ann, bea, client, acme, handbook):
    document = add("One.", "1.txt")
    save = reverse("knowledge:save-facts", args=[acme.slug, document.pk])
    show = reverse("knowledge:show-facts", args=[acme.slug, document.pk])
    client.force_login(ann)
    assert (
        client.post(save, {"fact-author": "<b>Li</b>", "fact-valid": "false", "tags": "red，blue"}).status_code == 302
    )
    assert client.post(save, {"fact-year": "soon"}).status_code == 422
    shown = client.get(show).content.decode()
    assert 'name="fact-year"' in shown
    assert "&lt;b&gt;Li&lt;/b&gt;" in shown
    client.force_login(bea)
    shown = client.get(show).content.decode()
    assert "&lt;b&gt;Li" in shown
    assert "blue" in shown
    assert "<form" not in shown.partition("</header>")[2].partition("<main")[2].partition("</main>")[0]
    assert client.post(save, {"fact-author": "Mal"}).status_code == 404
    client.force_login(ann)
    at = [acme.slug, handbook.pk]
    added = {"key": "部门", "type": "choice", "choices": "研发\n销售"}
    assert client.post(reverse("knowledge:add-field", args=at), added).status_code == 302
    field = MetadataField.objects.get(key="部门")
    assert field.choices == ["研发", "销售"]
    assert "部门" in client.get(reverse("knowledge:list-fields", args=at)).content.decode()
    assert client.post(reverse("knowledge:delete-field", args=[acme.slug, field.pk])).status_code == 302
    assert not MetadataField.objects.filter(key="部门").exists()


def test_programs_keep_facts_by_the_api(handbook, add, ann, bea):
    document = add("One.", "1.txt")
    api = APIClient()
    api.force_login(ann)
    fields, address = f"/api/v1/knowledge-bases/{handbook.pk}/metadata-fields/", f"/api/v1/documents/{document.pk}/"
    for body in ({"key": "year", "type": "number"}, {"key": "kind", "type": "choice", "choices": ["law", "memo"]}):
        assert api.post(fields, body, format="json").status_code == 201
    assert {row["key"] for row in api.get(fields).json()["results"]} == {"year", "kind"}
    told = api.patch(address, {"attributes": {"year": 2024, "kind": "law"}}, format="json")
    assert (told.status_code, told.json()["attributes"]) == (200, {"year": 2024, "kind": "law"})
    for wrong in ({"year": "soon"}, {"kind": "novel"}, {"colour": "red"}, {"year": 2025, "kind": 5}):
        refused = api.patch(address, {"attributes": wrong, "tags": ["red"]}, format="json")
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input"), wrong
    document.refresh_from_db()
    assert (document.attributes, document.tags) == ({"year": 2024, "kind": "law"}, [])  # all of a change or nothing
    assert api.patch(address, {"attributes": {"year": None}}, format="json").json()["attributes"] == {"kind": "law"}
    api.force_login(bea)
    assert api.get(address).json()["attributes"] == {"kind": "law"}
    assert api.patch(address, {"attributes": {"kind": "memo"}}, format="json").status_code == 404
