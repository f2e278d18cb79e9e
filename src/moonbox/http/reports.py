"""Runs as pages show them: calls on a timeline, values that fit a page, and what the model was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.audit.reports import economy_of
from moonbox.codemode.catalog import rough_tokens
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from moonbox.audit.records import Call, Run

__all__ = ["call_dict", "media_of", "run_dict", "run_report", "timeline_of"]

_LARGEST_VALUE = 2_000_000


def run_report(run: Run) -> dict[str, Any]:
    """The timeline, what the model was shown, and what that spared; tokens are estimates."""
    answer = run.for_model()
    economy = economy_of(run, answer, rough_tokens)
    return {
        "timeline": timeline_of(run),
        "model": {"text": answer, "tokens": economy.answer},
        "economy": economy.to_dict(),
    }


def timeline_of(run: Run) -> dict[str, Any]:
    """When each call came, waited and worked."""
    return {"started": run.started, "wall": run.usage.wall, "calls": [call_dict(call) for call in run.calls]}


def call_dict(call: Call) -> dict[str, Any]:
    """A call as the timeline needs it: without its arguments and result."""
    return {
        "index": call.index,
        "tool": call.tool,
        "status": call.status,
        "started": call.started,
        "queued": call.queued,
        "duration": call.duration,
        "batch": call.batch,
        "retry_of": call.retry_of,
        "approval": call.approval,
    }


def run_dict(run: Run) -> dict[str, Any]:
    """A run as the playground shows it: without its calls, and without values that are too large for a page."""
    small = run.usage.bytes_out < _LARGEST_VALUE
    return {
        "id": run.id,
        "ok": run.ok,
        "values": [to_jsonable(value) for value in run.values] if small else [],
        "large": not small,
        "media": media_of(run),
        "output_cut": run.output_cut,
        "calls": len(run.calls),
        "usage": run.usage.to_dict(),
        "error": None if run.error is None else to_jsonable(run.error.to_dict()),
        "state_lost": run.state_lost,
    }


def media_of(run: Run) -> list[dict[str, Any]]:
    """What the script returned or showed of images, sounds and files: where they are, without their bytes."""
    return [
        {"media": medium.address, "type": medium.type, "size": medium.size, "name": medium.name} for medium in run.media
    ]
