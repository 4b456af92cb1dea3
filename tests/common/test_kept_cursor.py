"""The pool's cursor numbers placeholders itself, once a text."""

import asyncio

import pytest

from apps.common import database


@pytest.mark.django_db(transaction=True)
def test_placeholders_by_place_and_by_name_and_marks_that_are_none():
    async def asked():
        try:
            async with (await database.pool()).connection() as connection:
                places = await connection.execute("SELECT %s::int AS a, '50%%' AS b, %s::text AS c", [1, "%s"])
                named = await connection.execute(
                    "SELECT %(x)s::int + %(x)s::int AS twice, %(y)s AS other, 7 %% 4 AS rest",
                    {"y": "é", "x": 2, "z": 0},
                )
                bare = await connection.execute("SELECT '50%' LIKE '%0%' AS found")
                return [await cursor.fetchone() for cursor in (places, named, bare)]
        finally:
            await database.close_pool()

    assert asyncio.run(asked()) == [
        {"a": 1, "b": "50%", "c": "%s"},
        {"twice": 4, "other": "é", "rest": 3},
        {"found": True},
    ]


def test_a_text_of_any_length_is_read_once():
    database._numbered.cache_clear()
    long = "SELECT " + ", ".join(f"%(p{number})s" for number in range(500))
    assert database._numbered(long) is database._numbered(long)
    assert database._numbered(long)[1] == tuple(f"p{number}" for number in range(500))
