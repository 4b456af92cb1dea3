"""manage.py rotate_master_key"""

import base64
import io
import os
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.common import backup
from apps.models.models import ModelConfig


def new_key():
    return base64.b64encode(os.urandom(32)).decode()


@pytest.fixture
def rows(acme):
    return [
        ModelConfig.objects.create(workspace=acme, kind="chat", name=name, base_url="https://a.example/v1", api_key=key)
        for name, key in (("one", "sk-one"), ("two", "sk-two"), ("three", None))
    ]


def rotate():
    out = io.StringIO()
    call_command("rotate_master_key", stdout=out)
    return out.getvalue()


def stored():
    return [row.api_key and row.api_key.reveal() for row in ModelConfig.objects.order_by("created_at")]


def test_every_key_is_of_the_new_one_and_the_old_one_can_go(rows, settings):
    old, fresh = settings.MASTER_KEYS[0], new_key()
    settings.MASTER_KEYS = [fresh, old]
    assert "2 encrypted anew, 0 were already" in rotate()
    settings.MASTER_KEYS = [fresh]
    assert stored() == ["sk-one", "sk-two", None]


def test_it_goes_on_where_it_was_stopped(rows, settings):
    settings.MASTER_KEYS = [new_key(), *settings.MASTER_KEYS]
    first = ModelConfig.objects.get(pk=rows[0].pk)
    first.api_key = first.api_key.renewed()
    first.save()
    assert "1 encrypted anew, 1 were already" in rotate()
    assert "0 encrypted anew, 2 were already" in rotate()


def test_what_no_key_opens_is_named_and_left(rows, settings, capsys):
    lost = settings.MASTER_KEYS
    settings.MASTER_KEYS = [new_key()]
    with pytest.raises(CommandError, match="2 could not be read"):
        rotate()
    settings.MASTER_KEYS = lost
    assert stored() == ["sk-one", "sk-two", None]


def test_a_backup_of_an_earlier_key_goes_in_while_that_key_is_kept(settings, monkeypatch):
    old, fresh = new_key(), new_key()
    manifest = {"format": backup.FORMAT, "master_key": backup.fingerprint(old), "with_files": False}
    monkeypatch.setattr(backup, "read_manifest", lambda source: manifest)
    monkeypatch.setattr(backup, "_running", lambda: ["web"])  # the next thing that is looked at
    for keys, words in (([fresh], "another MASTER_KEY"), ([fresh, old], "Stop these first")):
        settings.MASTER_KEYS = keys
        with pytest.raises(backup.BackupFailed, match=words):
            backup.restore(Path("backup.tar"))
