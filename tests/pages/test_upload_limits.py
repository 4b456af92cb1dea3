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
