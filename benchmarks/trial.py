"""Gives office tasks to a model, with direct calls and with scripts in each language, and writes a page of figures.

    python benchmarks/trial.py                                       the recorded model; writes benchmarks/trial.md
    python benchmarks/trial.py --provider anthropic --model NAME     a real one; writes trial-NAME.md
    python benchmarks/trial.py --provider openai --base-url http://localhost:11434/v1 --model NAME

The shop, the tasks and the recorded model are in benchmarks/trials/.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

from trials import measure  # noqa: E402 - found only from here on
from trials.page import page  # noqa: E402
from trials.providers import PROVIDERS, RECORDED, opened  # noqa: E402
from trials.tasks import TASKS  # noqa: E402

from moonbox.errors import MoonboxError, UsageError  # noqa: E402
from moonbox.suggest import unknown  # noqa: E402

PAGE = HERE / "trial.md"


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    try:
        ways = _chosen("way", options.ways, measure.WAYS)
        names = _chosen("task", options.tasks, [task.name for task in TASKS])
        text = page(trial(options.provider, options.model, options.base_url, ways, names))
    except MoonboxError as problem:
        raise SystemExit(f"trial: {problem}") from None
    print(text, end="")
    if options.write:
        path = options.page or _page_of(options.model)
        path.write_text(text, encoding="utf-8")
        print(f"written to {path}", file=sys.stderr)


def trial(
    provider: str, model: str, base_url: str | None, ways: tuple[str, ...] = measure.WAYS, names: tuple[str, ...] = ()
) -> measure.Results:
    """All figures. `names` are tasks of the shop; with some of them alone, the other parts are left out."""
    languages = [way for way in ways if way != "direct"] if not names else []
    with opened(provider, model, base_url) as asked:
        tasks = {way: measure.tasks(asked, way, names) for way in ways}
        errands = {way: measure.errands(asked, way) for way in languages}
    lengths = {way: measure.lengths(way) for way in languages} if model == RECORDED else {}
    return measure.Results(provider, model, tasks, errands, lengths)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--provider", default="openai", help=f"one of {', '.join(PROVIDERS)}")
    parser.add_argument("--model", default=RECORDED, help="the provider's name of it; without it, a recorded model")
    parser.add_argument("--base-url", help="where a server compatible with the provider's listens")
    parser.add_argument("--ways", default=",".join(measure.WAYS))
    parser.add_argument("--tasks", default="", help="only these tasks of the shop, separated by commas")
    parser.add_argument("--page", type=Path, help="the file to write")
    parser.add_argument("--no-write", dest="write", action="store_false")
    return parser.parse_args(arguments)


def _chosen(what: str, given: str, known: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    chosen = tuple(name for name in given.split(",") if name)
    for name in chosen:
        if name not in known:
            raise UsageError(unknown(what, name, known))
    return chosen


def _page_of(model: str) -> Path:
    return PAGE if model == RECORDED else Path(f"trial-{re.sub(r'[^A-Za-z0-9.-]+', '-', model)}.md")


if __name__ == "__main__":
    main()
