"""The long fuzzing of cost: `python -m tests.costs.fuzz --minutes 60`. Prints each finding and how to repeat it."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from random import Random
from typing import TYPE_CHECKING

from tests.costs.meter import measure
from tests.costs.targets import targets

if TYPE_CHECKING:
    from tests.costs.targets import Target

__all__ = ["attempt", "main"]


def attempt(target: Target, seed: int, start: int, *, cpu: bool = False) -> str | None:
    """Measure one family of inputs; what grows, or None. What grows must do so again on other sizes."""
    growth = measure(target.work, target.make(Random(seed)), start, cpu=cpu)
    if growth.problem is None:
        return None
    return measure(target.work, target.make(Random(seed)), start * 3 // 2, cpu=cpu).problem


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--size", type=int, default=20_000, help="bytes of the smallest input of a family")
    parser.add_argument("--only", default="", help="targets with this in their name")
    options = parser.parse_args(arguments)
    logging.disable()  # what scripts log would drown the findings
    chosen = [target for target in targets() if options.only in target.name]
    deadline, seed, rounds, findings = time.monotonic() + options.minutes * 60, options.seed, 0, 0
    while time.monotonic() < deadline:
        for target in chosen:
            if time.monotonic() >= deadline:
                break
            rounds += 1
            problem = attempt(target, seed, options.size, cpu=True)
            if problem is not None:
                findings += 1
                print(
                    f"{target.name}: {problem}\n  again: --seed {seed} --only '{target.name}' --minutes 0.1", flush=True
                )
        seed += 1
    print(f"{rounds:,} families over {len(chosen)} targets, seeds {options.seed} to {seed - 1}, findings: {findings}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
