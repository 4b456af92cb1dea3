"""House rules that a linter cannot know."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
APPS = ROOT / "apps"
EDGES = {"views", "api", "consumers", "tools", "routing"}
SCOPED = {"visible_to", "editable_by", "none"}
SOURCES = [path for path in APPS.rglob("*.py") if "migrations" not in path.parts]


def by_name(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=by_name)
def test_a_module_fits_in_one_head(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", SOURCES, ids=by_name)
def test_an_edge_reads_only_what_the_user_may_see(path):
    if not EDGES & {path.stem, *path.relative_to(APPS).parts}:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="objects"), attr=method):
                assert method in SCOPED, f"{path}:{node.lineno} uses .objects.{method}"
            case ast.Attribute(attr="_base_manager" | "_default_manager"):
                pytest.fail(f"{path}:{node.lineno} goes round the doors")


@pytest.mark.parametrize("path", SOURCES, ids=by_name)
def test_raw_sql_stays_in_its_places(path):
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
    if by_name(path).startswith(allowed):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in {"cursor", "raw"}:
            pytest.fail(f"{by_name(path)}:{node.lineno} uses .{node.attr}")
