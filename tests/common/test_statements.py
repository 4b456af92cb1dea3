"""Statements written by hand, on Django's own connection: its guards, its errors, its transactions."""

import uuid
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from apps.common.database import copy_in, insert, run
from apps.knowledge.models import Document
from apps.workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db


def test_values_of_every_kind_come_back_as_they_went():
    moment, key = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), uuid.uuid4()
    sql = "SELECT %s::int, %s::text, %s::uuid, %s::timestamptz, %s::uuid[], %s::text IS NULL, %s::text[], '50%%'"
    [row] = run(sql, [2**31 - 1, "it's 'é'\\", key, moment, [key], None, ["a", 'b"']])
    assert row == (2**31 - 1, "it's 'é'\\", key, moment, [key], True, ["a", 'b"'], "50%")
    assert run("CREATE TEMP TABLE rows_of_none (id int)", []) == []


def test_a_row_is_the_same_by_hand_and_by_the_orm(handbook, ann):
    fields = {
        "workspace_id": handbook.workspace_id, "knowledge_base": handbook, "name": "plan.md", "size_bytes": 2**40,
        "tags": ["a", 'b"'], "attributes": {"year": 2026}, "password": "open sesame", "file": "documents/x/original",
        "kind": Document.Kind.TEXT, "uploaded_by": ann, "refresh_hours": 5,
        "fetched_at": datetime(2026, 1, 2, tzinfo=UTC),
    }  # fmt: skip
    for digest, write in (("a" * 64, insert), ("b" * 64, lambda row: row.save(force_insert=True))):
        row = Document(**fields, sha256=digest)
        write(row)
        assert not row._state.adding
        assert row.created_at
        assert row.changed_at
    one, other = Document.objects.order_by("sha256")
    assert one.password.reveal() == other.password.reveal() == "open sesame"
    differ = {"id", "sha256", "password", "created_at", "changed_at"}
    for field in Document._meta.concrete_fields:
        if field.name not in differ:
            assert getattr(one, field.attname) == getattr(other, field.attname), field.name
    one.name = "another.md"
    one.save()  # it is there, and is updated
    assert Document.objects.count() == 2


def test_errors_are_djangos_and_end_the_transaction_as_djangos_do(handbook):
    event = AuditEvent(kind="person", action="thing.done")
    insert(event)
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(event)
    assert run("SELECT count(*) FROM workspaces_auditevent WHERE id = %s", [event.pk]) == [(1,)]
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            run("SELECT 1", [])


def test_who_looks_on_sees_every_statement(handbook):
    with CaptureQueriesContext(connection) as seen:
        assert run("SELECT %s::int", [7]) == [(7,)]
        run("CREATE TEMP TABLE seen_rows (id int)", [])
        copy_in("COPY seen_rows FROM STDIN", [b"1\n", b"2\n"])
    assert [query["sql"].split()[0] for query in seen] == ["SELECT", "CREATE", "COPY"]
    copy_in("COPY seen_rows FROM STDIN", [b"3\n"])
    assert run("SELECT sum(id) FROM seen_rows WHERE id > %s", [0]) == [(6,)]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_closed_is_opened_again():
    before = run("SELECT pg_backend_pid()", [])
    connection.close()
    assert run("SELECT pg_backend_pid()", []) != before
    with transaction.atomic():
        run("SELECT set_config('application_name', %s, true)", ["inside"])
        assert run("SELECT current_setting('application_name')", []) == [("inside",)]
    assert run("SELECT current_setting('application_name')", []) != [("inside",)]
