"""``manage.py ingest``: files in, one line each, and an exit code."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from apps.knowledge import services
from apps.knowledge.models import Document, KnowledgeBase
from apps.workspaces.models import Role
from apps.workspaces.services import set_membership
from tests.knowledge.files import docx, p


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs/deep").mkdir(parents=True)
    (tmp_path / "docs/a.md").write_text("# A\n\nAbout a.")
    (tmp_path / "docs/deep/手册.docx").write_bytes(docx(p("第一章 总则") + p("内容")))
    (tmp_path / "docs/.hidden.md").write_text("not this")
    return tmp_path / "docs"


def run(*arguments):
    out = io.StringIO()
    code = 0
    try:
        call_command("ingest", *map(str, arguments), "--json", stdout=out)
    except SystemExit as ended:
        code = ended.code
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_folder_goes_into_a_new_base(acme, ann, embedder, folder):
    code, lines = run(folder, "--kb", "Manuals", "--workspace", "acme")
    assert code == 0
    assert [line["path"] for line in lines] == [str(folder / "a.md"), str(folder / "deep/手册.docx")]
    for line in lines:
        document = Document.objects.get(pk=line["document_id"])
        assert (line["status"], line["error_code"], line["chunks"]) == ("indexed", "", 1)
        assert set(line) == {"path", "document_id", "status", "error_code", "chunks", "seconds"}
        assert (document.knowledge_base.name, document.uploaded_by) == ("Manuals", ann)
    assert run(folder, "--kb", "Manuals")[1][0]["document_id"] == lines[0]["document_id"]


def test_what_fails_has_its_code_and_the_rest_goes_on(acme, embedder, folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    (folder / "program.exe").write_bytes(b"MZ" + bytes(50))
    code, lines = run(folder, folder / "gone.md", "--kb", "Manuals")
    assert code == 1
    assert {line["path"].rpartition("/")[2]: (line["status"], line["error_code"]) for line in lines} == {
        "a.md": ("indexed", ""),
        "broken.pdf": ("error_parsing", "broken_file"),
        "手册.docx": ("indexed", ""),
        "picture.png": ("error_parsing", "broken_file"),
        "program.exe": ("refused", "unsupported_file_type"),
        "gone.md": ("refused", "unreadable_path"),
    }


def test_it_acts_as_a_person_through_the_doors(acme, bea, handbook, folder, embedder):
    with pytest.raises(CommandError):
        run(folder, "--kb", "Handbook", "--as", "bea@example.com")
    assert not Document.objects.exists()
    set_membership(workspace=acme, user=bea, role=Role.MEMBER)
    services.grant(knowledge_base=handbook, user=bea, level="manage", actor=handbook.created_by)
    assert run(folder, "--kb", "Handbook", "--as", "bea@example.com")[0] == 0


def test_unknown_chunkers_and_empty_folders_are_said(acme, tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match="no file"):
        run(tmp_path / "empty", "--kb", "x")
    with pytest.raises(CommandError, match="chunker"):
        run(folder, "--kb", "x", "--chunker", "none")
    assert not KnowledgeBase.objects.exists()
