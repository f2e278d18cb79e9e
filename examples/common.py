"""What the examples share: two tasks, a tool, and a model on loopback for those who have no key."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for the tool, and for the model on loopback

from expenses import get_expenses  # noqa: E402 - found through the path above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["EXPENSES", "PRIMES", "TASKS", "Endpoint", "Task", "endpoint", "get_expenses", "pretend", "show"]


@dataclass(frozen=True)
class Task:
    """A question, the script that a model may write for it, and the answer in plain Python."""

    question: str
    script: str
    expected: Callable[[], str]


def _travel() -> str:
    items = [item for employee in range(1, 21) for item in get_expenses(employee)]
    travel = [item.cents for item in items if item.category == "travel" and item.date < "2026-04-01"]
    return f"{sum(travel) / 100}"


def _ten_primes() -> str:
    primes = [number for number in range(2, 30) if all(number % divisor for divisor in range(2, number))]
    return str(sum(primes[:10]))


PRIMES = Task(
    question="What is the sum of the first ten prime numbers? Compute it with the tool.",
    script="""
local primes, number, sum = {}, 2, 0
while #primes < 10 do
  local prime = true
  for _, divisor in ipairs(primes) do
    if number % divisor == 0 then prime = false end
  end
  if prime then primes[#primes + 1], sum = number, sum + number end
  number = number + 1
end
return sum
""",
    expected=_ten_primes,
)
EXPENSES = Task(
    question="What did the employees 1 to 20 spend on travel in January to March 2026, all together, in euros?",
    script=(HERE / "expenses.lua").read_text(encoding="utf-8"),
    expected=_travel,
)
TASKS = (PRIMES, EXPENSES)


@dataclass(frozen=True)
class Endpoint:
    """Where the model is."""

    url: str | None
    """Of the server on loopback; None for the provider itself, whose client knows its own."""
    key: str
    model: str

    def at(self, path: str) -> str | None:
        """The URL with this path, or None."""
        return None if self.url is None else self.url + path


@contextlib.contextmanager
def endpoint(key: str, model: str, brain: Callable[[Any], Any] | None = None) -> Iterator[Endpoint]:
    """The provider, if the environment variable `key` is set; else, and with --loopback, a server in this process.

    The server speaks the provider's wire format and refuses what the provider would refuse. Its model is `brain`, by
    default `pretend`.
    """
    found = os.environ.get(key)
    if found and "--loopback" not in sys.argv:
        yield Endpoint(None, found, os.environ.get("MOONBOX_MODEL", model))
        return
    from wire import serve

    if "--loopback" not in sys.argv:
        print(f"({key} is not set: a model on loopback answers)\n")
    with serve(brain or pretend) as wire:
        yield Endpoint(wire.url, "loopback", "loopback")
        assert not wire.refused, wire.refused


def pretend(seen: Any) -> Any:
    """A model that knows the two tasks: it writes the script, and then says what came out."""
    from wire import Say, Use

    if seen.answered:
        return Say(f"It is {seen.results[-1].text}.")
    task = next(task for task in TASKS if task.question in seen.prompts[-1])
    return Use("lua_repl", {"source_code": task.script})


def show(task: Task, answer: str, scripts: Iterable[str] = ()) -> None:
    """The question, what the model wrote, and its answer beside the right one."""
    print(task.question)
    for script in scripts:
        print("\n".join(f"    {line}" for line in script.strip().splitlines()))
    print(f"{answer}    (expected: {task.expected()})\n")
    if "--loopback" in sys.argv and task.expected() not in answer:
        raise SystemExit(f"the answer should hold {task.expected()}")
