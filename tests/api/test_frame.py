"""What holds for every address of the API."""

import uuid

import pytest

pytestmark = pytest.mark.django_db


def shape(answer):
    body = answer.json()
    assert set(body) == {"code", "message", "retryable", "details"}, body
    return body["code"]


def test_errors_have_one_shape(api, acme, handbook):
    ann = api("ann")
    assert (api("nobody").get("knowledge-bases")).status_code == 401
    assert shape(api("nobody").get("knowledge-bases")) == "not_signed_in"
    assert shape(ann.get("no-such-thing")) == "not_found"
    assert shape(ann.post("no-such-thing")) == "not_found"
    assert shape(ann.get(f"knowledge-bases/{uuid.uuid4()}")) == "not_found"
    assert shape(ann.get("knowledge-bases/not-a-uuid")) == "not_found"
    answer = ann.put("knowledge-bases", {})
    assert (answer.status_code, shape(answer)) == (405, "method_not_allowed")
    answer = ann.post("knowledge-bases", "{not json", content_type="application/json")
    assert (answer.status_code, shape(answer)) == (400, "malformed_request")
    answer = ann.post("knowledge-bases", "<a/>", content_type="application/xml")
    assert (answer.status_code, shape(answer)) == (415, "unsupported_media_type")
    answer = ann.post("knowledge-bases", {"name": "x" * 101, "restricted": "maybe"})
    assert (answer.status_code, shape(answer)) == (422, "invalid_input")
    assert set(answer.json()["details"]["fields"]) == {"name", "restricted"}
    assert shape(ann.post("knowledge-bases", {"name": "a\x00b"})) == "invalid_input"
    assert shape(ann.post("knowledge-bases", {"name": "ok", "chunker_settings": {"a": "\x00"}})) == "invalid_input"
    assert shape(ann.post("knowledge-bases", [1])) == "invalid_input"
    assert shape(ann.get("documents?status=half")) == "invalid_input"


def test_a_form_with_more_beside_its_file_than_any_may_have_is_refused(api, handbook):
    fields = {"name": "x" * (5 << 20)}
    answer = api("ann").post(f"knowledge-bases/{handbook.pk}/documents", fields, format="multipart")
    assert (answer.status_code, shape(answer)) == (413, "request_too_large")
    assert answer.json()["details"] == {"limit_mb": 5}


def test_a_failure_that_nobody_foresaw_is_json_too_and_logged(api, acme, monkeypatch, caplog):
    from apps.knowledge.api import bases

    def broken(self, request):
        raise RuntimeError("secret")

    monkeypatch.setattr(bases.KnowledgeBases, "on_get", broken)
    answer = api("ann").get("knowledge-bases")
    assert (answer.status_code, shape(answer)) == (500, "internal_error")
    assert b"secret" not in answer.content
    assert "RuntimeError" in caplog.text


def test_a_database_that_is_away_is_said(api, acme, monkeypatch):
    from django.db import OperationalError

    from apps.knowledge.api import bases

    def away(self, request):
        raise OperationalError("gone")

    monkeypatch.setattr(bases.KnowledgeBases, "on_get", away)
    answer = api("ann").get("knowledge-bases")
    assert (answer.status_code, shape(answer), answer.json()["retryable"]) == (503, "service_unavailable", True)


def test_a_slash_at_the_end_makes_no_difference(api, acme):
    assert api("ann").post("knowledge-bases", {"name": "One"}).status_code == 201
    assert api("ann").post("knowledge-bases/", {"name": "Two"}).status_code == 201


def test_a_session_writes_only_from_our_own_pages(acme, ann, handbook):
    from tests.api.conftest import Caller

    client = Caller(enforce_csrf_checks=True)
    client.force_login(ann)
    assert shape(client.post("knowledge-bases", {"name": "x"})) == "csrf_failed"


def test_a_list_is_read_page_by_page_while_rows_come(api, acme, ann):
    from apps.knowledge.models import KnowledgeBase

    for number in range(5):
        KnowledgeBase.objects.create(workspace=acme, name=str(number))
    seen, address = [], "knowledge-bases?limit=2"
    while address:
        page = api("ann").get(address).json()
        seen += [row["name"] for row in page["results"]]
        KnowledgeBase.objects.create(workspace=acme, name=f"new {len(seen)}")
        address = page["next"]
    assert seen == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    "cursor", ["x", "bz0x", "cD1ub3QrYStkYXRl", "cD0lMDA=", "cD05OTk5OS0wMS0wMQ==", "%00", "bz05OTk5OTk="]
)
def test_a_cursor_that_nobody_gave_out(api, handbook, cursor):
    answer = api("ann").get(f"knowledge-bases?cursor={cursor}")
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert shape(answer) == "invalid_cursor"


def test_a_repeated_write_is_carried_out_once(api, acme):
    from apps.knowledge.models import KnowledgeBase
    from apps.rest.models import CarriedOut

    def send(name="One", key="k-1", persona="ann"):
        return api(persona).post("knowledge-bases", {"name": name}, headers={"Idempotency-Key": key})

    first, second = send(), send()
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert (first.get("Idempotent-Replay"), second["Idempotent-Replay"]) == (None, "true")
    assert shape(send(name="Other")) == "idempotency_key_reused"
    assert shape(send(key="é")) == "idempotency_key_invalid"
    assert send(name="Two", key="k-2").status_code == 201
    assert KnowledgeBase.objects.filter(workspace=acme).count() == 2
    # what failed may be tried again under its key
    assert shape(send(name="One", key="k-3")) == "name_taken"
    KnowledgeBase.objects.all().delete()
    assert send(name="One", key="k-3").status_code == 201
    # the repetition of what is gone since, or no longer one's own, gives nothing away
    KnowledgeBase.objects.filter(name="One").delete()
    assert shape(send(name="One", key="k-3")) == "not_found"
    # one that is still being carried out
    CarriedOut.objects.filter(key="k-2").update(status=None)
    assert shape(send(name="Two", key="k-2")) == "request_in_progress"


def test_two_callers_may_choose_the_same_idempotency_key(api, acme, mal):
    for persona in ("ann", "mal"):
        sent = api(persona).post("knowledge-bases", {"name": "x"}, headers={"Idempotency-Key": "same"})
        assert (sent.status_code, "Idempotent-Replay" in sent) == (201, False)


def test_too_many_requests_are_told_when_to_come_back(api, acme, settings):
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": {**rates, "person": "2/min"}}
    ann = api("ann")
    assert [ann.get("knowledge-bases").status_code for _ in range(3)] == [200, 200, 429]
    answer = ann.get("knowledge-bases")
    assert shape(answer) == "rate_limited"
    assert 1 <= int(answer["Retry-After"]) <= 60


def test_the_schema_is_whole_and_names_nothing_twice(client, db, capfd):
    answer = client.get("/api/v1/schema/")
    assert answer.status_code == 200
    document = answer.json()
    assert "Warning" not in capfd.readouterr().err
    names = [op["operationId"] for methods in document["paths"].values() for op in methods.values()]
    assert len(names) == len(set(names)) > 70
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (path, method)
            assert "4XX" in operation["responses"]
