"""The control group of a Sandbox's workers: what is written where, on a tree of files, and by a real kernel."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.worker.group import Group, NoGroup, SandboxGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has control groups")
MIB = 1 << 20
BOUNDS = {"memory.max": 1 << 30, "memory.swap.max": 0, "pids.max": 64}
FILES = {"memory": ("memory.max", "memory.swap.max", "memory.current"), "pids": ("pids.max", "pids.current")}
NOT_WRITABLE = "the group of this process is not delegated to it: it cannot be written"
ADVICE = "start the host in a group of its own, for example with `systemd-run --user --scope -p Delegate=yes`"

IN_FORCE = ["cgroup", True, "workers share a group that bounds their memory and their processes together"]


class Tree:
    """A hierarchy as the kernel shows it, of ordinary files; it notes what is written, in order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mount = folder / "cgroup"
        self.proc = folder / "proc" / "self"
        self.proc.mkdir(parents=True)
        self.writes: list[tuple[str, str]] = []
        self.busy: set[Path] = set()
        """Groups whose controllers cannot be enabled while processes are in them."""
        self._open: dict[int, Path] = {}
        self._mkdir, self._rmdir, self._os_open, self._write = os.mkdir, os.rmdir, os.open, os.write
        self.add("", "memory pids cpu", "")
        for name, replacement in (("mkdir", self._make), ("rmdir", self._remove), ("open", self._opened)):
            monkeypatch.setattr(os, name, replacement)
        monkeypatch.setattr(os, "write", self._written)

    def add(self, name: str, controllers: str = "memory pids cpu", enabled: str = "") -> Path:
        folder = self.mount / name
        self._mkdir(folder)
        files = {"controllers": controllers, "subtree_control": enabled, "procs": "", "events": "populated 0\n"}
        for file, text in files.items():
            (folder / f"cgroup.{file}").write_text(text)
        (folder / "cgroup.kill").write_text("")
        for controller in controllers.split():
            for file in FILES.get(controller, ()):
                (folder / file).write_text("0")
        return folder

    def be_in(self, path: str, root: str = "/", options: str = "rw") -> None:
        mount = str(self.mount).replace(" ", "\\040")
        (self.proc / "cgroup").write_text(f"4:memory:/elsewhere\n0::{path}\n")
        (self.proc / "mountinfo").write_text(
            f"22 1 8:1 / / rw - ext4 /dev/sda rw\n36 35 0:30 {root} {mount} {options} - cgroup2 cgroup2 rw\n"
        )

    def groups(self, of: Path) -> list[Path]:
        return sorted(of.glob("moonbox-*"))

    def _make(self, path: Any, mode: int = 0o777, **rest: Any) -> None:
        folder = Path(path)
        if folder.is_dir() or self.mount not in folder.parents:
            return self._mkdir(path, mode, **rest)
        enabled = (folder.parent / "cgroup.subtree_control").read_text()
        self.add(str(folder.relative_to(self.mount)), enabled)
        return None

    def _remove(self, path: Any, **rest: Any) -> None:
        folder = Path(path)
        if self.mount in folder.parents:
            if "populated 1" in (folder / "cgroup.events").read_text():
                raise OSError(errno.EBUSY, "Device or resource busy")
            for file in folder.iterdir():
                file.unlink()
        self._rmdir(path, **rest)

    def _opened(self, path: Any, flags: int, *rest: Any, **more: Any) -> int:
        fd = self._os_open(path, flags, *rest, **more)
        if flags & os.O_WRONLY and isinstance(path, Path) and self.mount in path.parents:
            self._open[fd] = path
        return fd

    def _written(self, fd: int, data: bytes) -> int:
        path = self._open.pop(fd, None)
        if path is None:
            return self._write(fd, data)
        self.writes.append((str(path.relative_to(self.mount)), data.decode()))
        folder, text = path.parent, data.decode()
        if path.name == "cgroup.subtree_control":
            if folder in self.busy and not (folder / "moonbox-host").is_dir():
                raise OSError(errno.EBUSY, "Device or resource busy")
            text = " ".join([*path.read_text().split(), *text.replace("+", "").split()])
        elif path.name == "cgroup.kill":
            (folder / "cgroup.events").write_text("populated 0\n")
        os.ftruncate(fd, 0)
        self._write(fd, text.encode())
        return len(data)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.delenv("MOONBOX_CGROUP", raising=False)
    return Tree(tmp_path, monkeypatch)


