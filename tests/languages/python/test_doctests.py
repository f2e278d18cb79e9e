"""CPython's own examples, as far as they ship with it: docstrings of builtins and of modules, and Lib/test.

Each example runs in moonbox, in CPython and in bare Monty. What it gives, prints or raises must be the same, unless the
script is refused, or bare Monty differs from CPython too: then differences.toml, which docs/python.md shows, names it.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import sys
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic_monty as monty
import pytest

from moonbox import Limits, Sandbox
from tests.languages.python.test_differential import KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = (
    *("asyncio", "base64", "bisect", "builtins", "collections", "copy", "csv", "dataclasses", "datetime", "decimal"),
    *("functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics", "string"),
    *("time", "typing", "unicodedata"),
)
FILES = ("genexps", "listcomps", "setcomps", "unpack", "unpack_ex", "extcall", "pep646_syntax", "itertools", "deque")
"""Not those of generators, descriptors, metaclasses and errors of syntax, whose examples are refused nearly all."""
LISTED = {session for each in KNOWN for session in each.get("doctests", ())}
LACKING = tomllib.loads(Path(__file__).with_name("differences.toml").read_text(encoding="utf-8"))["lacking"]
Outcome = tuple[Any, str]
"""The text of the value or the name of the error, and what was printed."""


def sessions() -> Iterator[tuple[str, str, list[doctest.Example]]]:
    finder, parser = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestParser()
    for module in (*MODULES, "_pydecimal"):  # whose examples are those of `decimal`, which is in C
        with warnings.catch_warnings():  # of members that are deprecated
            warnings.simplefilter("ignore")
            tests = finder.find(importlib.import_module(module))
        for found in tests:
            if found.examples and "._" not in found.name:
                yield found.name, module.removeprefix("_py"), found.examples
    for file in FILES:
        spec = find_spec(f"test.test_{file}")
        if spec is not None and spec.origin is not None:  # some distributions leave the tests out
            tree = parse(Path(spec.origin).read_text(encoding="utf-8"))
            texts = [str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
            yield f"test_{file}", "builtins", [each for text in texts for each in parser.get_examples(text)]


def parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def program(source: str) -> str:
    try:
        ast.parse(source, mode="eval")
    except SyntaxError:
        return f"{source}\nNone"
    return f"repr((\n{source}\n))"


def in_cpython(text: str, space: dict[str, Any]) -> Outcome:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = parse(text)
            last = tree.body.pop()
            assert isinstance(last, ast.Expr)
            exec(compile(tree, "<script>", "exec"), space)
            return eval(compile(ast.Expression(last.value), "<script>", "eval"), space), out.getvalue()
        except BaseException as problem:  # noqa: BLE001 - whatever the example raises
            return type(problem).__name__, out.getvalue()


def in_moonbox(text: str, repl: Any) -> Outcome | None:
    """None where it is refused before it runs."""
    run = repl.run(text)
    if run.error is None:
        return run.value, run.output
    refused = run.error.kind in ("check", "syntax") or run.error.message.startswith("scripts cannot ")
    return None if refused else (run.error.message.partition(":")[0].rpartition(".")[2], run.output)


def in_monty(text: str, session: Any) -> Outcome:
    out: list[str] = []
    try:
        step = session.feed_start(text, skip_type_check=True, print_callback=lambda _, text: out.append(text))
        while not isinstance(step, monty.MontyComplete):
            if isinstance(step, monty.FunctionSnapshot):
                unknown: Any = {"exception": NameError(step.function_name)}
                step = step.resume_auto() if step.is_os_function else step.resume(unknown)
            else:
                step = step.resume()
        return step.output, "".join(out)
    except monty.MontyError as problem:
        return str(problem).partition(":")[0].rpartition(".")[2], "".join(out)


@pytest.fixture(scope="module")
def pool() -> Iterator[Any]:
    with monty.Monty(max_processes=1) as pool:
        yield pool


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(language="python", limits=Limits(timeout=20)) as box:
        yield box


@pytest.mark.timeout(120)
def test_examples_of_cpython_mean_the_same(box: Sandbox, pool: Any) -> None:
    ours, differ, names, same, total = [], set(), set(), 0, 0
    for name, module, examples in sessions():
        names.add(name)
        members = [each for each in dir(importlib.import_module(module)) if not each.startswith("_")]
        used = " ".join(example.source for example in examples)
        lines = [f"from {module} import {each}" for each in members if each in used] if module != "builtins" else []
        space: dict[str, Any] = {"__name__": "__main__"}
        before, refused = name, False
        with box.repl() as repl, pool.checkout() as session:
            for line in lines:
                in_cpython(f"{line}\nNone", space)
                in_moonbox(f"{line}\nNone", repl)
                in_monty(f"{line}\nNone", session)
            for text in [program(example.source) for example in examples]:
                right, found, bare = in_cpython(text, space), in_moonbox(text, repl), in_monty(text, session)
                same += found == right
                total += 1
                before += text
                refused = refused or found is None  # what follows does not have its names
                lacks = refused and found is not None and found[0] == "NameError"
                if lacks or found in (None, right) or any(each in before for each in LACKING.get(module, ())):
                    continue
                if bare == right or module in ("heapq", "operator", "statistics", "string"):
                    ours.append((name, text, right, found))
                else:
                    differ.add(name)
    print(f"{same} of {total} mean the same")
    assert ours == []
    assert same > (450 if "test_genexps" in names else 150)
    if sys.version_info[:2] == (3, 11):  # others have other examples
        assert differ == LISTED & names
