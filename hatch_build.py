"""The build hook that compiles the native parts, where a C compiler and Python's headers are there.

A wheel gets the extensions inside, and then fits one version of Python on one platform; an editable install gets them
in place. Elsewhere the build goes on without them, with a warning: what they do is then done in Python. The reason is
left in the package, for `moonbox doctor`. `MOONBOX_NATIVE=0` leaves them out, `CFLAGS` adds options of the compiler.
`python hatch_build.py` builds them in place, or in a folder that is given.
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

PACKAGE = Path(__file__).resolve().parent / "src" / "moonbox"
SOURCES = ("worker/_native.c", "worker/_wire.c")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
NOTE = "worker/_native_missing.txt"
_WARNING = "moonbox is built without its native parts, and runs scripts in Python, more slowly: {}"
FLAGS = ("-O2", "-fPIC", "-shared", "-fstack-protector-strong", "-Wl,-z,relro,-z,now", "-Wall", "-Wextra")


class NativeBuildHook(BuildHookInterface):
    """Adds the extensions to a wheel, or puts them next to their sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        if version == "editable":
            self._warn(compile_native(PACKAGE)[1])
            return
        folder = Path(tempfile.mkdtemp(prefix="moonbox-native-"))
        self._folder = folder
        files, why = compile_native(folder)
        for file in files:
            build_data["force_include"][str(file)] = f"moonbox/{file.relative_to(folder)}"
        if why:
            self._warn(why)
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _warn(self, why: str) -> None:
        if why:
            self.app.display_warning(_WARNING.format(why))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        folder = getattr(self, "_folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def compile_native(folder: Path) -> tuple[list[Path], str]:
    """The extensions, compiled into that folder; where that is not possible, a file with the reason, and the reason."""
    note = folder / NOTE
    note.unlink(missing_ok=True)
    why = _unsuitable()
    built: list[Path] = []
    for source in () if why else SOURCES:
        target = folder / (source.removesuffix(".c") + SUFFIX)
        target.parent.mkdir(exist_ok=True)
        why = _compile(PACKAGE / source, target)
        if why:
            break
        built.append(target)
    if not why:
        return built, ""
    note.parent.mkdir(exist_ok=True)
    note.write_text(why, encoding="utf-8")
    return [note], why


def _compile(source: Path, target: Path) -> str:
    """Why it could not be compiled; empty when it was."""
    include = sysconfig.get_paths()["include"]
    flags = (*FLAGS, *shlex.split(os.environ.get("CFLAGS", "")))
    command = [*_compiler(), *flags, f"-I{include}", str(source), "-o", str(target), "-lpthread", "-ldl"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.SubprocessError) as problem:
        return str(problem)
    if done.returncode == 0:
        return ""
    return done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit status {done.returncode}"


def _unsuitable() -> str:
    if os.environ.get("MOONBOX_NATIVE") == "0":
        return "MOONBOX_NATIVE=0 was set"
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return f"they are not made for {sys.implementation.name} on {sys.platform}"
    if not _compiler():
        return "no C compiler was found; install one and Python's headers, then install moonbox again"
    return ""


def _compiler() -> list[str]:
    """The command of the C compiler: the one asked for, the one Python was built with, or a usual one."""
    for command in (os.environ.get("CC", ""), sysconfig.get_config_var("CC") or "", "cc", "gcc", "clang"):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return words
    return []


if __name__ == "__main__":
    sys.exit(compile_native(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)[1] or 0)  # "" would be a failure
