"""--workspace and --as: who a command acts as."""

import argparse

import pytest
from django.core.management import CommandError
from django.db import connection

from apps.workspaces import command_line


def acting(*arguments):
    parser = argparse.ArgumentParser()
    command_line.add_arguments(parser)
    return command_line.acting(vars(parser.parse_args(arguments)))


def test_the_only_workspaces_owner_is_the_default(acme, ann):
    assert acting() == (acme, ann)


def test_as_somebody_else(acme, bea):
    assert acting("--as", "BEA@example.com") == (acme, bea)


def test_several_workspaces_need_a_name(acme, ann, mal):
    with pytest.raises(CommandError, match="acme, mallory"):
        acting()
    assert acting("--workspace", "acme") == (acme, ann)


@pytest.mark.parametrize(
    "arguments",
    [("--as", "nobody@example.com"), ("--workspace", "nowhere"), ("--workspace", "acme", "--as", "mal@example.com")],
)
def test_who_is_not_there_is_an_error(acme, mal, arguments):
    with pytest.raises(CommandError):
        acting(*arguments)


def test_no_workspace_at_all_says_what_to_do(db):
    with pytest.raises(CommandError, match="sign up"):
        acting()


def test_tables_older_than_the_code_are_one_sentence(acme, ann):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'knowledge' AND name <> '0001_initial'")
    with pytest.raises(CommandError, match="make setup"):
        acting()
