"""What the pages must say: links that lead somewhere, and every setting, command, kind of error and limit."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import tomllib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import moonbox
from moonbox import errors
from moonbox.audit.records import CALL_STATUSES
from moonbox.codemode.definitions import FORMATS
from moonbox.limits import Limits
from moonbox.tools.hints import Hints

from .pages import DOCS, ROOT, RUN, all_pages, blocks, name

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


def made() -> dict[str, Any]:
    """The generated pages, by the generator itself."""
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location("docs_make", DOCS / "gen" / "make.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return {page: make() for page, make in module.PAGES.items()}
    finally:
        sys.path.remove(str(DOCS))


def test_the_generated_pages_are_up_to_date() -> None:
    for page, wanted in made().items():
        assert text(page) == wanted, f"docs/{page} is old: run python docs/gen/make.py"


INSTALL = re.compile(r"(?:pip install|uv add|npm install|npm i) ([^`\n]*)")
EXAMPLES = sorted(
    file for file in (ROOT / "examples").rglob("*") if file.suffix in {".py", ".mjs", ".js", ".html", ".md"}
)


@pytest.mark.parametrize("page", [pytest.param(page, id=name(page)) for page in (*all_pages(), *EXAMPLES)])
def test_install_lines_work_in_a_clone(page: Path) -> None:
    """moonbox is named by the clone's folder, with extras that exist, or by the tarball that the clone makes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for line in INSTALL.findall(page.read_text("utf-8")):
        words = line.replace("'", " ").split()
        assert [word for word in words if re.match(r"moonbox(\[|\W*$)", word)] == [], line
        named = {
            extra for word in words for extra in re.sub(r"^\.\[|\].*$", "", word).split(",") if word.startswith(".[")
        }
        assert named <= set(project["optional-dependencies"]), line
        if tarball := re.search(r"moonbox-([\d.]+)\.tgz", line):
            assert tarball[1] == moonbox.__version__


@pytest.mark.parametrize("page", [pytest.param(page, id=name(page)) for page in all_pages()])
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", found.read_text("utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]
            assert anchor[1:] in slugs, f"{target}{anchor}"


def test_no_bar_is_escaped_between_backticks() -> None:
    """The site shows the backslash: write <code>a&#124;b</code> in a table."""
    for page in all_pages():
        for line in FENCED.sub("", page.read_text("utf-8")).splitlines():
            assert not (line.startswith("|") and re.search(r"`[^`|]*\\\|[^`]*`", line)), f"{name(page)}: {line}"


LONGEST_OPENING = 12
INSTALL_ALONE = re.compile(r"(?:\$ [^\n]*pip install[^\n]*\n)+")
WITHOUT_EXAMPLE = {"CONTRIBUTING.md", "docs/changelog.md", "docs/mcp-conformance.md"}
NOT_RUN_AT_ONCE = {"docs/cluster.md", "docs/console.md", "docs/mcp.md", "docs/scale.md"}
"""They need a cluster, a server, other programs."""
OWN_PAGES = [
    page
    for page in all_pages()
    if name(page) not in WITHOUT_EXAMPLE and page.parent.name not in ("reference", "benchmarks")  # those are generated
]


@pytest.mark.parametrize("page", [pytest.param(page, id=name(page)) for page in OWN_PAGES])
def test_every_page_begins_with_a_short_example(page: Path) -> None:
    """Before its first section; test_blocks.py runs it. Only a line that installs something may come first."""
    source = page.read_text("utf-8")
    opening = next(block for block in blocks(page) if not INSTALL_ALONE.fullmatch(block.text))
    before = source.splitlines()[: opening.line]
    assert not any(line.startswith("## ") for line in before)
    assert opening.language in RUN
    assert len([line for line in opening.text.splitlines() if line.strip()]) <= LONGEST_OPENING
    assert opening.not_run is None or name(page) in NOT_RUN_AT_ONCE


def error_classes() -> list[str]:
    return [name for name, it in vars(errors).items() if isinstance(it, type) and issubclass(it, errors.MoonboxError)]


def codes() -> set[str]:
    """Every literal code="…" and Denied code in the source of the tools and the sandbox."""
    found: set[str] = set()
    for folder in ("tools", "sandbox"):
        for file in (ROOT / "src" / "moonbox" / folder).rglob("*.py"):
            found |= set(re.findall(r'code="(\w+)"', file.read_text("utf-8")))
    from moonbox.tools.results import _CODES, _STATUSES

    return found | {*_CODES.values(), *_STATUSES.values(), "tool_error", "invalid", "denied"}


