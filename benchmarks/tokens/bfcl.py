"""Multi-turn tasks of the Berkeley Function Calling Leaderboard, their ground truth and its comparison of states."""

from __future__ import annotations

import ast
import copy
import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenizer import library

from moonbox import MoonboxError, Tool
from tokens.conversation import Failed, Turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPLY = "Done."
"""The tasks have no replies: the same word stands for them on either side."""
NAMES = {
    "GorillaFileSystem": "file system",
    "TradingBot": "trading",
    "TravelAPI": "travel",
    "VehicleControlAPI": "vehicle",
    "MessageAPI": "messages",
    "TicketAPI": "tickets",
    "TwitterAPI": "posts",
    "MathAPI": "maths",
}
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}


@dataclass(frozen=True)
class Task:
    """One conversation of the benchmark."""

    id: str
    classes: tuple[str, ...]
    setting: dict[str, Any]
    turns: tuple[Turn, ...]
    ground_truth: tuple[tuple[str, ...], ...]
    excluded: frozenset[str]
    long: bool

    @property
    def category(self) -> str:
        """The kinds of tools it has: "travel, tickets"."""
        order = list(NAMES)
        return ", ".join(NAMES[name] for name in sorted(self.classes, key=order.index))


class Leaderboard:
    """The package's tasks, API classes and checks."""

    def __init__(self) -> None:
        # Without its dependencies: models' clients and a web framework, of which nothing here is used.
        folder = library("bfcl", ["bfcl-eval>=2026.3,<2027", "mpmath>=1.3,<2"], dependencies=False)
        self._data = folder / "bfcl_eval" / "data"
        constants = importlib.import_module("bfcl_eval.constants.executable_backend_config")
        self._checker: Any = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")
        self._execute: Any = self._checker.execute_multi_turn_func_call
        self._modules: dict[str, str] = constants.CLASS_FILE_PATH_MAPPING
        self._documents: dict[str, str] = constants.MULTI_TURN_FUNC_DOC_FILE_MAPPING
        self._stateless: list[str] = constants.STATELESS_CLASSES

    def tasks(self, kind: str) -> list[Task]:
        """Those of "base" or "long_context"."""
        name = f"BFCL_v4_multi_turn_{kind}.json"
        answers = {item["id"]: item["ground_truth"] for item in _lines(self._data / "possible_answer" / name)}
        return [self._task(item, answers[item["id"]], kind) for item in _lines(self._data / name)]

    def instances(self, task: Task) -> dict[str, Any]:
        """The API objects of a task as it begins."""
        made = {}
        for name in task.classes:
            instance = getattr(importlib.import_module(self._modules[name]), name)()
            if name not in self._stateless:
                instance._load_scenario(copy.deepcopy(task.setting.get(name, {})), long_context=task.long)
            made[name] = instance
        return made

    def tools(self, task: Task, instances: dict[str, Any]) -> list[Tool]:
        """The objects' methods as tools, each with its own part of the benchmark's description."""
        return [
            _tool(document, getattr(instances[name], document["name"]))
            for name in task.classes
            for document in self._described(name)
            if document["name"] not in task.excluded
        ]

    def contradiction(self, task: Task) -> str | None:
        """Where the ground truth breaks the task's own schemas, which no tool with validation lets pass."""
        tools = {tool.name: tool for tool in self.tools(task, self.instances(task))}
        for name, arguments in (call for turn in task.turns for call in turn.calls):
            try:
                tools[name].bind(copy.deepcopy(arguments))
            except MoonboxError as problem:
                return f"{task.id}: {str(problem).splitlines()[1].removeprefix('- ')}"
        return None

    def check(self, task: Task, instances: dict[str, Any], who: str) -> Callable[[int, list[Any]], None]:
        """Compares results and states with the ground truth's, after each turn, as the benchmark does."""

        def check(number: int, values: list[Any]) -> None:
            expected, others = self._execute(
                list(task.ground_truth[number]), task.setting, list(task.classes), who, task.id, task.long
            )
            if not task.ground_truth[number]:
                return
            verdict = self._checker.state_checker(instances, others)
            if not verdict["valid"]:
                raise Failed(f"{task.id}, turn {number + 1}: {verdict['error_message']} {verdict['details']}")
            for value, text in zip(values, expected, strict=True):
                if _comparable(value) != _comparable(_parsed(text)):
                    raise Failed(f"{task.id}, turn {number + 1}: {value!r} is not {text!r}")

        return check

    def _task(self, item: dict[str, Any], answers: list[list[str]], kind: str) -> Task:
        classes = tuple(item["involved_classes"])
        order = {
            document["name"]: list(document["parameters"]["properties"])
            for name in classes
            for document in self._described(name)
        }
        turns = tuple(
            Turn(
                "\n".join(message["content"] for message in question),
                tuple(_known_call(text, order) for text in calls),
                REPLY,
            )
            for question, calls in zip(item["question"], answers, strict=True)
        )
        return Task(
            item["id"],
            classes,
            item["initial_config"],
            turns,
            tuple(tuple(calls) for calls in answers),
            frozenset(item.get("excluded_function", ())),
            "long_context" in kind,
        )

    def _described(self, name: str) -> list[dict[str, Any]]:
        return _lines(self._data / "multi_turn_func_doc" / self._documents[name])


def _known_call(text: str, order: dict[str, list[str]]) -> tuple[str, dict[str, Any]]:
    """`sort('a.txt')` as a name and named arguments."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise Failed(f"not a plain call: {text}")
    named = dict(zip(order[node.func.id], (ast.literal_eval(item) for item in node.args), strict=False))
    named |= {item.arg: ast.literal_eval(item.value) for item in node.keywords if item.arg is not None}
    return node.func.id, named


def _tool(document: dict[str, Any], method: Callable[..., Any]) -> Tool:
    return Tool.from_schema(
        name=document["name"],
        # What is before it says of every tool which API it belongs to: a burden for definitions, and for catalogs.
        description=document["description"].rpartition("Tool description: ")[2],
        parameters=_schema(document["parameters"]),
        returns=_schema(document.get("response")),
        call=lambda arguments: _presentable(method(**arguments)),
    )


def _presentable(result: Any) -> Any:
    """As the benchmark shows it: what JSON cannot hold goes as text."""
    try:
        json.dumps(result)
    except TypeError:
        return str(result)
    return result


def _schema(value: Any) -> Any:
    """The benchmark's own type names as those of JSON Schema."""
    if isinstance(value, dict):
        return {
            key: _TYPES.get(item, item) if key == "type" and isinstance(item, str) else _schema(item)
            for key, item in value.items()
            if (key, item) != ("default", "None")  # how it says that there is no default
        }
    return [_schema(item) for item in value] if isinstance(value, list) else value


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _comparable(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
