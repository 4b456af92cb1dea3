"""EncryptedField: what reaches the database, and what comes back."""

import base64
import os

import pytest
from django.core.exceptions import FieldError
from django.db import connection

from apps.common.fields import MASK, Secret, SecretUnreadable
from apps.models.models import ModelConfig


@pytest.fixture
def config(acme):
    made = ModelConfig.objects.create(
        workspace=acme, kind="chat", name="m", base_url="https://example.com/v1", api_key="sk-canary"
    )
    return ModelConfig.objects.get(pk=made.pk)


def stored(config):
    with connection.cursor() as cursor:
        cursor.execute("SELECT api_key FROM models_modelconfig WHERE id = %s", [config.pk])
        return bytes(cursor.fetchone()[0])


def test_only_ciphertext_is_stored(config):
    assert b"canary" not in stored(config)
    assert config.api_key.reveal() == "sk-canary"


def test_shows_stars(config):
    assert f"{config.api_key} {config.api_key!r}" == f"{MASK} {MASK}"


def test_saving_unchanged_keeps_the_token(config):
    before = stored(config)
    config.save()
    assert stored(config) == before


def test_a_row_with_a_lost_key_can_be_listed_and_deleted(config, settings):
    settings.MASTER_KEYS = [base64.b64encode(os.urandom(32)).decode()]
    found = ModelConfig.objects.get(pk=config.pk)
    with pytest.raises(SecretUnreadable):
        found.api_key.reveal()
    found.delete()


def test_an_old_master_key_still_opens(config, settings):
    settings.MASTER_KEYS = [base64.b64encode(os.urandom(32)).decode(), *settings.MASTER_KEYS]
    assert ModelConfig.objects.get(pk=config.pk).api_key.reveal() == "sk-canary"


def test_a_token_of_another_column_is_refused():
    token = Secret("x").seal(b"a.b")
    with pytest.raises(SecretUnreadable):
        Secret(token=token, associated=b"a.c").reveal()


def test_a_changed_token_is_refused():
    token = bytearray(Secret("x").seal(b"a.b"))
    token[-1] ^= 1
    with pytest.raises(SecretUnreadable):
        Secret(token=bytes(token), associated=b"a.b").reveal()


def test_cannot_be_filtered_on(db):
    with pytest.raises(FieldError):
        ModelConfig.objects.filter(api_key="x").exists()