@pytest.mark.parametrize(
    ("page", "form", "names"),
    [
        ("errors.md", "| `{}` |", errors.ERROR_KINDS),
        ("errors.md", "`{}`", [*error_classes(), *codes()]),
        ("limits.md", "`{}`", [*errors.LIMIT_NAMES, *(field.name for field in fields(Limits))]),
        ("tools.md", "| `{}` |", [*(hint.name for hint in fields(Hints)), "auto", "approve", "direct"]),
        ("code-mode.md", "`{}`", FORMATS),
        ("audit.md", "`{}`", CALL_STATUSES),
        ("concepts.md", "| `{}` |", inspect.signature(moonbox.Sandbox).parameters),
        ("reference/python.md", "\n### {}\n", set(moonbox.__all__) - {"__version__"}),
    ],
    ids=["kinds", "errors and codes", "limits", "hints and policies", "formats", "statuses", "options", "public names"],
)
def test_every_name_is_explained(page: str, form: str, names: Collection[str]) -> None:
    assert names
    assert [each for each in names if form.format(each) not in text(page)] == []


def test_statuses_of_the_http_api_are_explained() -> None:
    from moonbox.http.requests import CODE_STATUS, KIND_STATUS

    page = text("http.md")
    for code, status in {**CODE_STATUS, **KIND_STATUS}.items():
        row = next(
            (line for line in page.splitlines() if f"`{code}`" in line and line.startswith(f"| {status} ")), None
        )
        assert row is not None, f"{code} → {status}"


def test_every_public_name_is_mentioned() -> None:
    everything = "\n".join(page.read_text("utf-8") for page in all_pages())
    words = set(re.findall(r"\w+", everything))
    assert set(moonbox.__all__) - words == set()


def test_every_extra_is_explained() -> None:
    """In the table, or by the adapter of its name."""
    page = text("installation.md")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for extra in extras:
        adapter = ROOT / "src" / "moonbox" / "adapters" / f"{extra.replace('-', '_')}.py"
        assert f"| `{extra}` |" in page or adapter.is_file(), extra


def test_every_way_to_make_tools_is_mentioned() -> None:
    page = text("tools.md") + text("tool-scripts.md")
    for method in dir(moonbox.Toolbox):
        assert not method.startswith("from_") or method in page, method


def test_every_adapter_is_in_the_reference() -> None:
    page = text("reference/python.md")
    for module in sorted((ROOT / "src" / "moonbox" / "adapters").glob("*.py")):
        if module.stem not in ("__init__", "chat", "outcome"):  # what they hold is told where it is used
            assert f"\n## moonbox.adapters.{module.stem}\n" in page, module.stem


def test_the_architecture_names_files_that_exist() -> None:
    named = re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?|\w+\.py)`", text("architecture.md"))
    assert len(named) > 25
    assert [place for place in named if not (ROOT / "src" / "moonbox" / place).exists()] == []


def test_the_front_ends_of_the_cluster_example_can_be_reached() -> None:
    """Nothing here starts containers: what the files say of one another is compared."""
    from moonbox.config import Config
    from moonbox.config.sections import ServeSettings

    folder = ROOT / "examples" / "cluster"
    front = yaml.safe_load((folder / "compose.yaml").read_text("utf-8"))["services"]["front"]
    assert front["ports"] == [str(ServeSettings().port)]
    path = re.search(r"--config (\S+)", front["command"].rstrip('"'))
    assert path is not None
    assert f"COPY examples/cluster/moonbox.toml {path[1]}\n" in (folder / "Dockerfile").read_text("utf-8")
    config = Config.load(folder / "moonbox.toml", environ={"MOONBOX_TOKEN": "x" * 16})
    assert config.section("serve")["hosts"] == ["front", "localhost"]
    assert front["environment"]["MOONBOX_TRUST"] == "1", "nobody can be asked there"


def test_every_public_method_is_described() -> None:
    """A heading and its signature without a sentence after it is a docstring that is missing."""
    missing = re.findall(r"^#{3,4} (\S+)\n\n```text\n[^`]*```\n+(?=#|\Z)", text("reference/python.md"), re.MULTILINE)
    assert missing == []
