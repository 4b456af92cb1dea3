"""What of a person's memory comes with a question, read on the test's own connection."""

from django.db import connection

from apps.memory.recall import OFF, OFTEN, OWN, picked


def recall(*, user, workspace_id, question):
    off, items, often = (rows(*query.statement(user, workspace=workspace_id)) for query in (OFF, OWN, OFTEN))
    return [] if off else picked(items, often, question=question)


def rows(sql, parameters):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
