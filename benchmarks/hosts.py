"""The npm package beside other sandboxes for Node: prints a table and writes it into docs/javascript.md.

    python benchmarks/hosts.py [--rounds 10] [--no-write]

Needs Node and a built package (make js). Each subject runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "javascript.md"
BEGIN, END = "<!-- figures: written by benchmarks/hosts.py -->\n", "<!-- end of the figures -->\n"
SUBJECTS = {"moonbox": "moonbox (npm)", "monty": "@pydantic/monty", "quickjs": "quickjs-emscripten"}
ROWS = {
    "cold": ("import to first result", "ms"),
    "start": ("a fresh environment", "ms"),
    "run": ("an empty run", "ms"),
    "call": ("one tool call", "ms"),
    "fib": ("fib(27)", "ms"),
    "rows_in": ("20,000 rows of 5 fields in", "ms"),
    "rows_out": ("20,000 rows of 5 fields out", "ms"),
    "memory": ("memory of an idle environment", "MB"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    if shutil.which("node") is None:
        sys.exit("this benchmark needs Node 20 or later; it is not installed")
    if not (HERE.parent / "js" / "dist" / "index.js").exists():
        sys.exit("the npm package is not built; run: make js")
    folder = HERE / "hosts"
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
    load = os.getloadavg()[0]
    figures = {name: _measure(folder, name, options.rounds) for name in SUBJECTS}
    version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    how = f"Node {version} on {os.cpu_count()} cores, load {load:.1f} when it began; best of {options.rounds} rounds."
    text = f"{how}\n\n{_table(figures)}\n{_losses(figures)}\n"
    print(text)
    if not options.no_write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def _measure(folder: Path, name: str, rounds: int) -> dict[str, float]:
    command = ["node", "--expose-gc", "bench.mjs", name, str(rounds)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{SUBJECTS[name]} does not run here; it said:\n{done.stderr.strip()}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _table(figures: dict[str, dict[str, float]]) -> str:
    lines = ["| | " + " | ".join(SUBJECTS.values()) + " |", "|---|" + "---|" * len(SUBJECTS)]
    for key, (title, unit) in ROWS.items():
        best = min(found[key] for found in figures.values())
        shown = [(_shown(found[key], unit), found[key] == best) for found in figures.values()]
        lines.append(f"| {title} | " + " | ".join(f"**{text}**" if first else text for text, first in shown) + " |")
    return "\n".join(lines) + "\n"


def _losses(figures: dict[str, dict[str, float]]) -> str:
    """Where another one is ahead, and how far."""
    lost = []
    for key, (title, _) in ROWS.items():
        mine = figures["moonbox"][key]
        best = min(figures, key=lambda name: figures[name][key])
        if best != "moonbox":
            ahead = f"{mine / figures[best][key]:,.1f} times" if figures[best][key] > 0 else "too little to measure"
            lost.append(f"{title} (`{SUBJECTS[best]}`, {ahead})")
    return "moonbox is behind in: " + "; ".join(lost) + "." if lost else "moonbox is behind in none of these."


def _shown(value: float, unit: str) -> str:
    value = value / 2**20 if unit == "MB" else value
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


if __name__ == "__main__":
    main()
