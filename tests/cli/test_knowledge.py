"""`moonbox sync`, `search`, `get`, `sources` and `stats`, as a person calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from moonbox.cli.app import app
from moonbox.knowledge import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from .terminal import Terminal

CONFIG = """
[knowledge.sources.handbook]
connector = "filesystem"
path = "docs"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "setup.md").write_text(
        "---\nauthor: Ann\n---\n# Setting up\n\nInstall the \x1b[31mserver first.\n"
    )
    (tmp_path / "docs" / "use.md").write_text("# Daily use\n\nThe server runs.\n")
    (tmp_path / "moonbox.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_sync_tells_what_changed(project: Path) -> None:
    first = call("sync")
    assert first.exit_code == 0
    assert first.stdout.startswith("handbook: 2 documents (2 added) in ")
    (project / "docs" / "use.md").unlink()
    (project / "docs" / "new.md").write_text("new")
    (project / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4")
    (project / "docs" / "binary.txt").write_bytes(b"\0")
    second = call("sync", "handbook")
    told = "handbook: 2 documents (1 added, 1 removed, 1 skipped, 1 could not be read) in "
    assert second.stdout.startswith(told)
    assert second.stderr.splitlines() == [
        "  1 skipped: binary file",
        "  broken.pdf: the PDF is damaged: Stream has ended unexpectedly",
    ]
    assert call("sync").stdout.startswith("handbook: 2 documents (1 skipped, 1 could not be read) in ")
    (report,) = json.loads(call("sync", "--json").stdout)
    assert (report["unchanged"], report["ok"], report["problem_count"]) == (2, True, 1)


def test_sync_that_fails(project: Path) -> None:
    call("sync")
    (project / "docs").rename(project / "gone")
    result = call("sync")
    assert result.exit_code == 1
    assert "  the scan failed, and nothing was removed: cannot read the folder " in result.stderr
    assert result.stdout.startswith("handbook: 2 documents (failed) in ")
    unknown = call("sync", "handbok")
    assert (unknown.exit_code, unknown.stderr) == (2, "error: unknown source 'handbok'; did you mean 'handbook'?\n")


def test_prune_removes_what_is_not_configured(project: Path) -> None:
    call("sync")
    (project / "moonbox.toml").write_text(CONFIG.replace("handbook", "manual"))
    assert "not configured" in call("sources").stdout
    result = call("sync", "--prune")
    assert result.stderr == "handbook: removed with 2 documents\n"
    assert "handbook" not in call("sources").stdout


def test_search_shows_titles_and_snippets(project: Path) -> None:
    call("sync")
    result = call("search", "install", "server")
    assert result.exit_code == 0
    title, where, snippet, *_ = result.stdout.splitlines()
    assert title == "Setting up"
    assert where.strip().startswith("handbook:setup.md · 20")
    assert snippet.strip() == "# Setting up Install the server first."
    rows = json.loads(call("search", "server", "--json", "--limit", "1", "--source", "handbook").stdout)
    assert len(rows) == 1
    assert set(rows[0]) == {"id", "score", "source", "source_id", "title", "snippet", "source_url", "updated_at"}
    assert "**server**" in rows[0]["snippet"]
    assert call("search", "nothing-like-this").stdout == "nothing found\n"
    assert call("search", '"', "AND (").stdout == "nothing found\n"


def test_search_says_what_is_missing(project: Path) -> None:
    nothing = call("search", "server")
    assert nothing.exit_code == 1
    assert nothing.stderr.startswith("error: there is no knowledge base at ")
    call("sync")
    semantic = call("search", "server", "--mode", "semantic")
    assert semantic.exit_code == 2
    assert semantic.stderr.startswith("error: semantic search needs an embedder")
    hybrid = call("search", "server", "--mode", "hybrid")
    assert hybrid.exit_code == 0
    assert hybrid.stderr.startswith("note: keyword search only: semantic search needs an embedder")
    wrong = call("search", "server", "--mode", "fuzzy")
    assert "Invalid value for '--mode' / '-m': " in wrong.stderr


def test_get_shows_a_document(project: Path) -> None:
    call("sync")
    result = call("get", "handbook:setup.md")
    assert result.stdout.startswith("Setting up\nhandbook:setup.md\nfile://")
    assert " · Ann · " in result.stdout
    assert result.stdout.endswith("# Setting up\n\nInstall the server first.\n\n")
    assert json.loads(call("get", "handbook:setup.md", "--json").stdout)["source_id"] == "setup.md"
    missing = call("get", "77")
    assert (missing.exit_code, missing.stderr) == (1, "error: unknown document '77'; search returns valid ids\n")


def test_sources_before_and_after(project: Path) -> None:
    before = call("sources")
    assert "never synchronised; run: moonbox sync handbook" in before.stdout
    assert not (project / ".moonbox").exists()
    call("sync")
    (info,) = json.loads(call("sources", "--json").stdout)
    assert (info["documents"], info["healthy"], info["notes"]) == (2, True, [])
    assert "healthy" in call("sources").stdout


def test_stats(project: Path) -> None:
    call("sync")
    lines = dict(line.split(maxsplit=1) for line in call("stats").stdout.splitlines())
    assert (lines["documents"], lines["embedder"]) == ("2", "none")
    assert json.loads(call("stats", "--json").stdout)["chunks"] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            None,
            "error: no moonbox.toml in this folder or above; create one with `moonbox init`, or use --config\n",
        ),
        ("[knowledge", "moonbox.toml is not valid TOML: "),
        ("[knowledge]\npaht = 1", "error: moonbox.toml: [knowledge] unknown key 'paht'; did you mean 'path'?\n"),
    ],
)
def test_configurations_that_are_wrong(project: Path, content: str | None, message: str) -> None:
    if content is None:
        (project / "moonbox.toml").unlink()
    else:
        (project / "moonbox.toml").write_text(content)
    result = call("sync")
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_configuration_of_a_folder_above_holds(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "docs" / "use.md").unlink()
    monkeypatch.chdir(project / "docs")
    assert call("sync").stdout.startswith("handbook: 1 document (1 added) in ")
    assert "Setting up" in call("search", "server").stdout


