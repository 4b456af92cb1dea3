"""The Chinese texts: whole, current, compiled, and in the words that were agreed. English is the source itself."""

import os
import re
import shutil
import subprocess
import sys

import polib
import pytest
from django.conf import settings
from django.utils import translation

ROOT = settings.BASE_DIR
FOLDER = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES"
PLACES = re.compile(r"%\(\w+\)[sd]|%%s|%s|%d")
NOT_SAID = re.compile(r"您|！|切片|幻觉|抱歉|哦|啦|chunk", re.IGNORECASE)


@pytest.fixture(scope="module")
def catalogue():
    return polib.pofile(str(FOLDER / "django.po"))


def texts(entry):
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def key(entry):
    return (entry.msgctxt, entry.msgid, entry.msgid_plural)


def test_every_text_is_translated_and_none_is_a_guess(catalogue):
    assert [entry.msgid for entry in catalogue.untranslated_entries()] == []
    assert [entry.msgid for entry in catalogue.fuzzy_entries()] == []
    assert catalogue.obsolete_entries() == []
    assert not catalogue.metadata_is_fuzzy


def test_values_stand_in_both(catalogue):
    for entry in catalogue:
        wanted = set(PLACES.findall(entry.msgid_plural or entry.msgid))
        for text in texts(entry):
            assert set(PLACES.findall(text)) == wanted, entry.msgid


def test_wording(catalogue):
    wrong = [text for entry in catalogue for text in texts(entry) if NOT_SAID.search(PLACES.sub("", text))]
    assert wrong == []


def test_the_compiled_file_is_this_one(catalogue):
    compiled = polib.mofile(str(FOLDER / "django.mo"))
    assert {key(entry): texts(entry) for entry in compiled} == {key(entry): texts(entry) for entry in catalogue}


@pytest.mark.skipif(not shutil.which("xgettext"), reason="gettext is not installed")
def test_the_catalogue_is_current(catalogue, tmp_path):
    """Collect again from a copy of the sources: the same texts, no more and no less."""
    for folder in ("apps", "knowsphere", "templates"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "locale").mkdir()
    collect = [sys.executable, "-m", "django", "makemessages", "-l", "zh_Hans", "--no-location", "--no-wrap"]
    alone = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(collect, cwd=tmp_path, env=alone, check=True, capture_output=True, timeout=120)
    collected = polib.pofile(str(tmp_path / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"))
    assert {key(entry) for entry in collected} == {key(entry) for entry in catalogue}


def test_pages_speak_it(client, db):
    page = client.get("/accounts/login/", headers={"accept-language": "zh-CN,zh;q=0.9"}).content.decode()
    assert '<html lang="zh-hans"' in re.sub(r"\s+", " ", page)
    assert "向团队的文档提问" in page
    client.post("/i18n/setlang/", {"language": "en"})
    assert "Ask your team’s documents" in client.get("/accounts/login/").content.decode()


def test_errors_of_programs_keep_their_code_in_both_languages():
    from apps.common.errors import NotFound

    with translation.override("zh-hans"):
        error = NotFound().as_dict()
    assert error["code"] == "not_found"
    assert error["message"] == "这里没有内容，或内容没有与你共享。"


def test_texts_are_marked_by_names_that_the_collector_knows():
    """Under another name than ``_`` a text is never collected, and stays English without anybody's being told."""
    alias = re.compile(r"import \w*gettext\w* as (?!_$)\w+", re.MULTILINE)
    sources = [path for folder in ("apps", "knowsphere") for path in (settings.BASE_DIR / folder).rglob("*.py")]
    assert [str(path) for path in sources if alias.search(path.read_text())] == []
