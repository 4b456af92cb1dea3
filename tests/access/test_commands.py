"""Every management command: whose rights it acts with. A command without a row fails until someone decides.

``AS_SOMEBODY`` act as a member of a workspace, with that person's rights; ``OF_THE_SERVER`` are for whoever has the
server's shell, touch no one workspace's content on anybody's behalf, and take no ``--as``.
"""

import io
import json
from contextlib import redirect_stdout, suppress

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class

AS_SOMEBODY = {
    "search": ["42 days of leave", "--kb", "Handbook"],
    "ask": ["How long is leave?", "--kb", "Handbook"],
    "ingest": ["/etc/hostname", "--kb", "Handbook"],
    "mcp": [],
    "collect_cases": ["/nowhere/cases"],
    "evaluate": ["/etc/hostname", "--kind", "intent"],
}
OF_THE_SERVER = {
    "backup", "build_intents", "build_sample", "build_centres", "demo", "document_errors", "restore",
    "recount_quotas", "rotate_master_key", "setup",
}  # fmt: skip


def ours():
    return {name: app for name, app in get_commands().items() if str(app).startswith("apps.")}


def test_every_command_has_a_row():
    assert set(ours()) == set(AS_SOMEBODY) | OF_THE_SERVER


def test_those_with_a_row_for_people_take_a_person():
    takes = set()
    for name, app in ours().items():
        parser = load_command_class(app, name).create_parser("manage.py", name)
        if {"--as", "--workspace"} <= set(parser._option_string_actions):
            takes.add(name)
    assert takes == set(AS_SOMEBODY)


def run(command, *arguments):
    """Return what a command printed, and whether it was refused."""
    out, refused = io.StringIO(), False
    with redirect_stdout(out), suppress(SystemExit):
        try:
            call_command(command, *arguments, stdout=out)
        except CommandError as error:
            return str(error), True
    return out.getvalue(), refused


@pytest.mark.django_db(transaction=True)
def test_who_is_not_in_the_workspace_gets_nothing(acme, ann, mal, handbook):
    """Another tenant, an operator, a person who does not exist: a sentence, and nothing of acme."""
    from apps.workspaces.models import User
    from tests.conftest import person

    operator = person("operator@example.com")
    User.objects.filter(pk=operator.pk).update(is_staff=True, is_superuser=True)
    handbook.description = "zebrafinch-7731"
    handbook.save()
    let_in = []
    for command, arguments in AS_SOMEBODY.items():
        for email in (mal.email, operator.email, "nobody@example.com"):
            said, refused = run(command, *arguments, "--workspace", acme.slug, "--as", email)
            if not refused or "zebrafinch" in said:
                let_in.append((command, email, said))
    assert let_in == []
    assert not handbook.documents.exists()


@pytest.mark.django_db(transaction=True)
def test_a_base_that_is_not_shared_is_no_base_for_a_command(acme, ann, bea, handbook):
    handbook.restricted = True
    handbook.save()
    at = ["--workspace", acme.slug, "--as", bea.email]
    for command in ("search", "ask", "ingest"):
        said, refused = run(command, *AS_SOMEBODY[command], *at)
        assert refused, (command, said)
    assert not handbook.documents.exists()
    said, refused = run("search", *AS_SOMEBODY["search"], "--json", "--workspace", acme.slug, "--as", ann.email)
    assert not refused
    assert json.loads(said)["hits"] == []
