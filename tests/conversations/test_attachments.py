"""Files that come with a question: read by the parsers, given to the turns of their branch, gone with it."""

import json
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from apps.conversations import erasing
from apps.conversations.models import Attachment
from apps.conversations.services import attaching

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00"
    b"\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xdc\xccY\xe7\x00\x00\x00\x00IEND\xaeB`\x82"
)


@pytest.fixture
def upload(client, acme, ann):
    def upload(user=ann, name="notes.md", content=b"# Notes\n\nTen days."):
        client.force_login(user)
        there = reverse("conversations:upload-attachment", args=["acme"])
        return client.post(there, {"file": SimpleUploadedFile(name, content)}, HTTP_ACCEPT="application/json")

    return upload


def test_a_document_is_read_at_once_and_its_bytes_are_kept(client, upload, ann, mal, bea):
    answer = upload(name="../a\\b/notes.md")
    assert answer.status_code == 201
    found = json.loads(answer.content)
    assert (found["name"], found["kind"], found["characters"]) == ("notes.md", "document", 18)
    row = Attachment.objects.get(pk=found["id"])
    assert (row.text, row.file.name) == ("# Notes\n\nTen days.", f"attachments/{row.pk}")
    there = reverse("conversations:download-attachment", args=["acme", row.pk])
    sent = client.get(there)
    assert sent["Content-Disposition"] == 'attachment; filename="notes.md"'
    assert sent["Content-Security-Policy"].startswith("sandbox")
    for other in (mal, bea):
        client.force_login(other)
        assert client.get(there).status_code == 404


def test_an_image_without_words_is_kept_for_a_model_that_sees(upload):
    found = json.loads(upload(name="dot.png", content=PNG).content)
    assert found["kind"] == "image"


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("empty.txt", b"", 422, "empty_file"),
        ("blank.txt", b" \n ", 422, "empty_file"),
        ("x.exe", b"MZ\x90\x00" + b"\x00" * 64, 415, "unsupported_file_type"),
        ("broken.pdf", b"%PDF-1.7\nnothing", 422, "broken_file"),
    ],
)
def test_what_cannot_be_read_is_refused_and_leaves_nothing(client, upload, name, content, status, code):
    answer = upload(name=name, content=content)
    assert json.loads(answer.content)["code"] == code
    assert not Attachment.objects.exists()


def test_limits(upload, monkeypatch):
    monkeypatch.setattr(attaching, "LARGEST_BYTES", 10)
    assert json.loads(upload().content)["code"] == "attachment_too_large"
    monkeypatch.setattr(attaching, "LARGEST_BYTES", 1000)
    monkeypatch.setattr(attaching, "LONGEST", 10)
    assert json.loads(upload().content)["code"] == "attachment_too_long"
    monkeypatch.setattr(attaching, "LONGEST", 1000)
    monkeypatch.setattr(attaching, "WAITING", 1)
    assert upload().status_code == 201
    assert json.loads(upload().content)["code"] == "too_many_attachments"


def test_a_file_is_taken_back_until_something_was_asked_about_it(client, upload, acme, ann):
    from apps.conversations.models import Conversation

    row = Attachment.objects.get(pk=json.loads(upload().content)["id"])
    there = reverse("conversations:remove-attachment", args=["acme", row.pk])
    Attachment.objects.update(conversation=Conversation.objects.create(workspace=acme, owner=ann))
    assert client.post(there).status_code == 404
    Attachment.objects.update(conversation=None)
    assert client.post(there).status_code == 204
    assert not Attachment.objects.exists()
    assert not default_storage.exists(row.file.name)


def test_files_go_with_their_conversation_and_those_of_no_question_after_a_day(upload, acme, ann):
    from apps.conversations.models import Conversation

    talk = Conversation.objects.create(workspace=acme, owner=ann, deleted_at=timezone.now() - timedelta(hours=1))
    ids = [json.loads(upload(name=f"{n}.md").content)["id"] for n in range(3)]
    Attachment.objects.filter(pk=ids[0]).update(conversation=talk)
    Attachment.objects.filter(pk=ids[1]).update(created_at=timezone.now() - timedelta(hours=25))
    keys = [Attachment.objects.get(pk=pk).file.name for pk in ids]
    assert erasing._lapsed() == [talk.pk]
    erasing._erase(talk.pk)
    erasing.erase_waiting()
    assert [str(row.pk) for row in Attachment.objects.all()] == [ids[2]]
    assert [default_storage.exists(key) for key in keys] == [False, False, True]


def test_a_marker_opens_the_file_where_it_was_read_and_for_its_owner_alone(client, upload, acme, ann, bea):
    from apps.conversations.models import Citation, Conversation
    from tests.conversations.test_keeping import add_turn

    text = "# Notes\n\nFirst part.\n\nTen days of leave.\n\nLast part."
    row = Attachment.objects.get(pk=json.loads(upload(content=text.encode()).content)["id"])
    talk = Conversation.objects.create(workspace=acme, owner=ann)
    Attachment.objects.update(conversation=talk)
    turn = add_turn(talk, "How many?", "Ten days.[[c1]]", options={"attachments": [str(row.pk)]})
    Citation.objects.create(
        message=turn.messages.get(role="assistant"), n=1, kind="attachment", document_id=row.pk, document=row.name,
        text="Ten days of leave.", start=text.index("Ten"), end=text.index("Ten") + 18, cited=True,
    )  # fmt: skip
    there = reverse("conversations:show-source", args=["acme", turn.pk, 1])
    page = client.get(there).content.decode()
    assert "<mark>Ten days of leave.</mark>" in page
    assert "First part." in page
    exported = client.get(reverse("conversations:export-conversation", args=["acme", talk.pk])).content.decode()
    assert "notes.md: “Ten days of leave.”" in exported
    client.force_login(bea)
    assert client.get(there).status_code == 404


def test_who_waits_for_files_of_others_is_told_in_time(upload, monkeypatch):
    from apps.knowledge.sandbox import reader

    monkeypatch.setattr(attaching, "WAIT_S", 0.05)
    with reader._channel.lock:  # another thread reads a file
        answer = upload()
    assert (answer.status_code, answer.json()["code"], answer.json()["retryable"]) == (503, "attachment_waited", True)
    assert not Attachment.objects.exists()
    assert upload().status_code == 201


def test_a_store_that_does_not_answer_is_not_a_file_that_is_gone(upload, monkeypatch):
    from apps.conversations import attachment_errors, attachments
    from apps.knowledge.errors import StorageFailed

    upload()
    key = Attachment.objects.get().file.name
    with monkeypatch.context() as patch:
        patch.setattr(default_storage, "open", lambda *args: (_ for _ in ()).throw(OSError("connection refused")))
        with pytest.raises(StorageFailed):
            attachments._content(key)
    default_storage.delete(key)
    with pytest.raises(attachment_errors.AttachmentGone):
        attachments._content(key)