def test_searching_before_anything_was_brought_in(project: Path) -> None:
    call("sync", "--prune")
    assert call("search", "absent").stdout == "nothing found\n"
    for file in (project / "docs").iterdir():
        file.unlink()
    call("sync")
    found = call("search", "server")
    assert (found.stdout, found.stderr) == ("nothing found\n", "note: the source 'handbook' has no documents\n")


def test_another_configuration_may_be_named(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "other.toml").write_text('[knowledge]\npath = "x.db"')
    assert call("sync", "--config", "sub/other.toml").stdout.startswith("no sources are configured; ")
    assert (project / "sub" / "x.db").exists()


def test_an_interrupt_is_told_in_words(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: KnowledgeBase, *_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(KnowledgeBase, "sync", interrupted)
    result = call("sync")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; the next sync continues from here\n"


def test_a_bar_with_counts_and_rate_on_a_terminal(project: Path, terminal: Callable[..., Terminal]) -> None:
    for number in range(300):
        (project / "docs" / f"{number}.md").write_text(f"text {number}")
    screen = terminal("sync")
    assert screen.ended() == 0
    assert "handbook: 302 documents (302 added) in " in screen.text
    for part in ("handbook: done", "/302", "/s"):
        assert part in screen.text


def test_the_phases_all_have_words() -> None:
    from moonbox.cli.knowledge import PHASES

    assert set(PHASES) == {"scan", "remove", "embed", "done"}


def test_words_to_leave_out_are_no_options(project: Path) -> None:
    call("sync")
    assert "Setting up" in call("search", "install", "-sources", "-n", "3").stdout
    assert call("search", "install", "-server").stdout == "nothing found\n"
    only = call("search", "-server")
    assert (only.exit_code, only.stderr) == (2, "error: name words to find, too, beside the words to leave out\n")
