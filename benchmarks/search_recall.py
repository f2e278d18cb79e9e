"""Recall of search: pages of our own documentation in the knowledge base, and tools in a catalog.

    python benchmarks/search_recall.py                            questions over docs/
    python benchmarks/search_recall.py bfcl/bfcl_eval/data        tools as well

Questions are searched by keyword as they stand; each has one right page, which should be among the first three.

Tools are the function documents of the Berkeley Function-Calling Leaderboard. Its data is in the PyPI package
bfcl-eval; its many dependencies are not needed:

    pip download --no-deps bfcl-eval && unzip -q bfcl_eval-*.whl -d bfcl

For each pool, every function of its categories becomes a tool, and each task's question is searched as it stands.
A task counts as found when all the functions of its answer are among the first ten.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from moonbox.knowledge import KnowledgeBase
from moonbox.knowledge.connectors.filesystem import Filesystem
from moonbox.tools.search import ToolSearch
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

DOCS = Path(__file__).resolve().parents[1] / "docs"
QUESTIONS = {
    "use with LangChain agent": "frameworks/langchain.md",
    "ask a human before a tool runs": "approvals.md",
    "how do I install moonbox": "installation.md",
    "limit how long a script may run": "limits.md",
    "connect an MCP server": "mcp.md",
    "hide passwords in the audit trail": "audit.md",
    "search my own documents": "knowledge.md",
    "write a tool in Lua": "tool-scripts.md",
    "which error kinds are there": "errors.md",
    "what can a hostile script do to my machine": "security.md",
    "call the sandbox over HTTP": "http.md",
    "how are None and null converted between Python and Lua": "values.md",
    "differences between Rhai and its original": "rhai.md",
    "run a local model with llama.cpp or ollama": "frameworks/local.md",
    "settings of moonbox.toml": "reference/configuration.md",
}
FIRST = 3

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
    parser.add_argument("data", type=Path, nargs="?", help="the folder bfcl_eval/data of the unpacked package")
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--misses", action="store_true", help="print the tasks that were not found")
    options = parser.parse_args()
    positions = ask_the_docs()
    print(f"{'rank':>4}  {'question':56} page")
    for question, page in QUESTIONS.items():
        print(f"{positions[question] or '-':>4}  {question:56} {page}")
    good = sum(1 for position in positions.values() if position and position <= FIRST)
    print(f"{good} of {len(QUESTIONS)} among the first {FIRST}")
    tools_good = options.data is None or find_tools(options.data, options.limit, misses=options.misses)
    return 0 if good == len(QUESTIONS) and tools_good else 1


def ask_the_docs() -> dict[str, int | None]:
    """At which position each question's page was found; None when it was not among the first 50."""
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowledgeBase(Path(folder, "docs.db"), sources={"docs": Filesystem(path=DOCS)}) as base,
    ):
        base.sync("docs")
        answers = {question: [hit.source_id for hit in base.search(question, limit=50)] for question in QUESTIONS}
    return {
        question: answers[question].index(page) + 1 if page in answers[question] else None
        for question, page in QUESTIONS.items()
    }


def find_tools(data: Path, limit: int, *, misses: bool) -> bool:
    """Print the recall of each pool; whether all of them reach what is wanted."""
    worst = 1.0
    print(f"\n{'pool':14} {'tools':>6} {'tasks':>6} {'recall@' + str(limit):>10} {'one answer':>11} {'ms/query':>9}")
    for pool, categories in POOLS.items():
        box, tasks = load(data, categories)
        search = ToolSearch(box)
        search.search("warm")
        started = time.perf_counter()
        answers = [{tool.path for tool, _ in search.search(question, limit)} for question, _ in tasks]
        spent = (time.perf_counter() - started) / len(tasks) * 1000
        hits = [answer <= got for (_, answer), got in zip(tasks, answers, strict=True)]
        single = [hit for hit, (_, answer) in zip(hits, tasks, strict=True) if len(answer) == 1]
        recall = sum(hits) / len(hits)
        worst = min(worst, recall)
        print(f"{pool:14} {len(box):6} {len(tasks):6} {recall:10.1%} {sum(single) / len(single):11.1%} {spent:9.2f}")
        if misses:
            for hit, (question, answer) in zip(hits, tasks, strict=True):
                if not hit:
                    print(f"  {', '.join(sorted(answer))}: {question[:140]!r}")
    return worst >= WANTED


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
