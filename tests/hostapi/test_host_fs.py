"""fs functions: files in granted folders, and every known way out of them."""

from __future__ import annotations

import os
import socket
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import Denied, ToolError
from moonbox.scripts.hostapi import fs as files
from moonbox.scripts.hostapi.functions import HostLimits
from tests.hostapi.conftest import refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from moonbox.scripts.hostapi.api import HostApi

    Make = Callable[..., HostApi]


@pytest.fixture
def make(tmp_path: Path, make_api: Callable[..., HostApi]) -> Make:
    """A HostApi that may read and write tmp_path/box, with a file outside it."""
    (tmp_path / "box").mkdir()
    (tmp_path / "outside.txt").write_text("private")

    def start(grants: dict[str, Any] | None = None, **more: Any) -> HostApi:
        return make_api({"read": ["./box"], "write": ["./box"]} if grants is None else grants, modules=[files], **more)

    return start


def fails(api: HostApi, name: str, *args: Any) -> tuple[type, str, str]:
    error = refused(api, name, *args)
    return type(error), error.code, str(error)


def test_a_write_keeps_permissions_and_replaces_in_one_step(make: Make, tmp_path: Path) -> None:
    (tmp_path / "box/sub").mkdir()
    fails(make(), "fs.write", "box/sub", "x")
    assert [path.name for path in (tmp_path / "box").iterdir()] == ["sub"], "a failed write leaves nothing behind"
    file = tmp_path / "box/run.sh"
    file.write_text("old")
    file.chmod(0o4750)
    with file.open() as before:
        make().call("fs.write", ["box/run.sh", "new"])
        assert before.read() == "old"
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750


OUTSIDE = """
outside.txt box/../outside.txt box/./.././outside.txt box/sub/../../outside.txt ../../../../../../etc/passwd /etc/passwd
//etc/passwd boxing/x box2 /proc/self/environ /proc/self/fd/0 /dev/null ~/.ssh/id_rsa . /
"""


@pytest.mark.parametrize("path", OUTSIDE.split())
def test_paths_outside_are_refused(make: Make, tmp_path: Path, path: str) -> None:
    (tmp_path / "boxing").mkdir()
    api = make()
    for name in ("read", "list", "exists", "stat", "write", "append", "mkdir", "remove"):
        kind, code, message = fails(api, f"fs.{name}", path, *(["x"] if name in ("write", "append") else []))
        assert (kind, code) == (Denied, "not_granted")
        assert " is not granted; add " in message
    assert (tmp_path / "outside.txt").read_text() == "private"


def test_writing_does_not_include_reading(make: Make) -> None:
    api = make({"write": ["./box"]})
    api.call("fs.write", ["box/a", "x"])
    assert fails(api, "fs.read", "box/a")[0] is Denied
    api = make({"read": ["./box"]})
    assert fails(api, "fs.write", "box/a", "y")[0] is Denied
    assert fails(api, "fs.remove", "box/a")[0] is Denied
    assert sorted(api.functions) == ["fs.exists", "fs.list", "fs.read", "fs.stat"]


@pytest.mark.parametrize(
    "target", ["../outside.txt", "/etc/passwd", "{base}/outside.txt", "sub/../../outside.txt", "/proc/self/environ"]
)
def test_links_to_files_outside(make: Make, tmp_path: Path, target: str) -> None:
    (tmp_path / "box/sub").mkdir()
    (tmp_path / "box/link").symlink_to(target.format(base=tmp_path))
    api = make()
    for name, *args in (("fs.read",), ("fs.exists",), ("fs.stat",), ("fs.append", "x")):
        kind, _, message = fails(api, name, "box/link", *args)
        assert (kind, message) == (Denied, "box/link leads out of the granted folder")
    assert api.call("fs.list", ["box"])[0]["type"] == "link"
    api.call("fs.write", ["box/link", "new"])  # takes the place of the link
    assert not (tmp_path / "box/link").is_symlink()
    assert (tmp_path / "outside.txt").read_text() == "private"


@pytest.mark.parametrize("target", ["..", "/", "{base}", "../../"])
def test_links_to_folders_outside(make: Make, tmp_path: Path, target: str) -> None:
    (tmp_path / "box/link").symlink_to(target.format(base=tmp_path))
    api = make()
    for name, path, *args in (
        ("fs.read", "box/link/outside.txt"),
        ("fs.list", "box/link"),
        ("fs.list", "box/link/"),
        ("fs.write", "box/link/new.txt", "x"),
        ("fs.append", "box/link/outside.txt", "x"),
        ("fs.mkdir", "box/link/new"),
        ("fs.remove", "box/link/outside.txt"),
    ):
        assert fails(api, name, path, *args)[0] is Denied
    assert sorted(path.name for path in tmp_path.iterdir()) == ["box", "outside.txt"]
    assert (tmp_path / "outside.txt").read_text() == "private"
    api.call("fs.remove", ["box/link"])  # the link itself may go
    assert (tmp_path / "outside.txt").exists()


def test_links_that_stay_inside_are_followed(make: Make, tmp_path: Path) -> None:
    (tmp_path / "box/deep/er").mkdir(parents=True)
    (tmp_path / "box/deep/file").write_text("found")
    (tmp_path / "box/a").symlink_to("deep/er/../file")
    (tmp_path / "box/deep/er/b").symlink_to("../../a")
    (tmp_path / "box/folder").symlink_to("deep")
    api = make()
    assert api.call("fs.read", ["box/a"]) == "found"
    assert api.call("fs.read", ["box/deep/er/b"]) == "found"
    assert api.call("fs.read", ["box/folder/file"]) == "found"
    assert api.call("fs.stat", ["box/a"])["type"] == "file"
    api.call("fs.write", ["box/folder/new", "x"])
    assert (tmp_path / "box/deep/new").read_text() == "x"


