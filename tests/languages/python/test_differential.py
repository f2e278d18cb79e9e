"""Programs that mean in moonbox what they mean in CPython: generated ones, run by both and by bare Monty.

What a program appends to `out`, the type of its error and the line of it are compared. A difference that bare Monty
has, too, is Monty's, and must be in differences.toml, which docs/python.md shows; any other one fails.
"""

from __future__ import annotations

import random
import tomllib
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic_monty as monty
import pytest

from moonbox import Limits, Sandbox
from tests.languages.python.programs import HEAD, Programs
from tests.long import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 20261118
MANY = 20_000 if LONG else 500
AT_ONCE = 100
KNOWN = tomllib.loads(Path(__file__).with_name("differences.toml").read_text(encoding="utf-8"))["difference"]
TAIL = """

def run_all(programs):
    found = []
    for program in programs:
        out = []
        try:
            program(out)
            end = ""
        except BaseException as problem:
            end = type(problem).__name__
        try:
            found.append([repr(out), end])
        except BaseException as problem:
            found.append(["no text", type(problem).__name__])
    return found
"""


def as_functions(programs: list[str]) -> str:
    made = (f"def p{at}(out):\n    " + text.replace("\n", "\n    ") + "\n" for at, text in enumerate(programs))
    names = ", ".join(f"p{at}" for at in range(len(programs)))
    return f"{HEAD}{TAIL}\n" + "\n".join(made) + f"\nresult = run_all([{names}])\nresult"


def by_cpython(source: str) -> Any:
    space: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, "<script>", "exec"), space)
    return space["result"]


def line_in_cpython(source: str) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, "<script>", "exec"), {})
    except BaseException as problem:  # noqa: BLE001 - whatever the program raises
        return [
            frame.lineno or 0 for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == "<script>"
        ][-1]
    return 0


def by_monty(pool: Any, source: str) -> Any:
    """What bare Monty makes of it; None where it refuses the text."""
    with pool.checkout() as session:
        try:
            step = session.feed_start(source, skip_type_check=True)
            while not isinstance(step, monty.MontyComplete):
                step = step.resume_auto() if getattr(step, "function_name", "") == "import" else step.resume()
        except monty.MontyError:
            return None
        return step.output


def is_known(program: str, right: list[str], found: list[str], bare: Any) -> bool:
    for each in [known for known in KNOWN if "contains" in known]:
        one, other = each.get("alike", ["", ""])
        is_alike = [text.replace(one, other) for text in right] == [text.replace(one, other) for text in found]
        is_same = bare is not None and list(bare[0]) == found  # where the program catches the error
        if each["contains"] in program and (is_alike if one else is_same or found[1] == each["error"]):
            return True
    return False


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(language="python", limits=Limits(timeout=60, max_string=10**7), check=False) as box:
        yield box


@pytest.mark.timeout(3600 if LONG else 120)
def test_programs_mean_what_they_mean_in_cpython(box: Sandbox) -> None:
    print(f"seed {SEED}, {MANY} programs")
    make = Programs(random.Random(SEED))
    ours: list[Any] = []
    of_monty: list[Any] = []
    raising: list[str] = []
    with monty.Monty(max_processes=1) as pool:
        for _ in range(0, MANY, AT_ONCE):
            programs = [make.program() for _ in range(AT_ONCE)]
            expected, run = by_cpython(as_functions(programs)), box.run(as_functions(programs))
            assert run.error is None, (run.error, as_functions(programs))
            for program, right, found in zip(programs, expected, run.value, strict=True):
                raising += [program] if right[1] else []
                if found == right:
                    continue
                bare = by_monty(pool, as_functions([program]))
                ends = None if bare is None else bare[0][1]
                alike = ends not in ("", right[1]) or list(bare[0]) == found  # or it has what only moonbox runs
                (of_monty if alike and is_known(program, right, found, bare) else ours).append(
                    (program, right, found, bare)
                )
    print(f"{len(raising)} raise; {len(of_monty)} differ as Monty does")
    assert ours == []
    missing = [each["contains"] for each in KNOWN if "error" in each]
    wrong = []
    for program in raising[: len(raising) if LONG else 40]:
        source = f"{HEAD}\nout = []\n{program}\n"
        run, line = box.run(source), line_in_cpython(source)
        if run.error is not None and run.error.line != line and not any(text in program for text in missing):
            wrong.append((program, line, run.error.line, run.error.message))
    assert wrong == []


def test_the_page_shows_every_difference() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs/python.md").read_text(encoding="utf-8").split())
    assert [each["what"] for each in KNOWN if each["what"] not in page] == []