def test_a_group_is_made_bounded_and_removed(tree: Tree) -> None:
    own = tree.add("scope")
    tree.be_in("/scope")
    group = Group.create(BOUNDS, tree.proc)
    name = f"scope/{group.folder.name}"
    assert group.folder.parent == own
    assert tree.writes == [
        ("scope/cgroup.subtree_control", "+memory +pids"),
        ("scope/cgroup.subtree_control", "+cpu"),
        (f"{name}/memory.max", "1073741824"),
        (f"{name}/memory.swap.max", "0"),
        (f"{name}/pids.max", "64"),
    ]
    group.remove()
    assert tree.groups(own) == []


def test_controllers_that_are_enabled_are_not_enabled_again(tree: Tree) -> None:
    tree.add("scope", enabled="cpu memory pids")
    tree.be_in("/scope")
    Group.create(BOUNDS, tree.proc).remove()
    assert [name for name, _ in tree.writes if "subtree" in name] == []


def test_the_host_steps_aside_with_its_processes_where_the_group_is_not_empty(tree: Tree) -> None:
    own = tree.add("scope")
    tree.be_in("/scope")
    tree.busy.add(own)
    child = 2**22 + 1  # more than the kernel has
    (tree.proc.parent / str(child)).mkdir()
    (tree.proc.parent / str(child) / "stat").write_text(f"{child} (a) b) S {os.getpid()} 0")
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n{child}\n")
    Group.create(BOUNDS, tree.proc).remove()
    assert tree.writes[:4] == [
        ("scope/cgroup.subtree_control", "+memory +pids"),
        ("scope/moonbox-host/cgroup.procs", str(os.getpid())),
        ("scope/moonbox-host/cgroup.procs", str(child)),
        ("scope/cgroup.subtree_control", "+memory +pids"),
    ]


def test_a_host_that_has_stepped_aside_uses_the_group_above(tree: Tree) -> None:
    above = tree.add("scope", enabled="memory pids cpu")
    tree.add("scope/moonbox-host")
    tree.be_in("/scope/moonbox-host")
    group = Group.create(BOUNDS, tree.proc)
    assert group.folder.parent == above
    group.remove()


def test_others_are_never_moved(tree: Tree) -> None:
    own = tree.add("scope")
    tree.be_in("/scope")
    tree.busy.add(own)
    for stranger in ("0", "1", str(os.getppid())):
        (own / "cgroup.procs").write_text(f"{os.getpid()}\n{stranger}\n")
        with pytest.raises(NoGroup, match=r"^other processes are in the group of this process; ") as caught:
            Group.create(BOUNDS, tree.proc)
        assert str(caught.value).endswith(ADVICE)
    assert {name for name, _ in tree.writes} == {"scope/cgroup.subtree_control"}
    assert tree.groups(own) == []


def test_a_host_in_a_subgroup_of_a_delegated_unit_uses_the_unit(tree: Tree) -> None:
    unit, sub = tree.add("unit"), tree.add("unit/main")
    tree.be_in("/unit/main")
    mark(unit, "delegate", b"1")
    mark(unit, "invocation_id", b"abc")
    mark(sub, "something", b"else")
    group = Group.create(BOUNDS, tree.proc)
    assert group.folder.parent == unit
    group.remove()
    tree.busy.add(unit)
    (unit / "cgroup.subtree_control").write_text("")
    with pytest.raises(NoGroup, match=r"^other processes are in the group above that of this process; "):
        Group.create(BOUNDS, tree.proc)


