"""What may be given for one run, and how that joins what its Repl and Sandbox have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from moonbox.errors import UsageError
from moonbox.limits import Limits
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.record import ScriptProgress

MOST_LABELS = 16
LONGEST_LABEL = 256
CONVERSATION = "conversation"
"""The label that code mode sets: it is possible beside as many others as are allowed."""
_LABEL_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")


class RunOptions(TypedDict, total=False):
    """The keyword arguments of `Repl.run`, and of all that runs scripts.

    limits      what the run may spend; only the fields that were given change
    timeout     seconds; the same as `limits=Limits(timeout=…)`
    inputs      globals of this run only
    context     what tools find as `Context.extra`, over the Sandbox's; it is not written to the trail
    labels      short texts by name for the trail, such as {"user": "ann"}: for whom the run is, and why
    on_call     called with each call's record entry when it starts and when it ends, instead of the Sandbox's
    on_output   called with what the script prints, while it runs, instead of the Sandbox's
    on_progress called with a ScriptProgress when the script calls `progress(done, total, text)`
    run_id      the id of the Run, chosen before it begins; no other run may have it
    """

    limits: Limits | None
    timeout: float | None
    inputs: Mapping[str, Any] | None
    context: Mapping[str, Any] | None
    labels: Mapping[str, str] | None
    on_call: Callable[[CallEntry], None] | None
    on_output: Callable[[str], None] | None
    on_progress: Callable[[ScriptProgress], None] | None
    run_id: str | None


def merged(base: RunOptions, options: RunOptions) -> RunOptions:
    """The options over `base`, which has been through here: limits, contexts and labels are put together."""
    given = _checked(options)
    before: Any = base
    both: Any = {**base, **given}
    if "limits" in base and "limits" in given:
        both["limits"] = given["limits"].over(base["limits"])
    for name in ("context", "labels"):
        if name in base and name in given:
            both[name] = {**before[name], **given[name]}
    if (count := len(both.get("labels", {}).keys() - {CONVERSATION})) > MOST_LABELS:
        raise UsageError(f"there are {count} labels; at most {MOST_LABELS} are possible")
    result: RunOptions = both
    return result


def label_text(text: str) -> str:
    """The text as a label has it; the start of its digest where it is too long or not printable."""
    return text if len(text) <= LONGEST_LABEL and text.isprintable() else digest(text)


def digest(text: str) -> str:
    """The first 16 digits of the SHA-256 of a text: a label for what must not be written itself."""
    import hashlib  # here: only runs of a server need it

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def check_callbacks(**callbacks: Any) -> None:
    """Raise UsageError for one that is neither None nor callable."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise UsageError(f"{name} must be a function, not {callback!r}")


def check_mapping(option: str, given: Any) -> None:
    """Raise UsageError where it is not a mapping from strings."""
    if not isinstance(given, Mapping):
        raise UsageError(f"{option} must be a mapping from names to values, not {given!r}")
    for name in given:
        if not isinstance(name, str):
            raise UsageError(f"{option} must have strings as names, not {name!r}")


def check_seconds(option: str, seconds: Any) -> None:
    """Raise UsageError where it is not a positive number."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise UsageError(f"{option} must be a positive number, not {seconds!r}")


def check_limits(limits: Any) -> None:
    """Raise UsageError where it is not a Limits value or None."""
    if limits is not None and not isinstance(limits, Limits):
        raise UsageError(f"limits must be a Limits value, for example Limits(timeout=10); not {limits!r}")


def _checked(options: RunOptions) -> dict[str, Any]:
    """The options that were given. A timeout becomes part of the limits."""
    for name in options:
        if name not in RunOptions.__annotations__:
            raise UsageError(unknown("option", name, RunOptions.__annotations__))
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    check_callbacks(**{name: given.get(name) for name in ("on_call", "on_output", "on_progress")})
    check_limits(given.get("limits"))
    if "timeout" in given:
        given["limits"] = given.get("limits", Limits()).replace(timeout=given.pop("timeout"))
    if not isinstance(given.get("run_id", ""), str):
        raise UsageError(f"run_id must be a string, not {given['run_id']!r}")
    if "context" in given:
        check_mapping("context", given["context"])
    if "labels" in given:
        _check_labels(given["labels"])
    return given


def _check_labels(labels: Any) -> None:
    if not isinstance(labels, Mapping):
        raise UsageError(f"labels must be a mapping from strings to strings, not {labels!r}")
    for name, text in labels.items():
        if not isinstance(name, str) or not _LABEL_NAME.fullmatch(name):
            raise UsageError(
                f"the name of a label must be 1 to 64 letters, digits or any of _ . - /, not {str(name)[:100]!r}"
            )
        if not isinstance(text, str):
            raise UsageError(f"the label {name!r} must be a string, not {text!r}")
        if len(text) > LONGEST_LABEL:
            raise UsageError(f"the label {name!r} has {len(text)} characters; at most {LONGEST_LABEL} are possible")
        if not text.isprintable():
            raise UsageError(f"the label {name!r} must be one line of printable text")
