"""The logs story: four services, 1,200 lines, the one that failed most and its commonest failure."""

from __future__ import annotations

import collections
import random
from typing import Any

from moonbox import tool
from tokens.stories.story import HERE, Story

SERVICES = ("checkout", "inventory", "mail", "search")
LINES = 300
_PATHS = ("/orders", "/orders/{id}", "/items", "/items/{id}/stock", "/send", "/query", "/suggest")
_FAILURES = ("upstream timed out", "connection reset", "deadlock detected", "out of disk space")


@tool(hints={"read_only": True})
def list_services() -> list[str]:
    """Names of the services that write logs."""
    return list(SERVICES)


@tool(hints={"read_only": True})
def get_logs(service: str, hour: int) -> list[dict[str, Any]]:
    """Log lines of a service in one hour of last night (0 to 23): time, level, status, path, millis, trace, message."""
    chance = random.Random(f"{service} {hour}")
    failing = 0.12 if service == "inventory" else 0.03
    return [_line(chance, hour, failing) for _ in range(LINES)]


@tool(hints={"read_only": True})
def get_trace(trace: str) -> dict[str, Any]:
    """The spans of one request."""
    return {"trace": trace, "spans": []}


def _line(chance: random.Random, hour: int, failing: float) -> dict[str, Any]:
    failed = chance.random() < failing
    return {
        "time": f"2026-03-02T{hour:02}:{chance.randrange(60):02}:{chance.randrange(60):02}Z",
        "level": "error" if failed else "info",
        "status": chance.choice((500, 502, 503)) if failed else 200,
        "path": chance.choice(_PATHS),
        "millis": chance.randrange(800, 30_000) if failed else chance.randrange(3, 400),
        "trace": f"{chance.getrandbits(64):016x}",
        "message": chance.choices(_FAILURES, (5, 3, 2, 1))[0] if failed else "request served",
    }


def _answer(results: list[Any]) -> dict[str, Any]:
    failed = {
        name: [line for line in lines if line["status"] >= 500]
        for name, lines in zip(SERVICES, results[1:], strict=True)
    }
    worst = max(failed, key=lambda name: len(failed[name]))
    message, times = collections.Counter(line["message"] for line in failed[worst]).most_common(1)[0]
    return {"service": worst, "failures": len(failed[worst]), "message": message, "times": times}


STORY = Story(
    name="logs",
    title="logs: 4 services, 1,200 lines, the commonest failure of the worst",
    tools=(list_services, get_logs, get_trace),
    question="Which service failed most between 3 and 4 last night, and what was its commonest error?",
    calls=(("list_services", {}), *(("get_logs", {"service": name, "hour": 3}) for name in SERVICES)),
    answer=_answer,
    reply=lambda found: (
        f"The {found['service']} service failed most, {found['failures']} times; "
        f'its commonest error is "{found["message"]}" ({found["times"]} times).'
    ),
    script=HERE / "logs.lua",
)
