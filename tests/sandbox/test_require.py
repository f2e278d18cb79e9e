"""Strict mode: a Sandbox that does not start where a layer of the jail is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox
from moonbox.errors import WorkerError
from moonbox.worker.jail import LAYERS, WHOLE_JAIL
from moonbox.worker.protocol import READY
from tests.attacks.hijacked import HijackedSource

if TYPE_CHECKING:
    from pathlib import Path

    from tests.attacks.hijacked import Peer

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs the layers of Linux")


@linux
def test_layers_that_there_are() -> None:
    with Sandbox(require=("descriptors", "file-limits", "no-new-privileges")) as box:
        assert box.run("return 1").value == 1


def test_a_layer_that_is_missing_is_named() -> None:
    """The limit of processor time is not asked for, so that no worker has it."""
    with pytest.raises(WorkerError) as caught:
        Sandbox(require=("descriptors", "cpu-limit"))
    assert str(caught.value) == (
        "required layer of the jail missing: 'cpu-limit' (not asked for: the host's clock ends a run); "
        "`moonbox doctor` shows all of them"
    )


def test_every_worker_is_asked() -> None:
    """The first has the layer and the second has not: no script runs in it."""

    def with_layer(peer: Peer) -> None:
        peer.send(READY, b"seccomp\t1\tin force")
        peer.receive()

    def without(peer: Peer) -> None:
        peer.send(READY, b"seccomp\t0\tan old kernel")
        peer.receive()

    box = Sandbox(isolation=HijackedSource(with_layer, without), min_workers=0, require=["seccomp"])
    missing = r"^required layer of the jail missing: 'seccomp' \(an old kernel\);"
    with box, box.repl(), pytest.raises(WorkerError, match=missing):
        box.run("return 1")


@linux
def test_the_command(tmp_path: Path) -> None:
    """Here the jail is whole, so that `serve` starts and ends with its input; a layer that no worker has stops it."""
    environment = {**os.environ, "HOME": str(tmp_path)}
    serve = [sys.executable, "-m", "moonbox", "serve", "--trust"]
    (tmp_path / "moonbox.toml").write_text("")
    with Sandbox(min_workers=0) as box, box.repl() as repl:
        repl.run("return 1")
        whole = {layer.name for layer in repl.worker_jail if layer.active} >= set(WHOLE_JAIL)
    done = subprocess.run(
        [*serve, "--require-jail"], cwd=tmp_path, env=environment, input="", capture_output=True, text=True, timeout=60
    )
    assert (done.returncode == 0) is whole, done.stderr
    (tmp_path / "moonbox.toml").write_text('[sandbox]\nrequire = ["cpu-limit"]\n')
    done = subprocess.run(serve, cwd=tmp_path, env=environment, input="", capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "required layer of the jail missing: 'cpu-limit'" in " ".join(done.stderr.split())


def test_what_the_command_requires() -> None:
    assert set(WHOLE_JAIL) < set(LAYERS)
    assert {"seccomp", "landlock", "memory-limit", "descriptors"} <= set(WHOLE_JAIL)
    assert "cpu-limit" not in WHOLE_JAIL
