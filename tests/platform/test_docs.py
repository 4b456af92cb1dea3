"""Documentation that cannot lie: what it names exists."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import get_commands

from apps.common.management.commands import document_errors
from knowsphere import environment

ROOT = environment.CHECKOUT
APPS = sorted(path.parent for path in ROOT.glob("apps/*/apps.py"))
GUIDE = ROOT / "apps" / "knowledge" / "sample"
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("apps/*/README.md"))]
GUIDE_PAGES = sorted(GUIDE.glob("*/*.md"))
OF_COMPOSE = {"POSTGRES_PASSWORD"}
OF_POSTGRESQL = {"pg_dump", "get_server"}
READERS = {
    "text": 1,
    "choice": 2,
    "flag": None,
    "whole": 1,
    "words": None,
    "networks": 1,
    "url": 1,
    "database": None,
    "folder": None,
    "storage": None,
    "host_ports": None,
}


def by_name(path):
    return path.relative_to(ROOT).as_posix()


def ticked(text):
    """Return what stands in single backticks, outside code blocks."""
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    return re.findall(r"`([^`\n]+)`", prose)


def blocks(text):
    return re.findall(r"(?ms)^```(\w*)\n(.*?)^```", text)


def variables():
    """Every variable that the code reads, with its defaults where they are literals."""
    found: dict[str, set[object]] = {}
    for path in (ROOT / "knowsphere").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=reader) | ast.Name(id=reader), args=[ast.Constant(str(name)), *_]
                ):
                    if reader not in READERS or not name.isupper():
                        continue
                    at = READERS[reader]
                    default = node.args[at] if at and len(node.args) > at else None
                    found.setdefault(name, set())
                    if isinstance(default, ast.Constant):
                        found[name].add(default.value)
    return found


VARIABLES = variables()


@pytest.fixture(scope="module")
def sources():
    """Everything that is not documentation, as one text."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    wanted = {".py", ".html", ".yaml", ".toml", ".txt", "", ".js"}
    return "\n".join(
        (ROOT / name).read_text(errors="replace")
        for name in listed
        if Path(name).suffix in wanted and "test_docs" not in name and (ROOT / name).is_file()
    )  # fmt: skip


def test_every_variable_is_documented_and_no_other():
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.+?) \|", (ROOT / "docs/environment.md").read_text())
    assert {name for name, _ in rows} == set(VARIABLES)
    for name, said in rows:
        for default in VARIABLES[name] - {"", None}:
            if not (name == "EMAIL_URL" and default == "consolemail://"):
                assert f"`{default}`" in said or name == "HOST", f"{name}: {said}, in the code {default}"


def test_every_error_is_documented():
    assert (ROOT / "docs/errors.md").read_text() == document_errors.page(), "run manage.py document_errors"


def test_every_error_says_something_of_its_own():
    plain = [
        e.code for e in document_errors.classes() if e.user_message == document_errors.KnowSphereError.user_message
    ]
    allowed = {"error", "model_error", "document_failed"}  # bases of others, never raised themselves
    assert set(plain) <= allowed | {"internal_error"}


@pytest.mark.parametrize("app", APPS, ids=by_name)
def test_every_app_says_what_it_is(app):
    text = (app / "README.md").read_text()
    assert text.lower().startswith(f"# {app.name}\n")
    for name in re.findall(r"`([\w/]+\.(?:py|md|html))`", text):
        assert any(app.rglob(name)) or (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, *GUIDE_PAGES], ids=by_name)
def test_paths_exist(page):
    roots = ("apps/", "docs/", "knowsphere/", "tests/", "templates/", "static/", "benchmarks/", "locale/")
    for word in ticked(page.read_text()):
        if word.startswith(roots) and not re.search(r"[A-Z]{3}|[{*…]", word):
            assert (ROOT / word).exists() or word == "locale/", word


@pytest.mark.parametrize("page", [*PAGES, *GUIDE_PAGES], ids=by_name)
def test_commands_exist(page):
    text = page.read_text()
    targets = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())
    for command in re.findall(
        r"(?:`|^|\s)make ([a-z]+)(?=[`\s])", "\n".join([*ticked(text), *(b for _, b in blocks(text))])
    ):
        assert command in targets, command
    for command in re.findall(r"manage\.py ([a-z_]+)", text):
        assert command in get_commands(), command


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_names_occur_in_the_code(page, sources):
    """Functions, classes, settings and variables: snake_case, CamelCase and CAPITALS."""
    if page.name == "errors.md":
        return
    for word in ticked(page.read_text()):
        if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+|([A-Z][a-z]+){2,}|[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", word):
            plain = word.removesuffix("_FILE")
            assert re.search(rf"\b{re.escape(plain)}\b", sources) or word in OF_POSTGRESQL, word


@pytest.mark.parametrize("page", GUIDE_PAGES, ids=by_name)
def test_the_guide_names_only_what_is_there(page):
    codes = {error.code for error in document_errors.classes()}
    states = set(re.findall(r'"(\w+)"', (ROOT / "apps/knowledge/models/documents.py").read_text()))
    for word in ticked(page.read_text()):
        name = re.split(r"[= ]", word)[0]
        if re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", name):
            assert name.removesuffix("_FILE") in VARIABLES.keys() | OF_COMPOSE, name
        elif re.fullmatch(r"[a-z]+(_[a-z]+)+", name):
            assert name in codes | states, name


def test_the_guide_is_the_same_in_both_languages():
    english, chinese = (sorted(path.name for path in (GUIDE / language).glob("*.md")) for language in ("en", "zh"))
    assert english == chinese

    def names(page):
        return sorted(word for word in ticked(page.read_text()) if re.fullmatch(r"[\w./:=-]+", word, re.ASCII))

    for name in english:
        assert names(GUIDE / "en" / name) == names(GUIDE / "zh" / name), name
        headings = [len(re.findall(r"(?m)^#", (GUIDE / language / name).read_text())) for language in ("en", "zh")]
        assert headings[0] == headings[1], name


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_python_in_documentation_compiles(page):
    for language, code in blocks(page.read_text()):
        if language == "python":
            compile(code, str(page), "exec")


def test_the_directory_lists_every_page():
    directory = (ROOT / "docs/README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        if name != "README.md" and not name.startswith("decisions/"):
            assert f"({name})" in directory, name


def test_pages_that_the_code_names_exist():
    code = [
        *ROOT.glob("apps/**/*.py"),
        *ROOT.glob("knowsphere/*.py"),
        *ROOT.glob("benchmarks/*.py"),
        ROOT / "Dockerfile",
    ]
    for path in code:
        for name in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text()):
            assert (ROOT / name).exists(), f"{by_name(path)} names {name}"
