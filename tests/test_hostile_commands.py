"""Bytes that are no UTF-8 in a command's arguments: a sentence, never a traceback."""

import contextlib
import os

import pytest
from django.core.management import CommandError, call_command

BAD = os.fsdecode(b"a\xff")  # what a byte that is no UTF-8 becomes in argv
FILE = "/etc/hostname"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("search", ["x", "--kb", BAD]),
        ("search", [BAD, "--kb", "Handbook"]),
        ("search", ["x", "--kb", "Handbook", "--as", BAD]),
        ("search", ["x", "--kb", "Handbook", "--workspace", BAD]),
        ("ask", [BAD]),
        ("ask", ["x", "--kb", BAD]),
        ("ask", ["x", "--agent", BAD]),
        ("ask", ["x", "--as", BAD]),
        ("ingest", [FILE, "--kb", BAD, "--as", "nobody@example.com"]),
        ("ingest", [f"/nowhere/{BAD}", "--kb", "Handbook", "--json"]),
        ("ingest", [f"/nowhere/{BAD}", "--kb", "Handbook"]),
        ("evaluate", [f"/nowhere/{BAD}", "--kind", "intent"]),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_sentence_and_no_traceback(handbook, capsys, command, arguments):
    with contextlib.suppress(SystemExit):
        try:
            call_command(command, *arguments)
        except CommandError as error:
            str(error).encode()
    capsys.readouterr().out.encode()
