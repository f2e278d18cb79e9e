"""Recall of tool search on the function documents of the Berkeley Function-Calling Leaderboard.

The benchmark's data is in the PyPI package bfcl-eval; its many dependencies are not needed:

    pip download --no-deps bfcl-eval && unzip -q bfcl_eval-*.whl -d bfcl
    python benchmarks/search_recall.py bfcl/bfcl_eval/data

For each pool, every function of its categories becomes a tool, and each task's question is searched as it stands.
A task counts as found when all the functions of its answer are among the first ten.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from moonbox.tools import Tool, Toolbox, ToolSearch

POOLS = {
    "simple_python": ["simple_python"],
    "non-live": ["simple_python", "multiple", "parallel", "parallel_multiple"],
    "live": ["live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"],
}
POOLS["everything"] = [*POOLS["non-live"], *POOLS["live"]]
WANTED = 0.9

Task = tuple[str, frozenset[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder bfcl_eval/data of the unpacked package")
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--misses", action="store_true", help="print the tasks that were not found")
    options = parser.parse_args()
    worst = 1.0
    print(
        f"{'pool':14} {'tools':>6} {'tasks':>6} {'recall@' + str(options.limit):>10} {'one answer':>11} {'ms/query':>9}"
    )
    for pool, categories in POOLS.items():
        box, tasks = load(options.data, categories)
        search = ToolSearch(box)
        search.search("warm")
        started = time.perf_counter()
        found = [{tool.path for tool, _ in search.search(question, options.limit)} for question, _ in tasks]
        spent = (time.perf_counter() - started) / len(tasks) * 1000
        hits = [answer <= got for (_, answer), got in zip(tasks, found, strict=True)]
        single = [hit for hit, (_, answer) in zip(hits, tasks, strict=True) if len(answer) == 1]
        recall = sum(hits) / len(hits)
        worst = min(worst, recall)
        print(f"{pool:14} {len(box):6} {len(tasks):6} {recall:10.1%} {sum(single) / len(single):11.1%} {spent:9.2f}")
        if options.misses:
            for hit, (question, answer) in zip(hits, tasks, strict=True):
                if not hit:
                    print(f"  {', '.join(sorted(answer))}: {question[:140]!r}")
    return 0 if worst >= WANTED else 1


def load(data: Path, categories: list[str]) -> tuple[Toolbox, list[Task]]:
    """The pooled tools (of functions with the same name, the first) and the tasks of some categories."""
    tools: dict[str, Tool] = {}
    tasks: list[Task] = []
    for category in categories:
        answers = {row["id"]: row["ground_truth"] for row in rows(data / "possible_answer", category)}
        for row in rows(data, category):
            for function in row["function"]:
                if function["name"] not in tools:
                    tools[function["name"]] = as_tool(function)
            question = " ".join(
                turn["content"] for turns in row["question"] for turn in turns if turn["role"] == "user"
            )
            tasks.append((question, frozenset(name for call in answers[row["id"]] for name in call)))
    return Toolbox(tools.values()), tasks


def rows(folder: Path, category: str) -> list[dict[str, Any]]:
    (file,) = folder.glob(f"BFCL_v[0-9]_{category}.json")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def as_tool(function: dict[str, Any]) -> Tool:
    parameters = {**as_json_schema(function["parameters"]), "type": "object"}
    return Tool.from_schema(
        name=function["name"], description=function["description"], parameters=parameters, call=lambda arguments: None
    )


TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
JSON_TYPES = {"object", "number", "array", "integer", "string", "boolean", "null"}


def as_json_schema(schema: Any) -> Any:
    """The benchmark's dialect, in which a dict is a type and an optional parameter says so itself."""
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            kind = TYPES.get(value.lower(), value.lower())
            if kind in JSON_TYPES:
                made["type"] = kind
        elif key == "properties":
            made[key] = {name: as_json_schema(part) for name, part in value.items()}
        elif key in {"items", "additionalProperties"}:
            made[key] = as_json_schema(value)
        elif key in {"description", "enum", "default"} or (key == "required" and isinstance(value, list)):
            made[key] = value
    return made


if __name__ == "__main__":
    sys.exit(main())
