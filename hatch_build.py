"""The build hook that compiles the native part of a worker, where a C compiler and Python's headers are there.

A wheel gets the extension inside, and then fits one version of Python on one platform; an editable install gets it in
place. Elsewhere the build goes on without it: the loop of moonbox's workers is then that in Python. `MOONBOX_NATIVE=0`
leaves it out. `python hatch_build.py` builds it in place.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program
    BuildHookInterface = object

FOLDER = Path(__file__).resolve().parent / "src" / "moonbox" / "worker"
NAME = "_native" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")
FLAGS = ("-O2", "-fPIC", "-shared", "-fstack-protector-strong", "-Wall", "-Wextra")


class NativeBuildHook(BuildHookInterface):
    """Adds the extension to a wheel, or puts it next to its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        if version == "editable":
            compile_native(FOLDER)
            return
        folder = Path(tempfile.mkdtemp(prefix="moonbox-native-"))
        self._folder = folder
        built = compile_native(folder)
        if built is not None:
            build_data["force_include"][str(built)] = f"moonbox/worker/{NAME}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        folder = getattr(self, "_folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def compile_native(folder: Path) -> Path | None:
    """The extension, compiled into that folder; None where that is not possible, and a word why."""
    why = _unsuitable()
    if not why:
        compiler = _compiler()
        include = sysconfig.get_paths()["include"]
        target = folder / NAME
        command = [*compiler, *FLAGS, f"-I{include}", str(FOLDER / "_native.c"), "-o", str(target), "-lpthread", "-ldl"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        except (OSError, subprocess.SubprocessError) as problem:
            why = str(problem)
        else:
            if done.returncode == 0:
                return target
            why = done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit status {done.returncode}"
    print(f"moonbox: built without the native part of a worker: {why}", file=sys.stderr)
    return None


def _unsuitable() -> str:
    if os.environ.get("MOONBOX_NATIVE") == "0":
        return "MOONBOX_NATIVE=0"
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return f"not made for {sys.implementation.name} on {sys.platform}"
    if not _compiler():
        return "no C compiler"
    return ""


def _compiler() -> list[str]:
    """The command of the C compiler: the one asked for, the one Python was built with, or a usual one."""
    for command in (os.environ.get("CC", ""), sysconfig.get_config_var("CC") or "", "cc", "gcc", "clang"):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return words
    return []


if __name__ == "__main__":
    sys.exit(compile_native(FOLDER) is None)