def test_a_unit_that_systemd_has_not_delegated_is_left_alone(tree: Tree) -> None:
    own = tree.add("unit")
    tree.be_in("/unit")
    mark(own, "invocation_id", b"abc")
    with pytest.raises(NoGroup) as caught:
        Group.create(BOUNDS, tree.proc)
    assert str(caught.value) == f"systemd has not delegated the group of this process; {ADVICE}"
    assert tree.writes == []


def mark(folder: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(folder, f"user.{name}", value)
    except OSError as problem:
        pytest.skip(f"the folder for tests takes no extended attributes: {problem}")


@pytest.mark.parametrize(
    ("controllers", "missing"),
    [
        ("cpu", "controllers 'memory' and 'pids'"),
        ("memory", "controller 'pids'"),
        ("pids cpu memory_hugetlb", "controller 'memory'"),
    ],
)
def test_controllers_that_are_missing_are_named(tree: Tree, controllers: str, missing: str) -> None:
    tree.add("scope", controllers)
    tree.be_in("/scope")
    with pytest.raises(NoGroup) as caught:
        Group.create(BOUNDS, tree.proc)
    assert str(caught.value) == f"the group of this process does not have the {missing}"
    assert tree.writes == []


@pytest.mark.parametrize("name", ["cgroup.procs", "cgroup.subtree_control"])
def test_a_group_that_cannot_be_written_is_left_alone(tree: Tree, name: str) -> None:
    (tree.add("scope") / name).unlink()
    tree.be_in("/scope")
    with pytest.raises(NoGroup) as caught:
        Group.create(BOUNDS, tree.proc)
    assert (str(caught.value), tree.writes) == (NOT_WRITABLE, [])


@pytest.mark.parametrize(
    ("path", "root"), [("/../other", "/"), ("/scope", "/container/a"), ("/container", "/container/a")]
)
def test_a_hierarchy_without_this_process_is_not_used(tree: Tree, path: str, root: str) -> None:
    tree.add("scope")
    tree.be_in(path, root)
    with pytest.raises(NoGroup, match=r"^no cgroup v2 hierarchy is mounted here that has this process in it$"):
        Group.create(BOUNDS, tree.proc)


def test_a_part_of_the_hierarchy_that_is_mounted_is_used(tree: Tree) -> None:
    """As in a container that shares the machine's namespace."""
    tree.add("scope")
    tree.be_in("/container/a/scope", "/container/a")
    group = Group.create(BOUNDS, tree.proc)
    assert group.folder.parent == tree.mount / "scope"
    group.remove()


def test_it_can_be_turned_off(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.add("scope")
    tree.be_in("/scope")
    monkeypatch.setenv("MOONBOX_CGROUP", "0")
    with pytest.raises(NoGroup, match=r"^MOONBOX_CGROUP=0 turns it off$"):
        Group.create(BOUNDS, tree.proc)


def test_a_kernel_without_swap_has_no_bound_for_it(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "memory", ("memory.max", "memory.current"))
    own = tree.add("scope")
    tree.be_in("/scope")
    Group.create(BOUNDS, tree.proc).remove()
    monkeypatch.setitem(FILES, "memory", ("memory.swap.max", "memory.current"))
    with pytest.raises(NoGroup, match=r"cannot be bounded: No such file or directory$"):
        Group.create(BOUNDS, tree.proc)
    assert tree.groups(own) == []


def test_groups_of_hosts_that_are_gone_are_removed_and_no_others(tree: Tree) -> None:
    own = tree.add("scope", enabled="memory pids cpu")
    tree.be_in("/scope")
    alive = Group.create(BOUNDS, tree.proc)
    gone, lingering = tree.add("scope/moonbox-sandbox-aa"), tree.add("scope/moonbox-sandbox-bb")
    (lingering / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    others = [tree.add("scope/moonbox-host"), tree.add("scope/nginx")]
    tree.writes.clear()
    second = Group.create(BOUNDS, tree.proc)
    assert tree.writes[0] == ("scope/moonbox-sandbox-bb/cgroup.kill", "1")
    assert not any("moonbox-sandbox-aa" in name for name, _ in tree.writes)
    assert tree.groups(own) == sorted([alive.folder, second.folder, others[0]])
    assert not gone.exists()
    assert not lingering.exists()
    assert all(other.is_dir() for other in others)
    alive.remove()
    second.remove()


def test_a_group_that_another_host_holds_stays(tree: Tree) -> None:
    tree.add("scope", enabled="memory pids cpu")
    tree.be_in("/scope")
    theirs = tree.add("scope/moonbox-sandbox-aa")
    lock = os.open(theirs, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    Group.create(BOUNDS, tree.proc).remove()
    assert theirs.is_dir()
    os.close(lock)
    Group.create(BOUNDS, tree.proc).remove()
    assert not theirs.exists()


def test_the_room_follows_the_number_of_workers(tree: Tree) -> None:
    tree.add("scope", enabled="memory pids cpu")
    tree.be_in("/scope")
    group = SandboxGroup(16 * MIB, tree.proc)

    def room(tasks: int, memory: int = 16 * MIB) -> tuple[int, int, int]:
        (group.folder / "pids.current").write_text(f"{tasks}\n")
        group.make_room(memory)
        names = ("memory.max", "memory.swap.max", "pids.max")
        return tuple(int((group.folder / name).read_text()) for name in names)  # type: ignore[return-value]

    def of(workers: int, memory: int = 16 * MIB) -> tuple[int, int, int]:
        total = 256 * MIB + workers * (2 * memory + 128 * MIB)
        return total, total, 16 + 2 * workers

    assert room(2) == of(8)
    written = len(tree.writes)
    assert room(12) == of(8)
    assert len(tree.writes) == written  # nothing changes: nothing is written
    for workers in range(1, 3000, 7):  # each worker has two threads; the zygote and the namespace's first have one
        _, _, tasks = room(2 + 2 * workers)
        assert tasks >= 2 + 2 * (workers + 1)
        assert tasks <= 16 + 2 * max(8, 2 * (workers + 2))
    assert room(2 + 2 * 1500) == of(4096)  # not at every step down
    assert room(2 + 2 * 500) == of(512)
    assert room(2) == of(8)
    assert room(2, 64 * MIB) == of(8, 64 * MIB)
    group.remove()


def test_workers_of_one_thread_have_the_same_room(tree: Tree) -> None:
    tree.add("scope", enabled="memory pids cpu")
    tree.be_in("/scope")
    group = SandboxGroup(16 * MIB, tree.proc)
    for workers in range(1, 3000, 7):
        (group.folder / "pids.current").write_text(f"{2 + workers}\n")
        group.make_room(16 * MIB, 1)
        total = int((group.folder / "memory.max").read_text())
        assert total >= 256 * MIB + (workers + 1) * (2 * 16 + 128) * MIB
    group.remove()


# A real kernel

PROGRAM = """
import json, os, subprocess, sys
from pathlib import Path
from moonbox.worker import group
from moonbox.worker.group import Group, NoGroup
BOUNDS = {bounds!r}
def where(pid="self"):
    return [line[3:] for line in Path(f"/proc/{{pid}}/cgroup").read_text().splitlines() if line.startswith("0::")][0]
"""


class Kernel:
    """A group of the kernel's own hierarchy that stands for one that was delegated."""

    def __init__(self, folder: Path, path: str, bounds: dict[str, int]) -> None:
        self.folder, self.path, self.bounds = folder, path, bounds

    def run(self, program: str) -> subprocess.Popen[str]:
        """A program that is in it from its start; it writes JSON."""
        command = PROGRAM.format(bounds=self.bounds) + textwrap.dedent(program)
        enter = f'echo 0 > {self.folder}/cgroup.procs && exec "$0" -c "$1"'
        return subprocess.Popen(
            ["sh", "-c", enter, sys.executable, command],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )

    def told(self, program: str) -> Any:
        with self.run(program) as process:
            output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return json.loads(output)


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    if os.getuid() != 0:
        pytest.skip("needs root, to make a group that is delegated")
    mounts = [
        line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup2 " in line
    ]
    if not mounts:
        pytest.skip("needs a cgroup v2 hierarchy that is mounted")
    top = Path(mounts[0])
    there = (top / "cgroup.controllers").read_text().split()
    bounds = {"memory.max": 1 << 30, "pids.max": 64} if {"memory", "pids"} <= set(there) else {"hugetlb.2MB.max": 0}
    controllers = {name.partition(".")[0] for name in bounds}
    if not controllers <= set(there):
        pytest.skip(f"needs a controller of the hierarchy; there are: {there}")
    enabled = set((top / "cgroup.subtree_control").read_text().split())
    added = sorted(controllers - enabled)
    folder = top / f"moonbox-test-{os.urandom(4).hex()}"
    try:
        if added:
            (top / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in added))
        folder.mkdir()
    except OSError as problem:
        pytest.skip(f"the hierarchy cannot be written: {problem}")
    try:
        yield Kernel(folder, f"/{folder.name}", bounds)
    finally:
        remove_all(folder)
        if added:
            (top / "cgroup.subtree_control").write_text(" ".join(f"-{name}" for name in added))


def remove_all(folder: Path) -> None:
    (folder / "cgroup.kill").write_text("1")
    for inner in [*folder.glob("*/"), folder]:
        wait_for(lambda inner=inner: "populated 0" in (inner / "cgroup.events").read_text())
        inner.rmdir()


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_kernel_takes_the_group_and_lets_it_go(kernel: Kernel) -> None:
    told = kernel.told("""
        child = subprocess.Popen(["sleep", "60"])
        before = where()
        first = Group.create(BOUNDS)
        second = Group.create(BOUNDS)
        files = {name: (first.folder / name).read_text().strip() for name in BOUNDS}
        inside = subprocess.Popen(["sh", "-c", f"echo 0 > {first.folder}/cgroup.procs; echo in; exec sleep 60"],
                                  stdout=subprocess.PIPE)
        inside.stdout.read(3)
        member = where(inside.pid)
        names = first.folder.name, second.folder.name
        first.remove()
        ended = inside.wait()
        second.remove()
        left = [path.name for path in Path(first.folder.parent).glob("*/")]
        print(json.dumps([before, where(), where(child.pid), names, files, member, ended, left]))
        child.kill()
    """)
    before, after, child, (first, second), files, member, ended, left = told
    assert before == kernel.path
    assert after == child == f"{kernel.path}/moonbox-host"
    assert first != second
    assert files == {name: str(value) for name, value in kernel.bounds.items()}
    assert member == f"{kernel.path}/{first}"
    assert ended == -signal.SIGKILL
    assert left == ["moonbox-host"]


def test_the_kernel_keeps_a_group_with_strangers(kernel: Kernel) -> None:
    with kernel.run("print('there', flush=True); sys.stdin.read()") as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        told = kernel.told("""
            try:
                Group.create(BOUNDS)
            except NoGroup as reason:
                print(json.dumps([str(reason), where()]))
        """)
        stranger.communicate("")
    assert told == [f"other processes are in the group of this process; {ADVICE}", kernel.path]


def test_an_ordinary_user_has_no_group_of_root(kernel: Kernel) -> None:
    told = kernel.told("""
        os.setgid(65534); os.setuid(65534)
        try:
            Group.create(BOUNDS)
        except NoGroup as reason:
            print(json.dumps([str(reason), where()]))
    """)
    assert told == [NOT_WRITABLE, kernel.path]


def test_a_killed_host_leaves_nothing_that_the_next_does_not_remove(kernel: Kernel) -> None:
    crashing = kernel.run("""
        group = Group.create(BOUNDS)
        orphan = subprocess.Popen(["sh", "-c", f"echo 0 > {group.folder}/cgroup.procs; echo in; exec sleep 600"],
                                  stdout=subprocess.PIPE, start_new_session=True)
        orphan.stdout.read(3)
        print(json.dumps(str(group.folder)), flush=True)
        sys.stdin.read()
    """)
    with crashing:
        assert crashing.stdout is not None
        left = Path(json.loads(crashing.stdout.readline()))
        with_live_host = kernel_second(kernel)
        assert left.is_dir(), "its host lives"
        crashing.kill()
        crashing.communicate()
    assert "populated 1" in (left / "cgroup.events").read_text()
    assert kernel_second(kernel) == with_live_host == f"{kernel.path}/moonbox-host"
    assert not left.exists()


def kernel_second(kernel: Kernel) -> Any:
    """Another host in the same delegated group, which has been divided by now."""
    aside = Kernel(kernel.folder / "moonbox-host", f"{kernel.path}/moonbox-host", kernel.bounds)
    return aside.told("Group.create(BOUNDS).remove(); print(json.dumps(where()))")


def test_the_workers_of_a_sandbox_are_in_its_group(kernel: Kernel) -> None:
    told = kernel.told("""
        import signal
        from moonbox import Sandbox
        class Made:  # as a Sandbox makes it where the controllers for memory and processes are there
            def __init__(self, memory):
                self.group = Group.create(BOUNDS)
                self.folder = self.group.folder
            def make_room(self, memory, tasks):
                rooms.append(memory)
            def remove(self):
                self.group.remove()
        rooms = []
        group.SandboxGroup = Made
        def parent(pid):
            return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        def descriptors(pid):
            return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        with Sandbox(require=["cgroup"], min_workers=0) as box:
            with box.repl() as repl:
                seen = [repl.run("return 6 * 7").value]
                zygote = parent(repl.worker_pid)
                groups = {where(zygote), where(repl.worker_pid)}
                layer = [list(one) for one in repl.worker_jail if one.name == "cgroup"]
                opened = [one for pid in (zygote, repl.worker_pid) for one in descriptors(pid) if "cgroup" in one]
                os.kill(zygote, signal.SIGKILL)
            with box.repl() as repl:
                seen.append(repl.run("return 1").value)
                groups |= {where(repl.worker_pid)}
        print(json.dumps([seen, sorted(groups), where(), layer, opened, len(rooms)]))
    """)
    seen, groups, own, layer, opened, rooms = told
    assert seen == [42, 1]
    assert len(groups) == 1, "also after the zygote died"
    assert groups[0].startswith(f"{kernel.path}/moonbox-sandbox-")
    assert own == f"{kernel.path}/moonbox-host"
    assert layer == [IN_FORCE]
    assert opened == []
    assert rooms >= 2
    assert [path.name for path in kernel.folder.glob("*/")] == ["moonbox-host"]


def test_a_group_that_bounds_nothing_is_found_out(kernel: Kernel) -> None:
    """The doctor's attempt, in a group that has no bound for it."""
    told = kernel.told("""
        from moonbox.worker import jail
        from moonbox.worker.jail import probe
        class Unbounded:
            @staticmethod
            def create(bounds):
                return Group.create({name: 1 << 20 << 10 * ("memory" in name) for name in BOUNDS})
        probe.Group = Unbounded
        print(json.dumps([list(layer) for layer in jail.report()]))
    """)
    layers = {name: (active, detail) for name, active, detail in told}
    assert layers["cgroup"] == (
        False,
        "in force, yet the process could start more processes or hold more memory than its group may",
    )
    assert layers["seccomp"][0]


def test_a_group_holds(kernel: Kernel) -> None:
    if "pids.max" not in kernel.bounds:
        pytest.skip("needs the controllers 'memory' and 'pids', which an older hierarchy has here")
    told = kernel.told("""
        from moonbox import Sandbox
        from moonbox.worker import jail
        with Sandbox(require=["cgroup"]) as box, box.repl() as repl:
            value = repl.run("return 6 * 7").value
        print(json.dumps([value, [list(layer) for layer in jail.report() if layer.name == "cgroup"]]))
    """)
    assert told == [
        42,
        [["cgroup", True, "workers share a group that bounds their memory and their processes together"]],
    ]
