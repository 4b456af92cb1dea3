"""``manage.py search``: the shape that programs read."""

import json

import pytest
from django.core.management import call_command

from tests.retrieval.conftest import embedded

pytestmark = pytest.mark.django_db(transaction=True)


def test_json_has_the_promised_fields(ann, acme, make_base, add_passages, capsys):
    first, second = make_base(acme, "First"), make_base(acme, "Second")
    near = {"name": "Refunds.md", "embed": lambda texts: embedded(["refunds"] * len(texts))}
    document, (parent,) = add_passages(first, "Refunds take five working days.", **near)
    add_passages(second, "Lunch is at noon.")
    options = ["--kb", first.name, second.name, "--top-k", "1", "--no-rerank", "--json"]
    call_command("search", "refunds", *options, "--as", ann.email)
    printed = json.loads(capsys.readouterr().out)
    (hit,) = printed["hits"]
    assert (hit["chunk_id"], hit["document_id"], hit["document"]) == (str(parent.pk), str(document.pk), "Refunds.md")
    assert (hit["text"], hit["page"], hit["heading"], hit["rerank_score"]) == (parent.text, 1, "", None)
    assert hit["ranks"]["lexical"] == 1
    assert isinstance(hit["ranks"]["vector"], int)
    assert 0 < hit["score"] <= 1
    assert printed["meta"]["degraded"] == []
    names = [stage["name"] for stage in printed["meta"]["stages"]]
    assert names == ["bases", "embed", "vector", "lexical", "trigram", "fusion", "passages", "top_k", "threshold"]
    assert all({"name", "ms", "in", "out"} == stage.keys() for stage in printed["meta"]["stages"])
