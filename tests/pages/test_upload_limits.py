"""A form's file that the disk cannot hold."""

import errno

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.urls import reverse

from apps.knowledge.models import Document


@pytest.mark.parametrize("checked", [True, False])  # the token's check reads the form before the view does
def test_a_full_disk_is_said_so_and_nothing_is_left(client, ann, acme, handbook, monkeypatch, checked):
    def full(self, raw_data, start):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TemporaryFileUploadHandler, "receive_data_chunk", full)
    client.force_login(ann)
    client.get(f"/{acme.slug}/")
    client.handler.enforce_csrf_checks = checked
    path = reverse("knowledge:upload-documents", args=[acme.slug, handbook.pk])
    file = SimpleUploadedFile("notes.md", b"# Notes")
    answer = client.post(path, {"file": file}, headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (507, "no_space")
    assert not Document.objects.exists()


def test_a_page_knows_the_limit_before_it_sends(client, ann, acme, handbook, settings):
    """A server that refuses while the browser still sends is not heard."""
    settings.MAX_UPLOAD_BYTES = 7 << 20
    client.force_login(ann)
    for path in (reverse("knowledge:show-knowledge-base", args=[acme.slug, handbook.pk]), f"/{acme.slug}/"):
        page = client.get(path).content.decode()
        assert 'data-largest="7"' in page
        assert "larger than the 7 MB allowed here" in page
