"""Reports: what a page shows of a run besides its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.audit.economy import economy_of
from moonbox.codemode.catalog import rough_tokens
from moonbox.http.playground import call_dict

if TYPE_CHECKING:
    from moonbox.audit.records import Run

__all__ = ["run_report", "timeline_of"]


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
