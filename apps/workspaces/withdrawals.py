"""Rights that go are told to every process by PostgreSQL itself, whoever took them away, and how.

Triggers on the tables that bear rights (made by migrations of their apps) notify ``CHANNEL`` with the commit, without
saying whose right it was: a process that shows something to somebody looks again before it shows more
(``docs/decisions/withdrawn-rights.md``). Rights that end by the clock are found by looking now and then.
"""

from collections.abc import Mapping

from django.db import migrations

CHANNEL = "ks_withdrawn"
FUNCTION = f"""
CREATE FUNCTION knowsphere_right_withdrawn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('{CHANNEL}', '');
    RETURN NULL;
END $$
"""
NO_FUNCTION = "DROP FUNCTION knowsphere_right_withdrawn()"
ADD = """
CREATE TRIGGER right_withdrawn AFTER DELETE{update} ON "{table}"
    FOR EACH STATEMENT EXECUTE FUNCTION knowsphere_right_withdrawn()
"""


def told(tables: Mapping[str, str]) -> list[migrations.RunSQL]:
    """Return operations that let tables tell of rows that go, and of columns that are written.

    ``tables``: names, each with the columns, separated by commas, that decide who may see something; may be empty.
    """
    return [
        migrations.RunSQL(
            ADD.format(table=table, update=f" OR UPDATE OF {columns}" if columns else ""),
            f'DROP TRIGGER right_withdrawn ON "{table}"',
        )
        for table, columns in tables.items()
    ]
