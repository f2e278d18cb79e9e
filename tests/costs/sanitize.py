"""Fuzzing of the C parts under AddressSanitizer and UBSan: `python -m tests.costs.sanitize`, options as native.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_BUILD = Path(__file__).parents[2] / "hatch_build.py"
_FLAGS = "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
_OPTIONS = "exitcode=99:halt_on_error=1:print_stacktrace=1"
# Python itself leaks at its end. Sizes that no worker can have are refused, as its limit of address space does.
_ADDRESSES = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=256"


def main() -> int:
    compiler = os.environ.get("CC", "gcc")
    with tempfile.TemporaryDirectory(prefix="moonbox-sanitized-") as folder:
        built = {**os.environ, "CC": compiler, "CFLAGS": _FLAGS}
        subprocess.run([sys.executable, str(_BUILD), folder], env=built, check=True)
        # Its library has to be loaded before Python's allocator.
        library = subprocess.run(
            [compiler, "-print-file-name=libasan.so"], stdout=subprocess.PIPE, text=True, check=True
        )
        environment = {
            **os.environ,
            "LD_PRELOAD": library.stdout.strip(),
            "ASAN_OPTIONS": f"{_OPTIONS}:{_ADDRESSES}",
            "UBSAN_OPTIONS": _OPTIONS,
            "PYTHONMALLOC": "malloc",
        }
        command = [sys.executable, "-m", "tests.costs.native", "--built", folder, *sys.argv[1:]]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, errors="replace") as fuzzing:
            assert fuzzing.stderr is not None
            for line in fuzzing.stderr:
                if "failed to allocate" not in line:  # which a worker must bear
                    print(line, end="", file=sys.stderr)
        return fuzzing.returncode


if __name__ == "__main__":
    sys.exit(main())
