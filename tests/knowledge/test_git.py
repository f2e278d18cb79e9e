"""The git connector on real repositories, some of them hostile."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from moonbox.knowledge import Failed, Item, KnowledgeBase, KnowledgeError, Skipped, Total, Unchanged
from moonbox.knowledge.connectors import filesystem, git
from moonbox.knowledge.connectors.git import Git


class Repo:
    """A repository that a test fills."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main", *options, ".")

    def git(self, *arguments: str, **environment: str) -> str:
        variables = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", **environment}
        return subprocess.run(
            ["git", *arguments], cwd=self.path, env=variables, check=True, capture_output=True, text=True
        ).stdout

    def put(self, name: str, content: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, author: str = "Ann", date: str = "2024-01-01T00:00:00Z") -> str:
        self.git("add", "-A")
        who = {
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "C",
            "GIT_COMMITTER_EMAIL": "c",
        }
        self.git("commit", "-q", "--allow-empty", "-m", "x", **who, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        return self.git("rev-parse", "HEAD").strip()

    def sign(self) -> None:
        """Give the last commit a signature that somebody might want to verify."""
        head, _, message = self.git("cat-file", "commit", "HEAD").partition("\n\n")
        signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
        (self.path / ".git" / "signed").write_text(f"{head}\n{signature}\n\n{message}")
        self.git("update-ref", "HEAD", self.git("hash-object", "-t", "commit", "-w", ".git/signed").strip())


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


@pytest.fixture
def one_file(repo: Repo) -> Repo:
    repo.put("a.md", "text")
    repo.commit()
    return repo


def scan(repo: Repo, known: dict[str, str] | None = None, **more: Any) -> list[Any]:
    return [one for one in Git(path=repo.path, **more).scan(known or {}) if not isinstance(one, Total)]


def children() -> set[str]:
    """The processes that this one has started, by what the kernel says."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_tracked_files_with_the_last_change_to_each(repo: Repo) -> None:
    repo.put("a.md", "# One")
    repo.put("sub/ü b.md", "# Two")
    repo.put("code.py", "print()")
    repo.commit("Ann", "2024-01-01T00:00:00Z")
    repo.put("a.md", "# One changed")
    commit = repo.commit("Bob", "2024-02-01T12:00:00+02:00")
    repo.put("untracked.md", "not in the commit")
    repo.put("a.md", "not committed")
    skipped, first, second = scan(repo, url="https://x.org/{commit}/{path}")
    assert skipped == Skipped("code.py", "not in include: *.py")
    assert (first.source_id, first.body, first.author, first.updated_at) == (
        "a.md",
        "# One changed",
        "Bob",
        "2024-02-01T10:00:00Z",
    )
    assert (second.source_id, second.title, second.author, second.updated_at) == (
        "sub/ü b.md",
        "Two",
        "Ann",
        "2024-01-01T00:00:00Z",
    )
    assert second.source_url == f"https://x.org/{commit}/sub/%C3%BC%20b.md"
    assert first.fingerprint == repo.git("rev-parse", "HEAD:a.md").strip()
    assert [one.source_id for one in scan(repo, include=("*.py",)) if isinstance(one, Item)] == ["code.py"]


def test_only_changed_files_are_read_again(repo: Repo, store: Path) -> None:
    for number in range(5):
        repo.put(f"{number}.md", f"text {number}")
    repo.commit()
    with KnowledgeBase(store, sources={"repo": Git(path=repo.path)}) as base:
        assert base.sync("repo").added == 5
        repo.put("1.md", "text changed")
        (repo.path / "2.md").unlink()
        repo.commit()
        report = base.sync("repo")
        assert (report.added, report.updated, report.unchanged, report.removed) == (0, 1, 3, 1)
    known = {one.source_id: one.fingerprint for one in scan(repo)}
    assert all(isinstance(one, Unchanged) for one in scan(repo, known))


def test_renames_branches_and_merges(repo: Repo) -> None:
    repo.put("old.md", "text")
    repo.commit("Ann")
    repo.git("mv", "old.md", "new.md")
    repo.commit("Bob")
    repo.git("checkout", "-q", "-b", "other")
    repo.put("branch.md", "on a branch")
    repo.commit("Cleo")
    repo.git("checkout", "-q", "main")
    repo.commit("Dan")
    who = ("-c", "user.name=Eve", "-c", "user.email=e@e")
    repo.git(*who, "merge", "-q", "--no-ff", "-m", "merge", "other")
    assert {one.source_id: one.author for one in scan(repo)} == {"branch.md": "Cleo", "new.md": "Bob"}
    assert [one.source_id for one in scan(repo, ref="main~1")] == ["new.md"]
    assert [one.source_id for one in scan(repo, ref="other")] == ["branch.md", "new.md"]


def test_links_submodules_large_binary_and_lfs_files(repo: Repo) -> None:
    repo.put("real.md", "text")
    (repo.path / "link.md").symlink_to("/etc/passwd")
    repo.put("large.md", "x" * 200)
    repo.put("binary.txt", b"\0\1")
    repo.put("lfs.pdf", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    commit = repo.commit()
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit},module.md")
    repo.git("-c", "user.name=A", "-c", "user.email=a", "commit", "-q", "-m", "module")
    scanned = scan(repo, max_file_size=100)
    assert [one for one in scanned if isinstance(one, Skipped)] == [
        Skipped("large.md", "larger than 100 bytes"),
        Skipped("link.md", "symbolic link"),
        Skipped("binary.txt", "binary file"),
        Skipped("lfs.pdf", "stored in Git LFS"),
    ]
    assert [one.source_id for one in scanned if isinstance(one, Item)] == ["real.md"]


def test_names_that_look_like_something_else(repo: Repo) -> None:
    names = ["-rf.md", "new\nline.md", "tab\tin.md", '"quoted".md', "\x01start.md", "\n.md"]
    for name in names:
        repo.put(name, f"text of {name!r}")
    os.close(os.open(os.fsencode(repo.path) + b"/caf\xe9.md", os.O_CREAT | os.O_WRONLY))
    repo.commit("An\x01n")
    scanned = scan(repo)
    assert len(scanned) == 7
    assert {one.author for one in scanned} == {"Ann"}
    assert "caf\\xe9.md" in {one.source_id for one in scanned}


@pytest.mark.parametrize(
    "command",
    [
        ("clone", "-q", "--bare", "."),
        ("clone", "-q", "--depth", "1", "file://."),
        ("clone", "-q", "--shared", "."),
        ("worktree", "add", "-q", "--detach"),
    ],
    ids=["bare", "shallow", "shared", "worktree"],
)
def test_kinds_of_repositories(repo: Repo, tmp_path: Path, command: tuple[str, ...]) -> None:
    repo.put("a.md", "old")
    repo.commit()
    repo.put("a.md", "text")
    repo.commit()
    copy = tmp_path / "copy"
    repo.git(*(word.replace("file://.", repo.path.as_uri()) for word in command), str(copy))
    total, found = Git(path=copy).scan({})
    assert total == Total(1)
    assert isinstance(found, Item)
    assert (found.body, found.author) == ("text", "Ann")


def test_a_repository_of_sha256(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", "--object-format=sha256")
    repo.put("a.md", "text")
    repo.commit()
    (found,) = scan(repo)
    assert (found.body, len(found.fingerprint)) == ("text", 64)


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("nowhere", "unknown commit 'nowhere' in the repository"),
        ("--upload-pack=touch /tmp/x", "unknown commit '--upload-pack=touch /tmp/x' in the repository"),
        ("HEAD:a.md", "unknown commit 'HEAD:a.md' in the repository"),
    ],
)
def test_refs_that_name_no_commit(one_file: Repo, ref: str, message: str) -> None:
    with pytest.raises(KnowledgeError) as caught:
        scan(one_file, ref=ref)
    assert str(caught.value).startswith(message)


def test_places_that_are_no_repository(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match=r"unknown commit 'HEAD' in the repository"):
        scan(repo)
    with pytest.raises(KnowledgeError, match=r"^the folder .* does not exist$"):
        list(Git(path=tmp_path / "nothing").scan({}))
    repo.put("inner/a.md", "text")
    repo.commit()
    with pytest.raises(KnowledgeError, match=r"inner is not a git repository"):
        list(Git(path=repo.path / "inner").scan({}))  # the repository around it is not meant


def test_a_hostile_configuration_starts_nothing(repo: Repo, tmp_path: Path) -> None:
    """Every setting that names a program to run, in the repository's own configuration, together with attributes."""
    repo.put("a.md", "text")
    repo.put(".gitattributes", "*.md diff=evil filter=evil merge=evil\n")
    repo.commit()
    flag = tmp_path / "pwned"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {flag}\n")
    script.chmod(0o755)
    run = str(script)
    for name in (
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.gitProxy",
        "core.askPass",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "pager.log",
        "pager.ls-tree",
        "alias.log",
        "uploadpack.packObjectsHook",
        "interactive.diffFilter",
        "sequence.editor",
    ):
        repo.git("config", name, f"!{run}" if name in ("alias.log", "credential.helper") else run)
    repo.git("config", "log.showSignature", "true")
    repo.git("config", "protocol.ext.allow", "always")
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "remote.evil.url", f"ext::{run}")
    repo.git("config", "remote.evil.promisor", "true")
    repo.git("config", "extensions.partialClone", "evil")
    hooks = repo.path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"):
        (hooks / hook).symlink_to(script)
    repo.git("config", "core.hooksPath", str(hooks))
    repo.sign()
    flag.unlink(missing_ok=True)
    scanned = scan(repo)
    assert [one.source_id for one in scanned if isinstance(one, Item)] == ["a.md"]
    # A missing object would be fetched from the promised remote, which is a command.
    oid = repo.git("rev-parse", "HEAD:a.md").strip()
    (repo.path / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    assert scan(repo)[1:] == [Failed("a.md", "its content is missing from the repository")]
    assert not flag.exists()


def test_the_callers_environment_does_not_lead_elsewhere(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.put("a.md", "mine")
    repo.commit()
    other = Repo(tmp_path / "other")
    other.put("b.md", "theirs")
    other.commit()
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert [one.source_id for one in scan(repo)] == ["a.md"]


def test_no_processes_are_left(repo: Repo) -> None:
    for number in range(20):
        repo.put(f"{number}.md", "text")
    repo.commit()
    before = children()  # other tests may have left a sandbox open
    scanner = Git(path=repo.path).scan({})
    next(scanner)
    next(scanner)
    assert children() - before
    scanner.close()  # type: ignore[attr-defined]  # it is a generator
    assert not children() - before


def test_without_git(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(KnowledgeError, match=r"^a git source needs the program git; it is not installed$"):
        scan(repo)


def nest(repo: Repo, levels: int, width: int = 10) -> None:
    """Commit trees that each hold the next one `width` times: width ** levels files in a few objects."""

    def write(*arguments: str, data: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=repo.path, input=data, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    oid, entry = write("hash-object", "-w", "--stdin", data="text"), "100644 blob {}\t{}.md"
    for _ in range(levels):
        oid = write("mktree", data="".join(entry.format(oid, name) + "\n" for name in range(width)))
        entry = "040000 tree {}\t{}"
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    repo.git("update-ref", "HEAD", repo.git("commit-tree", "-m", "x", oid, **who).strip())


def test_nested_equal_trees_are_listed_within_bounds(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes that name a billion files."""
    nest(repo, 9)
    monkeypatch.setattr(filesystem, "MAX_FILES", 20_000)
    scanner = Git(path=repo.path).scan({})
    assert next(scanner) == Total(20_000)
    scanner.close()  # type: ignore[attr-defined]  # it is a generator


@pytest.mark.parametrize(
    ("bound", "most", "words"),
    [
        ("MAX_FILES", 30, "more than 30 documents"),
        ("MAX_ENTRIES", 30, "more than 30 files"),
        ("MAX_NAMES", 30 * len("0/0/0.md"), "more than 240 bytes of names"),
        ("MAX_BYTES", 30 * len("text"), "more than 120 bytes of documents"),
    ],
)
def test_the_report_says_what_was_left_out(
    repo: Repo, store: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, words: str
) -> None:
    nest(repo, 3)
    monkeypatch.setattr(git if hasattr(git, bound) else filesystem, bound, most)
    with KnowledgeBase(store, sources={"repo": Git(path=repo.path)}) as base:
        report = base.sync("repo")
        assert (report.added, report.ok) == (30, False)
        assert report.error == f"the repository has {words}; the rest was left out: choose fewer with include and ref"


@pytest.mark.parametrize(
    "place", ["config", "HEAD", "packed-refs", "objects/info/alternates", "refs/heads/main", "shallow", "commondir"]
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_special_files_in_a_repository(one_file: Repo, monkeypatch: pytest.MonkeyPatch, place: str, kind: str) -> None:
    """A pipe without a writer makes a reader wait for ever; a device may never end."""
    monkeypatch.setattr(git, "QUERY_SECONDS", 0.5)
    path = one_file.path / ".git" / place
    path.unlink(missing_ok=True)
    before = children()  # other tests may have left a sandbox open
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    try:
        scanned = scan(one_file)
    except KnowledgeError as error:
        assert re.search(r"is not a git repository|unknown commit|did not respond within 0.5 s", str(error))
    else:
        assert [one.source_id for one in scanned] == ["a.md"]
    assert not children() - before


@pytest.mark.parametrize(
    "setting", ["include.path", "includeIf.gitdir:**.path", "core.excludesFile", "core.attributesFile"]
)
def test_a_pipe_that_the_configuration_names_is_not_opened(one_file: Repo, tmp_path: Path, setting: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    one_file.git("config", setting, str(tmp_path / "pipe"))
    assert [one.source_id for one in scan(one_file)] == ["a.md"]


def test_a_history_that_takes_too_long(one_file: Repo, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "HISTORY_SECONDS", 0.0)
    with KnowledgeBase(store, sources={"repo": Git(path=one_file.path)}) as base:
        report = base.sync("repo")
        assert (report.added, report.error) == (
            1,
            "the history was not read to its end in 0 s: some authors are missing",
        )
        assert base.sync("repo").ok
