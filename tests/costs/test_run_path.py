"""How much of the host's code a run and a call pass: what is added there is paid for by each of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "run_path.py"


def test_a_run_and_a_further_call_pass_few_functions_and_modules() -> None:
    done = subprocess.run([sys.executable, BENCHMARK], capture_output=True, text=True, check=True, timeout=60)
    found = re.findall(r"^(.+?) {2,}(\d+) calls +(\d+) modules", done.stdout, re.MULTILINE)
    passed = {title: (int(functions), int(modules)) for title, functions, modules in found}
    for title in ('repl.run("return 1")', "each further call of a typed tool"):
        functions, modules = passed[title]
        assert functions <= 45, title
        assert modules <= 12, title
