"""House rules that a linter cannot know."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
APPS = ROOT / "apps"
EDGES = {"views", "api", "consumers", "tools", "routing"}
SCOPED = {"visible_to", "editable_by", "none"}
SOURCES = [path for path in APPS.rglob("*.py") if "migrations" not in path.parts]


def by_name(path):
    return path.relative_to(ROOT).as_posix()


def read(path):
    """Return the statements of a source, each node once."""
    return ast.walk(ast.parse(path.read_text()))


def test_a_module_fits_in_one_head():
    assert [by_name(path) for path in SOURCES if len(path.read_text().splitlines()) > 400] == []


def test_an_edge_reads_only_what_the_user_may_see():
    found = []
    for path in SOURCES:
        if not EDGES & {path.stem, *path.relative_to(APPS).parts}:
            continue
        for node in read(path):
            match node:
                case ast.Attribute(value=ast.Attribute(attr="objects"), attr=method) if method not in SCOPED:
                    found.append(f"{by_name(path)}:{node.lineno} uses .objects.{method}")
                case ast.Attribute(attr="_base_manager" | "_default_manager"):
                    found.append(f"{by_name(path)}:{node.lineno} goes round the doors")
    assert found == []


def test_raw_sql_stays_in_its_places():
    """SQL by hand belongs to retrieval, storage of chunks, whose turn it is, event rows and database checks."""
    allowed = (
        "apps/common/",
        "apps/knowledge/retrieval/",
        "apps/knowledge/services/fairness",
        "apps/workspaces/doors.py",
        "apps/knowledge/storage",
        "apps/conversations/rows",
        "apps/knowledge/migrations/",
    )
    assert [
        f"{by_name(path)}:{node.lineno} uses .{node.attr}"
        for path in SOURCES
        if not by_name(path).startswith(allowed)
        for node in read(path)
        if isinstance(node, ast.Attribute) and node.attr in {"cursor", "raw"}
    ] == []
