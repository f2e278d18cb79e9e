"""Attacks on the compiler for Rhai: it works inside the jail, on the run's clock and memory, and spoils nothing."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest

from moonbox import Limits, Sandbox
from tests.long import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = Limits(timeout=60, max_memory=24 * 1024 * 1024)  # none of them takes a second; a busy machine is slower
CALLS = 80
ATTACKS = {
    "functions in scope of each other": (
        "fn c(){1} fn b(){" + "c!();" * CALLS + "} fn a(){" + "b!();" * CALLS + "} " + "a!();" * CALLS
    ),
    "functions in scope of themselves": "fn a(){" + "a!();" * CALLS + "} " + "a!();" * CALLS,
    "statements": "let x = 0;" + "x += 1;" * 35_000,
    "array": "let x = [" + "[1,2,3]," * 31_000 + "];",
    "closures": "let f = 0;" + "f = |x| x + f;" * 17_000,
    "interpolated constants": "`" + "${1}${'a'}" * 24_000 + "`",
    "constants in text": "const A = 1;" + "`${A}${A}${A}`;" * 15_000,
    "names": ";".join(f"let a{number} = 1" for number in range(15_000)),
    "looking for variables": "".join(f'let a{number} = is_def_var("b");' for number in range(7_000)),
    "captured names": "".join(f"let a{n} = 1;" for n in range(5_000)) + "|| [" + "a1," * 40_000 + "]",
    "brackets": "[" * 240_000,
    "nested blocks": "{" * 240_000,
    "else without end": "if x { 1 }" + " else if x { 1 }" * 15_000,
    "operators": "x" + " + x" * 60_000,
    "comments": "/*" * 120_000,
    "quotes": '"' * 249_999,
    "backticks": "`${" * 80_000,
    "hashes": "#" * 249_999,
    "switch": "switch x {" + ",".join(f"{n} => {n}" for n in range(17_000)) + "}",
    "too long": "1;" * 200_000,
    "bytecode": "\x1bLua\x54\0",
    "halves of characters": "\udc80" * 1_000,
}


SOME = ("functions in scope of themselves", "captured names", "brackets", "quotes", "bytecode")
"""Those that every run tries inline too."""


@pytest.fixture(scope="module", params=["process", "inline"])
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(language="rhai", isolation=request.param, limits=LIMITS) as box:
        yield box


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("box", ["process"], indirect=True)
def test_the_host_takes_no_part_in_it(box: Sandbox, name: str) -> None:
    """What is compiled costs the host no memory: only the text goes out, and an answer comes back."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends_by_a_limit_of_the_run(box, name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024  # KiB


@pytest.mark.parametrize("name", ATTACKS if LONG else SOME)
@pytest.mark.parametrize("box", ["inline"], indirect=True)
def test_it_ends_by_a_limit_of_the_run(box: Sandbox, name: str) -> None:
    ends_by_a_limit_of_the_run(box, name)


def ends_by_a_limit_of_the_run(box: Sandbox, name: str) -> None:
    with box.repl() as repl:
        assert repl.run("let kept = 42;").ok
        run = repl.run(ATTACKS[name])
        if run.error is not None:
            assert run.error.kind in ("syntax", "limit", "runtime"), run.error
            assert run.error.limit in (None, "time", "memory"), run.error
        assert not run.state_lost
        assert repl.run("kept").value == 42


def test_time_for_compiling_is_the_run_s(box: Sandbox) -> None:
    limits = Limits(timeout=0.05, max_memory=256 * 1024 * 1024)
    with box.repl() as repl:
        assert repl.run("let kept = 42;").ok
        run = repl.run(ATTACKS["statements"], limits=limits)
        assert run.error is not None
        assert (run.error.kind, run.error.limit, run.state_lost) == ("limit", "time", False)
        assert repl.run("kept").value == 42


def test_memory_for_compiling_is_the_run_s() -> None:
    with Sandbox(language="rhai", limits=Limits(timeout=60, max_memory=2 * 1024 * 1024)) as box, box.repl() as repl:
        run = repl.run("let kept = 1; " + "kept += 1;" * 20_000)
        assert run.error is not None
        assert (run.error.kind, run.error.limit) == ("limit", "memory")
        assert repl.run("let other = 2; other").value == 2


def test_operations_are_the_script_s_alone() -> None:
    few = Limits(max_operations=10)
    with Sandbox(language="rhai", limits=few) as box, box.repl() as repl:
        long = repl.run("if false { " + "print(1);" * 5_000 + " } 1 + 1")
        assert long.ok, long.error
        assert long.usage.operations == repl.run("1 + 1").usage.operations
        refused = repl.run("let")
        assert refused.error is not None
        assert (refused.error.kind, refused.usage.operations) == ("syntax", 0)
