"""What pages do with what people send: forms come back with their errors, acts lead on, Undo undoes."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.knowledge import services
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.questions import Pair
from apps.workspaces.models import User, Workspace


@pytest.fixture
def post(client, acme, ann):
    client.force_login(ann)

    def post(route, data=None, *, headers=None, **arguments):
        url = reverse(route, kwargs={"slug": acme.slug, **arguments})
        return client.post(url, data or {}, headers=headers)

    return post


@pytest.fixture
def upload(post, handbook):
    def upload(name="notes.md", content=b"# Notes\n\nThe vault opens at nine.", **headers):
        return post(
            "knowledge:upload-documents", {"file": SimpleUploadedFile(name, content)}, base_id=handbook.pk,
            headers=headers,
        )  # fmt: skip

    return upload


def test_a_base_is_created_and_opened(post, acme):
    response = post("knowledge:create-knowledge-base", {"name": "Plans", "restricted": "on"})
    base = KnowledgeBase.objects.get(name="Plans")
    assert base.restricted
    assert response.url.endswith(f"/knowledge-bases/{base.pk}/")


def test_a_taken_name_comes_back_with_the_form(post, handbook):
    response = post("knowledge:create-knowledge-base", {"name": handbook.name, "description": "Kept"})
    assert response.status_code == 422
    page = response.content.decode()
    assert "Kept" in page
    assert 'aria-invalid="true"' in page


def test_a_file_of_a_page_with_script_answers_with_its_row(upload):
    response = upload(accept="application/json")
    assert response.status_code == 201
    assert "notes.md" in response.json()["row"]


def test_a_file_of_a_page_without_script_leads_back(upload, client):
    assert client.get(upload().url).content.decode().count("notes.md") > 0


def test_a_file_that_cannot_be_read_is_refused_in_words(upload):
    response = upload("empty.md", b"", accept="application/json")
    assert response.status_code == 422
    assert response.json()["code"] == "empty_file"
    assert not Document.objects.exists()


def test_deleting_a_document_can_be_undone(upload, post, client, handbook):
    upload()
    document = Document.objects.get()
    page = client.get(post("knowledge:delete-document", document_id=document.pk).url).content.decode()
    assert "notes.md” was deleted" in page
    assert page.count("notes.md") == 1
    post("knowledge:restore-document", document_id=document.pk)
    assert Document.objects.visible_to(User.objects.get(email="ann@example.com")).count() == 1


def test_the_row_of_a_page_with_script_asks_for_undo(upload, post):
    upload()
    document = Document.objects.get()
    response = post("knowledge:delete-document", document_id=document.pk, headers={"HX-Request": "true"})
    assert reverse("knowledge:restore-document", args=["acme", document.pk]) in response["HX-Trigger"]


def test_sharing_needs_a_member_of_the_workspace(post, handbook, bea, mal):
    row = {"kind": "knowledgebase", "row_id": handbook.pk}
    assert post("workspaces:share", {"subject": f"user:{mal.pk}", "level": "read"}, **row).status_code == 422
    post("workspaces:share", {"subject": f"user:{bea.pk}", "level": "manage"}, **row)
    assert KnowledgeBase.objects.editable_by(bea).filter(pk=handbook.pk).exists()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")  # which only this client does
def test_the_original_is_a_download_and_never_a_page(upload, client):
    upload("报告 “终稿”.html", b"<html><body><script>alert(1)</script><p>Hello there.</p></body></html>")
    document = Document.objects.get()
    response = client.get(reverse("knowledge:download-original", args=["acme", document.pk]))
    assert b"".join(response).startswith(b"<html>")
    assert int(response["Content-Length"]) == document.size_bytes
    assert response["Content-Disposition"].startswith("attachment; filename*=utf-8''%E6%8A%A5")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Security-Policy"].startswith("sandbox")


def test_rows_that_changed_are_sent_and_those_that_are_gone_taken_out(upload, client, handbook):
    upload()
    document = Document.objects.get()
    gone = "00000000-0000-4000-8000-000000000000"
    url = reverse("knowledge:show-progress", args=["acme", handbook.pk])
    page = client.get(url, {"row": [f"{document.pk}~parsed~1~~0.00~0", gone, "nonsense"]}).content.decode()
    assert f'id="document-{document.pk}" hx-swap-oob="true"' in page
    assert f'<tr id="document-{gone}" hx-swap-oob="delete">' in page
    assert "load delay:1s" in page
    shown = re.search(r'name="row" value="(.+?)"', page).group(1)
    assert f"document-{document.pk}" not in client.get(url, {"row": shown}).content.decode()
    Document.objects.update(status="indexed")
    assert "load delay:1s" not in client.get(url).content.decode()


@pytest.mark.parametrize("name", ['<img src=x onerror="alert(1)">.md', "a\u202egnp.md", "'\"><script>.md"])
def test_names_are_shown_as_text(upload, client, handbook, name):
    upload(name)
    page = client.get(reverse("knowledge:show-knowledge-base", args=["acme", handbook.pk])).content.decode()
    assert "<img src=x" not in page
    assert "<script>.md" not in page
    assert "\u202e" not in page


def test_an_empty_question_comes_back(post):
    assert post("conversations:start-conversation", {"text": "  "}).status_code == 422


def test_home_leads_to_the_workspace_visited_last(client, ann, acme):
    from apps.workspaces.services import create_workspace

    create_workspace(name="Other", owner=ann)
    client.force_login(ann)
    assert client.get("/").url == "/acme/"
    client.get("/other/")
    assert client.get("/").url == "/other/"


def test_somebody_without_a_workspace_can_make_one(client, db):
    client.force_login(User.objects.create_user("new@example.com"))
    assert "You are in no workspace yet" in client.get("/").content.decode()
    assert client.post("/new/", {"name": "Fresh"}).url == "/fresh/"


class TestAccounts:
    """Sign-up and sign-in, as far as they are ours."""

    FORM = {"email": "new@example.com", "password1": "correct horse battery"}

    def test_signing_up_gives_a_workspace_of_ones_own(self, client, db):
        assert client.post("/accounts/signup/", self.FORM).status_code == 302
        assert Workspace.objects.visible_to(User.objects.get()).count() == 1

    @pytest.mark.parametrize("signup", ["closed", "invited"])
    def test_closed_is_closed(self, client, db, settings, signup):
        settings.SIGNUP = signup
        assert "Sign-up is closed" in client.get("/accounts/signup/").content.decode()
        client.post("/accounts/signup/", self.FORM)
        assert not User.objects.exists()
        assert "/accounts/signup/" not in client.get("/accounts/login/").content.decode()

    def test_guessing_is_locked_out_in_words(self, client, ann, settings):
        settings.AXES_FAILURE_LIMIT = 3
        form = {"login": ann.email, "password": "wrong wrong wrong"}
        pages = [client.post("/accounts/login/", form) for _ in range(3)]
        assert pages[-1].status_code == 429
        assert "Too many tries" in pages[-1].content.decode()

    def test_a_reset_link_works_once(self, client, ann, mailoutbox):
        client.post("/accounts/password/reset/", {"email": ann.email})
        link = next(word for word in mailoutbox[0].body.split() if word.startswith("http"))
        form = client.get(link, follow=True)
        password = "another horse battery"
        client.post(form.request["PATH_INFO"], {"password1": password, "password2": password})
        assert "This link does not work" in client.get(link, follow=True).content.decode()
        ann.refresh_from_db()
        assert ann.check_password(password)

    def test_an_unknown_address_gets_the_same_answer_and_no_mail(self, client, db, mailoutbox):
        response = client.post("/accounts/password/reset/", {"email": "nobody@example.com"})
        assert response.url == "/accounts/password/reset/done/"
        assert not mailoutbox


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", "/nothing/x/"])
def test_pages_for_everybody_have_a_strict_policy_and_no_inline_code(client, db, path):
    response = client.get(path)
    page = response.content.decode()
    assert "'unsafe-inline'" not in response["Content-Security-Policy"]
    assert " style=" not in page
    assert " onclick=" not in page
    assert "<style" not in page


CHINESE = "规章制度的条文。" * 130_000  # 3 MB, of which Django alone would take 2.5, and nine where % stands for a byte


def test_a_long_text_is_saved_and_comes_back_to_be_changed(post, client, acme, handbook):
    saved = post("knowledge:write-text", {"name": "Rules", "text": CHINESE}, base_id=handbook.pk)
    document = Document.objects.get(kind="text")
    assert saved.status_code == 302
    assert document.size_bytes == len(CHINESE.encode())
    page = client.get(reverse("knowledge:edit-text", args=[acme.slug, document.pk])).content.decode()
    assert CHINESE in page
    assert 'enctype="multipart/form-data"' in page
    assert 'data-most-mb="5"' in page


def test_what_was_typed_comes_back_with_the_reason(post, handbook, acme, ann):
    bare = {"name": "Empty", "text": " "}
    pairs = {"name": "FAQ", "question": ["How long is it?", "Why?"], "answer": ["Too long. " * 2_001, "Because."]}
    for route, fields, kept in (("text", bare, 'value="Empty"'), ("questions", pairs, ">Because.</textarea>")):
        answer = post(f"knowledge:write-{route}", fields, base_id=handbook.pk)
        page = answer.content.decode()
        assert answer.status_code == 422, route
        assert 'role="alert"' in page
        assert kept in page
        scripted = post(f"knowledge:write-{route}", fields, headers={"accept": "application/json"}, base_id=handbook.pk)
        assert scripted.status_code == 422
        assert scripted.json()["code"]
    assert not Document.objects.exists()
    text = services.add_text(knowledge_base=handbook, name="Rules", text="Be kind.", actor=ann)
    services.add_text(knowledge_base=handbook, name="Other", text="Be late.", actor=ann)
    faq = services.add_questions(knowledge_base=handbook, name="FAQ", pairs=[Pair("Why?", "So.")], actor=ann)
    for route, row, fields, status in (
        ("text", text, {"name": "Rules 2", "text": "Be late."}, 409),
        ("questions", faq, {"name": "FAQ 2", "question": "Why?", "answer": ""}, 422),
    ):
        answer = post(f"knowledge:edit-{route}", fields, document_id=row.pk)
        assert answer.status_code == status
        assert f'value="{fields["name"]}"' in answer.content.decode()


@pytest.mark.parametrize("checked", [True, False])  # the token's check reads the form before the view does
def test_a_form_beyond_all_limits_is_refused_with_a_code(client, post, handbook, acme, checked):
    client.get(f"/{acme.slug}/")  # the cookie with the token
    client.handler.enforce_csrf_checks = checked
    large, many = {"name": "Rules", "text": "x" * (5 << 20)}, {"question": ["?"] * 12_001}
    for fields, code in ((large, "request_too_large"), (many, "too_many_fields")):
        for headers in ({"accept": "application/json"}, {}):
            answer = post("knowledge:write-text", fields, headers=headers, base_id=handbook.pk)
            assert answer.status_code == 413
            assert code in answer.content.decode()
            assert ("json" in answer["Content-Type"]) == bool(headers)
    assert not Document.objects.exists()
