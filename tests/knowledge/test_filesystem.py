"""The filesystem connector on real folders, with real links, pipes and broken files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from moonbox.errors import ConfigError
from moonbox.knowledge import Failed, Item, KnowledgeBase, KnowledgeError, Skipped, Total, Unchanged
from moonbox.knowledge.connectors import filesystem
from moonbox.knowledge.connectors.filesystem import Filesystem, Folder, Globs
from tests.faults.processes import settled_descriptors

from .pdfs import pdf


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


def put(root: Path, name: str, content: str | bytes = "text") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def scan(root: Path, known: dict[str, str] | None = None, **more: Any) -> list[Any]:
    return [one for one in Filesystem(path=root, **more).scan(known or {}) if not isinstance(one, Total)]


def names(scanned: list[Any]) -> list[str]:
    return [one.source_id for one in scanned if isinstance(one, Item)]


def test_documents_are_taken_in_order(root: Path) -> None:
    for name in (
        "b.md",
        "a/z.txt",
        "a/y/x.html",
        "c.pdf",
        "code.py",
        "id_rsa",
        ".env",
        ".git/x.md",
        "node_modules/x.md",
    ):
        put(root, name, pdf() if name.endswith("pdf") else "text")
    first, *scanned = Filesystem(path=root).scan({})
    assert first == Total(4)
    assert names(scanned) == ["a/y/x.html", "a/z.txt", "b.md", "c.pdf"]
    assert names(scan(root, include=("*.py", "a/"), exclude=("*.html",))) == ["a/z.txt", "code.py"]
    assert names(scan(root, hidden=True, include=("*.md",))) == [".git/x.md", "b.md"]


def test_an_item_tells_about_its_file(root: Path) -> None:
    path = put(root, "dir with space/ü.md", "---\nauthor: Ann\n---\n# Title\n")
    os.utime(path, ns=(0, 1_700_000_000_000_000_000))
    (item,) = scan(root)
    assert (item.source_id, item.title, item.author, item.body) == ("dir with space/ü.md", "Title", "Ann", "# Title\n")
    assert item.updated_at == "2023-11-14T22:13:20Z"
    assert item.source_url == path.as_uri()
    assert item.format == "markdown"
    (item,) = scan(root, url="https://x.org/{path}?a")
    assert item.source_url == "https://x.org/dir%20with%20space/%C3%BC.md?a"
    assert scan(root, {item.source_id: item.fingerprint}) == [Unchanged(item.source_id)]
    assert isinstance(scan(root, {item.source_id: "other"})[0], Item)


def test_files_without_title_are_named_after_themselves(root: Path) -> None:
    put(root, "x/notes.txt", "# not a heading here")
    (item,) = scan(root)
    assert (item.title, item.format) == ("notes.txt", "text")


def test_files_that_hold_no_text(root: Path) -> None:
    put(root, "binary.txt", b"\x00\x01\x02")
    put(root, "large.md", "x" * 101)
    put(root, "broken.pdf", b"%PDF-1.7 nothing more")
    put(root, "latin.txt", "käse".encode("latin-1"))
    put(root, "broken.md", "gut ü ".encode() + b"\xff\xfe\x80" + "ß end".encode())
    put(root, "nul.md", b"x" * 9000 + b"\0end")
    put(root, "empty.md", b"")
    found = {one.source_id: one for one in scan(root, max_file_size=100)}
    assert found["binary.txt"] == Skipped("binary.txt", "binary file")
    assert found["large.md"] == Skipped("large.md", "larger than 100 bytes")
    assert found["broken.pdf"] == Failed("broken.pdf", "the PDF is damaged: Stream has ended unexpectedly")
    assert found["latin.txt"].body == "käse"
    assert found["broken.md"].body.startswith("gut ü ")
    assert found["broken.md"].body.endswith("ß end")
    assert found["empty.md"].body == ""
    assert {one.source_id: one for one in scan(root)}["nul.md"].body == "x" * 9000 + "end"


def test_a_file_of_one_huge_line(root: Path, store: Path) -> None:
    put(root, "line.txt", "word" * 500_000)
    with KnowledgeBase(store, sources={"docs": Filesystem(path=root)}) as base:
        assert base.sync("docs").added == 1
        assert len(base.get("docs:line.txt").body) == 2_000_000


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    secret = put(tmp_path, "outside/secret.md", "secret")
    put(root, "real.md")
    (root / "inside.md").symlink_to("real.md")
    (root / "outside.md").symlink_to(secret)
    (root / "folder").symlink_to(secret.parent)
    (root / "broken.md").symlink_to("nowhere.md")
    why = "symbolic link (follow_symlinks is off)"
    assert scan(root)[:3] == [Skipped(name, why) for name in ("broken.md", "inside.md", "outside.md")]
    assert names(scan(root)) == ["real.md"]


def test_links_are_followed_only_to_files_inside(root: Path, tmp_path: Path) -> None:
    secret = put(tmp_path, "outside/secret.md", "secret")
    put(root, "a/real.md", "real")
    (root / "inside.md").symlink_to("a/real.md")
    (root / "chain.md").symlink_to("inside.md")
    (root / "absolute.md").symlink_to(root / "a" / "real.md")
    (root / "outside.md").symlink_to(secret)
    (root / "through.md").symlink_to("folder/secret.md")
    (root / "folder").symlink_to(secret.parent)
    (root / "dots.md").symlink_to("../outside/secret.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "sibling.md").symlink_to(Path(str(root) + "-other") / "x.md")
    put(tmp_path, "root-other/x.md", "secret")
    scanned = scan(root, follow_symlinks=True)
    assert names(scanned) == ["a/real.md", "absolute.md", "chain.md", "inside.md"]
    assert {one.body for one in scanned if isinstance(one, Item)} == {"real"}
    skipped = [one.source_id for one in scanned if isinstance(one, Skipped)]
    assert skipped == ["dots.md", "loop.md", "outside.md", "sibling.md", "through.md", "folder"]


def test_a_folder_exchanged_for_a_link_after_the_listing_is_not_followed(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "outside/doc.md", "secret")
    put(root, "sub/doc.md", "mine")
    put(root, "file.md", "mine")
    scanner = Filesystem(path=root).scan({})
    assert next(scanner) == Total(2)
    (root / "sub").rename(root / "was")
    (root / "sub").symlink_to(tmp_path / "outside")
    (root / "file.md").unlink()
    (root / "file.md").symlink_to(tmp_path / "outside" / "doc.md")
    first, second = scanner
    assert first == Failed("file.md", "cannot be read: Too many levels of symbolic links")
    assert second == Failed("sub/doc.md", "cannot be read: Not a directory")


def test_a_pipe_does_not_hang_the_scan(root: Path) -> None:
    put(root, "file.md")
    os.mkfifo(root / "pipe.md")
    assert names(scan(root)) == ["file.md"]
    with Folder(str(root)) as folder, pytest.raises(OSError, match="not a regular file any more"):
        folder.read("pipe.md", 100)


@pytest.mark.parametrize(("bound", "words"), [("MAX_FILES", "documents"), ("MAX_ENTRIES", "files")])
def test_a_listing_is_bounded(root: Path, store: Path, monkeypatch: pytest.MonkeyPatch, bound: str, words: str) -> None:
    for number in range(5):
        put(root, f"{number}.md")
    monkeypatch.setattr(filesystem, bound, 3)
    with KnowledgeBase(store, sources={"docs": Filesystem(path=root)}) as base:
        report = base.sync("docs")
    advice = "the rest was left out: choose fewer with include and exclude"
    assert (report.added, report.error) == (3, f"the folder has more than 3 {words}; {advice}")


def test_a_file_that_grows_meanwhile_is_bounded(root: Path) -> None:
    path = put(root, "file.md", "x" * 50)
    scanner = Filesystem(path=root, max_file_size=100).scan({})
    next(scanner)
    path.write_text("x" * 1000)
    assert list(scanner) == [Skipped("file.md", "larger than 100 bytes")]


def test_a_file_that_goes_meanwhile(root: Path) -> None:
    path = put(root, "file.md")
    scanner = Filesystem(path=root).scan({})
    next(scanner)
    path.unlink()
    assert list(scanner) == [Skipped("file.md", "removed during the scan")]


def test_names_that_are_not_utf8(root: Path, store: Path) -> None:
    os.close(os.open(os.fsencode(root) + b"/caf\xe9.md", os.O_CREAT | os.O_WRONLY))
    with KnowledgeBase(store, sources={"docs": Filesystem(path=root)}) as base:
        assert base.sync("docs").added == 1
        assert base.get("docs:caf\\xe9.md").source_url == root.as_uri() + "/caf%E9.md"
        assert base.sync("docs").unchanged == 1


def test_a_folder_that_is_gone_fails_the_scan_and_removes_nothing(root: Path, store: Path) -> None:
    put(root, "file.md", "some text")
    with KnowledgeBase(store, sources={"docs": Filesystem(path=root)}) as base:
        base.sync("docs")
        root.rename(root.with_name("elsewhere"))
        report = base.sync("docs")
        assert report.error == f"cannot read the folder {root}: No such file or directory"
        assert [hit.source_id for hit in base.search("text")] == ["file.md"]


def test_a_folder_that_cannot_be_listed_fails_the_scan(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "sub/file.md")
    original = os.open

    def refuse(path: Any, *args: Any, **more: Any) -> int:
        if path == "sub":
            raise PermissionError(13, "Permission denied")
        return original(path, *args, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(KnowledgeError, match=r"^cannot read sub: Permission denied$"):
        scan(root)


def test_no_descriptors_are_left_open(root: Path) -> None:
    for number in range(5):
        put(root, f"{number}/{number}/doc.md")
    before = settled_descriptors()
    scanner = Filesystem(path=root).scan({})
    next(scanner)
    next(scanner)
    scanner.close()  # type: ignore[attr-defined]  # it is a generator
    scan(root)
    assert settled_descriptors() == before


def test_pdfs_without_pypdf_are_skipped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "x.pdf", pdf())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    why = "PDF files need the package pypdf: pip install 'moonbox[pdf]'"
    assert scan(root) == [Skipped("x.pdf", why)]


def test_a_relative_path_is_relative_to_where_one_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(root, "a.md")
    monkeypatch.chdir(root.parent)
    path_as_text: Any = "root"
    (item,) = scan(path_as_text)
    assert item.source_url == path.as_uri()


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.md", ["a.md", "x/y/a.md"], ["a.mdx", "amd"]),
        ("docs/*.md", ["docs/a.md"], ["docs/x/a.md", "x/docs/a.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/x/y/a.md"], ["a.md"]),
        ("**/build/**", ["build/x", "a/build/x/y"], ["build", "rebuild/x"]),
        ("docs/", ["docs/a", "docs/x/a", "x/docs/a"], ["docs", "docsx/a"]),
        ("?.txt", ["a.txt", "d/b.txt"], ["ab.txt", "/.txt"]),
        ("[a-c].txt", ["a.txt"], ["d.txt"]),
        ("[!a-c].txt", ["d.txt"], ["a.txt"]),
        ("*.{md,txt}", ["a.md", "a.txt"], ["a.rst", "a.{md,txt}"]),
        ("a+b(1).md", ["a+b(1).md"], ["aab1.md"]),
        ("**", ["a", "a/b"], []),
        ("*", ["a", "a/b", "a\n/b\n"], []),
        ("{a,b}.{md,txt}", ["a.md", "b.txt"], ["c.md"]),
    ],
)
def test_what_a_glob_matches(glob: str, yes: list[str], no: list[str]) -> None:
    globs = Globs((glob,))
    assert [path for path in yes if not globs.chooses(path)] == []
    assert [path for path in no if globs.chooses(path)] == []


def test_exclusions_win_and_spare_whole_folders() -> None:
    globs = Globs(("**",), ("private/", "*.key", "a/b"))
    assert globs.chooses("public/x")
    assert not globs.chooses("private/x")
    assert not globs.chooses("public/x.key")
    assert not globs.descends("private")
    assert not globs.descends("a/b")
    assert globs.descends("a")
    assert not globs.chooses("line\nend/x.key")


@pytest.mark.parametrize("glob", ["", " ", "/etc/passwd", "[z-a]", "[a", "!keep", "#note", "{a,b}" * 5])
def test_invalid_globs(glob: str) -> None:
    with pytest.raises(ConfigError, match=r"^(invalid glob|a glob must be a path inside the source, not) "):
        Globs((glob,))
