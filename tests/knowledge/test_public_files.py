"""Difficult files that others published: each gives its text, or the word for why not."""

import csv
import io
import re
import time
import unicodedata

import psutil
import pytest
from django.conf import settings

from apps.knowledge.errors import DocumentFailure
from apps.knowledge.extraction import extract
from apps.knowledge.parsers import PARSERS
from apps.knowledge.parsers.sniffing import sniff_file

pytestmark = pytest.mark.django_db

# What does not meet its check, and why. A file that does may not stand here.
EXCEPTIONS = {
    "xlsx_04_inflated.xlsx": "what is looked for is in a hidden sheet, and those are left out",
}


def plain(text):
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", unicodedata.normalize("NFKC", text))
    return re.sub(r"[\\*_`|#]|<[^>]+>|\s+", "", text)


def read(data, name, password=""):
    file = io.BytesIO(data)
    return extract(file, sniff_file(file, name), password=password)


def meets(row, path):
    data = path.read_bytes()
    expected = plain(row["expected_substring"])
    try:
        found, code = plain(read(data, path.name).markdown), ""
    except DocumentFailure as failure:
        found, code = "", failure.code
    match row["check"]:
        case "text" | "ocr":
            return bool(found) and expected in found
        case "text_with_password":
            opened = read(data, path.name, row["password"])
            return code == "password_required" and expected in plain(opened.markdown)
        case "asr":
            return code == "needs_speech_model"
        case "clear_error":
            return bool(code)
        case "empty_ok":
            return code in ("empty_file", "needs_speech_model")
    return bool(found) or bool(code)


def test_each_file_gives_its_text_or_says_why_not(data_folder):
    wrong = set()
    for row in csv.DictReader((data_folder / "documents/index.tsv").open(), delimiter="\t"):
        path = data_folder / "documents" / row["path"]
        if not meets(row, path):
            wrong.add(path.name)
    assert sorted(wrong) == sorted(EXCEPTIONS)


def test_the_table_of_formats_is_the_one_in_the_code():
    rows = [
        line.split("|")
        for line in (settings.BASE_DIR / "docs/formats.md").read_text().splitlines()
        if line.startswith("|")
    ]
    named = [kind for row in rows if len(row) == 6 for kind in re.findall(r"`([^`]+)`", row[2])]
    assert sorted(named) == sorted(PARSERS)


def test_bombs_end_with_a_word_and_the_next_file_is_read(data_folder):
    ours = psutil.Process()
    before, sockets = ours.memory_info().rss, len(ours.net_connections())
    for path in sorted((data_folder / "bombs/files").iterdir()):
        began = time.monotonic()
        try:
            found = read(path.read_bytes(), path.name).markdown
        except DocumentFailure as failure:
            found = failure.message
        assert found, path.name
        assert "root:" not in found, path.name
        assert time.monotonic() - began < 60, path.name
        assert read(b"still here", "a.txt").markdown == "still here"
    assert ours.memory_info().rss - before < 64 << 20
    assert len(ours.net_connections()) <= sockets