def test_dangling_links_and_links_of_proc_are_not_followed(make: Make, tmp_path: Path) -> None:
    (tmp_path / "box/link").symlink_to("../made.txt")
    assert fails(make(), "fs.append", "box/link", "x")[0] is Denied
    assert not (tmp_path / "made.txt").exists()
    with (tmp_path / "outside.txt").open() as held:
        (tmp_path / "box/fd").symlink_to(f"/proc/self/fd/{held.fileno()}")
        assert fails(make(), "fs.read", "box/fd")[0] is Denied


def test_a_race_of_renames_never_leads_outside(make: Make, tmp_path: Path) -> None:
    """A folder is swapped for a link to the outside while it is being read from and written to."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("private")
    inside, link, place = tmp_path / "box/real", tmp_path / "box/link", tmp_path / "box/place"
    inside.mkdir()
    (inside / "file").write_text("public")
    link.symlink_to(secret)
    inside.rename(place)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            place.rename(inside)
            link.rename(place)
            place.rename(link)
            inside.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[str] = set()
    try:
        api = make()
        for number in range(1500):
            name, args = (("fs.read", []), ("fs.write", ["x"]))[number % 2]
            try:
                seen.add(str(api.call(name, [f"box/place/{'file' if name == 'fs.read' else 'new'}", *args])))
            except ToolError as error:
                seen.add(error.code)
    finally:
        stop.set()
        thread.join()
    assert "public" in seen
    assert "private" not in seen
    assert [path.name for path in secret.iterdir()] == ["file"]


def test_pipes_devices_and_sockets_are_refused(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "box/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path / "box")  # the path of a socket must be short
        listener.bind("socket")
    api = make(limits=HostLimits(max_file=1000))
    for name in ("pipe", "socket"):
        for function, *args in (("fs.read",), ("fs.append", "x"), ("fs.write", "x")):
            wanted = (ToolError, "not_a_file", f"box/{name} is not a regular file")
            assert fails(api, function, f"box/{name}", *args) == wanted
        assert api.call("fs.stat", [f"box/{name}"])["type"] == "other"


def test_a_hard_link_is_not_appended_to(make: Make, tmp_path: Path) -> None:
    """Its other name may lie outside; a write makes a new file instead, and reading cannot tell them apart."""
    os.link(tmp_path / "outside.txt", tmp_path / "box/hard")
    api = make()
    wanted = (ToolError, "linked", "box/hard has hard links and cannot be appended to")
    assert fails(api, "fs.append", "box/hard", "x") == wanted
    api.call("fs.write", ["box/hard", "new"])
    assert (tmp_path / "outside.txt").read_text() == "private"


def test_sizes_are_bounded(make: Make, tmp_path: Path) -> None:
    api = make(limits=HostLimits(max_file=100, max_written=250, max_entries=3))
    (tmp_path / "box/big").write_bytes(b"x" * 101)
    assert fails(api, "fs.read", "box/big")[1:] == (
        "too_large",
        "box/big is larger than 100 bytes; read it in parts with {offset = …, length = …}",
    )
    assert len(api.call("fs.read", ["box/big", {"length": 100}])) == 100
    assert api.call("fs.read", ["box/big", {"offset": 2**62, "length": 10}]) == ""
    assert fails(api, "fs.write", "box/a", "x" * 101)[2] == "box/a would have 101 bytes; at most 100 can be written"
    assert fails(api, "fs.append", "box/big", "x" * 5)[2] == "box/big would be larger than 100 bytes"
    api.call("fs.write", ["box/a", "x" * 100])
    api.call("fs.write", ["box/a", "x" * 100])
    assert fails(api, "fs.write", "box/a", "x" * 100)[2] == "no more than 250 bytes can be written in all"
    for name in ("b", "c"):
        (tmp_path / "box" / name).touch()
    assert fails(api, "fs.list", "box")[1:] == ("too_large", "box has more than 3 entries")


def test_a_folder_to_write_to_is_made_when_needed(make: Make, tmp_path: Path) -> None:
    make({"write": ["./new/out"]}).call("fs.write", ["new/out/a.txt", "x"])
    assert (tmp_path / "new/out/a.txt").read_text() == "x"


def test_nested_grants_use_the_nearest_folder(make: Make, tmp_path: Path) -> None:
    (tmp_path / "box/inner").mkdir()
    (tmp_path / "box/inner/link").symlink_to("../file")
    (tmp_path / "box/file").write_text("x")
    assert fails(make({"read": ["./box", "./box/inner"]}), "fs.read", "box/inner/link")[0] is Denied


def open_descriptors() -> int:
    with os.scandir("/dev/fd") as entries:
        return len(list(entries))


def test_no_descriptor_stays_open(make: Make, tmp_path: Path) -> None:
    (tmp_path / "box/link").symlink_to("/etc")
    api = make()
    before = open_descriptors()
    for _ in range(20):
        api.call("fs.write", ["box/a", "x"])
        api.call("fs.read", ["box/a"])
        api.call("fs.list", ["box"])
        fails(api, "fs.read", "box/link/passwd")
        fails(api, "fs.read", "box/none/x")
        fails(api, "fs.write", "box/none/x", "y")
    assert open_descriptors() == before
