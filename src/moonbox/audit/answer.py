"""The answer to the model: what a run returned and printed, or what went wrong and what to change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moonbox.compact import Clip, binary, pieces, shape, short
from moonbox.errors import ScriptError, UsageError
from moonbox.failures import failure_in
from moonbox.languages.registry import LANGUAGES, language
from moonbox.wording import counted, cut, one_line

if TYPE_CHECKING:
    from moonbox.audit.records import Call, Run
    from moonbox.languages.language import Texts

MIN_CHARS = 500
LISTED_CALLS = 20
_MOST_NOTES = 3
_LONGEST_NOTE = 150
_MOST_FAILURES = 5
_LONGEST_FAILURE = 200


def render(run: Run, max_chars: int = 20_000) -> str:
    """The text for the model, at most `max_chars` long; an error and its hint come first and are never cut away."""
    if max_chars < MIN_CHARS:
        raise UsageError(f"max_chars must be at least {MIN_CHARS}, not {max_chars}")
    if run.running:
        return "the run is still running"
    if run.language == "direct" and run.error is not None:
        return _problem(run.error, max_chars)  # one call: neither state nor other calls to speak of
    return _success(run, max_chars) if run.error is None else _failure(run, run.error, max_chars)


def json_reply(run: Run, text: str, max_chars: int) -> str:
    """The same as JSON: `result`, `output`, and `error` where the script failed; `text` is what `render` made of it.

    Several returned values are a list. What is too long is replaced by the text, cut, under `note`. `failures` has a
    sentence about each result that was nothing but a failure.
    """
    result: Any = run.values[0] if len(run.values) == 1 else list(run.values) or None
    reply: dict[str, Any] = {"result": result, "output": run.output}
    if failures := _failure_notes(run, max_chars):
        reply["failures"] = failures
    if run.error is not None:
        reply = {"error": {"kind": run.error.kind, "message": text}, "output": run.output}
    exact = _keeps_order(run)
    whole = "".join(pieces(reply, whole=True, exact=exact))
    room = max_chars
    while len(whole) > max_chars:  # JSON escapes characters, so that a text may need more room than its length
        room //= 2
        note = Clip([text], room).fit(room, _lines_note)
        if run.error is not None:
            reply = {"error": {"kind": run.error.kind, "message": note}, "output": ""}
        else:
            reply = {"result": None, "output": "", "note": f"too long for this reply, and cut: {note}"}
        whole = "".join(pieces(reply, whole=True, exact=exact))
    return whole


def _success(run: Run, room: int) -> str:
    notes = [_PRINTED_TOO_MUCH.format(run.output_cut)] if run.output_cut else []
    if run.state_lost:
        notes.append(_STATE_LOST)
    notes += _failure_notes(run, room)
    end = "".join(f"\n[{note}]" for note in notes)
    for note in _check_notes(run):
        if len(end) + len(note) < room // 2:
            end += f"\n[{note}]"
    room -= len(end)
    printed = Clip([run.output.rstrip()], room)
    if not run.values:
        if printed.total:
            return printed.fit(room, _output_note(run)) + end
        return f"ok ({_texts(run.language).no_value})" + end
    returned = Clip(_returned(run.values, exact=_keeps_order(run)), room)
    if not printed.total:
        return returned.fit(room, _value_note(run)) + end
    room -= len(_RETURNED) + len(_PRINTED)
    for_value, for_output = _shares([returned.total, printed.total], room)
    output = printed.fit(for_output, _output_note(run))
    return _PRINTED + output + _RETURNED + returned.fit(for_value, _value_note(run)) + end


def _failure(run: Run, error: ScriptError, room: int) -> str:
    state = _state(run, error)
    cut = f"\n[{_PRINTED_TOO_MUCH.format(run.output_cut)}]" if run.output_cut else ""
    cut += "".join(f"\n[{note}]" for note in _check_notes(run))
    problem = _problem(error, room * 6 // 10)
    room -= len(problem) + len(state) + len(cut) + len(_PRINTED) + 4
    calls = Clip(["\n".join(_call_lines(run.calls, error))], max(room, 0)) if run.calls else None
    printed = Clip([run.output.rstrip()], max(room, 0))
    for_calls, for_output = _shares([calls.total if calls else 0, printed.total], room)
    text = problem + state
    if calls:
        text += ("\n" if state else "\n\n") + calls.fit(for_calls, _lines_note)
    if printed.total:
        text += f"\n\n{_PRINTED}" + printed.fit(for_output, _output_note(run))
    return text + cut


def line_naming(tool: str, source: str) -> int | None:
    """The only line of the script that names the tool."""
    name = re.compile(rf"\b{re.sub('[^A-Za-z0-9]', '.', tool.rpartition('.')[2])}\b")
    lines = [number for number, text in enumerate(source.splitlines(), 1) if name.search(text)]
    return lines[0] if len(lines) == 1 else None


def _failure_notes(run: Run, room: int) -> list[str]:
    """A sentence about each result that was nothing but a failure; calls of one tool that say the same share one.

    A direct call has none: its value is the failure.
    """
    if run.language == "direct":
        return []
    groups: dict[tuple[str, str], list[int]] = {}
    for call in run.calls:
        if (text := _returned_failure(call)) is not None:
            groups.setdefault((call.tool, text), []).append(call.index)
    named = list(groups.items())[: max(1, min(_MOST_FAILURES, room // 1_000))]
    notes = []
    for (tool, text), (first, *others) in named:
        line = line_naming(tool, run.source)
        which = f"calls {first:,} and {len(others):,} more" if others else f"call {first:,}"
        where = one_line(tool, 100) + (f", line {line}" if line is not None else "")
        said = _quoted(text, min(_LONGEST_FAILURE, room // 5))
        notes.append(f"{which} ({where}) returned a failure and raised no error: {said}")
    left = sum(map(len, groups.values())) - sum(len(calls) for _, calls in named)
    return [*notes, f"{counted(left, 'more call')} returned a failure"] if left else notes


def _returned_failure(call: Call) -> str | None:
    """What the call's result says if it is nothing but a failure that was not raised."""
    return failure_in(call.packed) if call.ok and call.packed is not None else None


def _quoted(text: str, longest: int) -> str:
    """Text of a tool as a JSON string on one line, so that it cannot be taken for text of moonbox."""
    return json.dumps(one_line(text, longest), ensure_ascii=False)


def _check_notes(run: Run) -> list[str]:
    """What is likely wrong with the script, a few lines of it at most."""
    failed_on = run.error.line if run.error is not None else None  # of that line the error says enough
    notes = [note for note in run.notes if note.line != failed_on]
    return [f"note: {cut(str(note), _LONGEST_NOTE)}" for note in notes[:_MOST_NOTES]]


def _problem(error: ScriptError, room: int) -> str:
    """What went wrong, where, and what to write instead, each of them there even when one is enormous."""
    hint = f"\nhint: {error.hint}" if error.hint else ""
    lines = error.traceback.strip("\n").splitlines()
    first = error.message.partition("\n")[0]
    if lines and len(first) > 9 and lines[0].endswith(first):
        del lines[0]  # it is in the headline already
    where = "".join(f"\n{line}" for line in lines)
    data = f"\ndata: {short(error.data, 500)}" if error.data is not None else ""
    parts = [Clip([part], room) for part in (_headline(error) + error.message, hint, where, data)]
    return "".join(
        part.fit(share, _lines_note)
        for part, share in zip(parts, _shares([part.total for part in parts], room), strict=True)
    )


def _headline(error: ScriptError) -> str:
    name = _KINDS.get(error.kind, error.kind)
    line = f" on line {error.line}" if error.line is not None else ""
    about = [item[:100] for item in (error.tool, error.code) if item and item not in error.message]
    about = [] if error.kind == "check" else about  # no call was made
    if error.limit:
        about.insert(0, error.limit)
    if error.retryable:
        about.append("may work if tried again")
    more = f" ({', '.join(about)})" if about else ""
    return f"{name}{line}{more}: "


def _state(run: Run, error: ScriptError) -> str:
    if run.state_lost:
        return f"\n\n{_STATE_LOST}"
    if error.kind in ("syntax", "check"):
        return "\n\nnothing was run; state is unchanged" if run.repl else "\n\nnothing was run"
    if not run.repl:  # a script by itself: whatever it had set is gone with it
        return ""
    return "\n\nstate kept: globals set before the error are still there"


def _call_lines(calls: Sequence[Call], problem: ScriptError) -> Iterator[str]:
    done = sum(_is_done(call) for call in calls)
    counts = ", ".join(part for part in (f"{done} ok" * (done > 0), _not_ok(len(calls) - done)) if part)
    yield f"calls already made ({counts}); do not repeat those that changed something:"
    first, last = (len(calls), 0) if len(calls) <= LISTED_CALLS else (LISTED_CALLS // 2, LISTED_CALLS // 2)
    for call in calls[:first]:
        yield _call_line(call, problem)
    if last:
        hidden = calls[first:-last]
        failed = _not_ok(sum(not _is_done(call) for call in hidden))
        yield f"… {counted(len(hidden), 'more call')}{f', {failed}' if failed else ', all ok'} …"
        for call in calls[-last:]:
            yield _call_line(call, problem)


def _is_done(call: Call) -> bool:
    return call.ok and _returned_failure(call) is None


def _not_ok(count: int) -> str:
    return f"{count} not ok" if count else ""


def _call_line(call: Call, problem: ScriptError) -> str:
    what = _STATUSES.get(call.status, call.status)
    if (text := _returned_failure(call)) is not None:
        what = f"returned a failure: {_quoted(text, 160)}"
    if call.error is not None:
        in_headline = problem.kind == "tool" and call.error.message == problem.message
        message = call.error.message if call.status == "error" and not in_headline else ""
        what += f" ({call.error.code[:60]})" if call.status == "error" else ""
        what += f": {' '.join(message.split())[:160]}" if message else ""
    return f"{call.index}. {call.tool[:100]} {short(call.arguments, 100)}: {what}"


def _returned(values: Sequence[Any], *, exact: bool) -> Iterator[str]:
    if len(values) == 1:
        value = values[0]
        if isinstance(value, str):
            yield value if value.strip() else f'"{value}"'  # providers refuse an answer without a visible character
        elif isinstance(value, bytes):
            yield binary(value) if value.strip() else f'"{binary(value)}"'
        else:
            yield from pieces(value, whole=True, exact=exact)
        return
    yield f"{len(values)} values:"
    for number, value in enumerate(values, 1):
        yield f"\n{number}: "
        yield from pieces(value, whole=True, exact=exact)


def _keeps_order(run: Run) -> bool:
    """Whether the script's language has an order of keys, and floats that are no integers."""
    return run.language in LANGUAGES and LANGUAGES[run.language].ordered  # others are calls without a script


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """Divide the room so that no part gets more than it wants, or less than it could have."""
    shares = [0] * len(wanted)
    open_ = sorted(range(len(wanted)), key=lambda index: wanted[index])
    room = max(room, 0)
    for done, index in enumerate(open_):
        shares[index] = min(wanted[index], room // (len(open_) - done))
        room -= shares[index]
    return shares


def _value_note(run: Run) -> Callable[[int, int], str]:
    """Says how much of a value is missing and how a script gets at it."""
    value = run.values[0] if len(run.values) == 1 else list(run.values)
    advice = f"the value is {shape(value)}. Return less: filter, count or sum in the script. To read on, "
    if run.kept:
        advice = f"the value is {shape(value)}, kept as {run.kept}. Read on without calling anything again: "

    def note(left_out: int, total: int) -> str:
        missing = f"{left_out:,} of {total:,} characters left out here"
        return f"\n[… {missing}; {advice}{_part_of(value, run.language, run.kept)} …]\n"

    return note


def _part_of(value: Any, name: str, kept: str) -> str:
    """How to return one part of a value, in the words of the script's language."""
    texts = _texts(name)
    if isinstance(value, dict):
        names = (key for key in value if isinstance(key, str) and re.fullmatch(r"[A-Za-z_]\w{0,40}", key, re.ASCII))
        key = max(
            names, key=lambda name: len(value[name]) if isinstance(value[name], list | dict | str) else 0, default="key"
        )
        part = texts.part_of_map.replace("big", kept or "big").format(key=key)
    else:
        part = (texts.part_of_list if isinstance(value, list) else texts.part_of_text).replace("big", kept or "big")
    return part if kept else f"{texts.keep}: {part}"


def _texts(name: str) -> Texts:
    """The words of a run's language; a call without a script, and a language of another version, have the default's."""
    return (LANGUAGES.get(name) or language()).texts


def _output_note(run: Run) -> Callable[[int, int], str]:
    advice = "print less, or return only what is needed"
    if run.kept_output:
        part = _texts(run.language).part_of_text.replace("big", run.kept_output)
        advice = f"kept as {run.kept_output}. Read on: {part}"

    def note(left_out: int, total: int) -> str:
        return f"\n[… {left_out:,} of {total:,} printed characters left out here; {advice} …]\n"

    return note


def _lines_note(left_out: int, total: int) -> str:
    return f"\n… [{left_out:,} of {total:,} characters left out] …\n"


_PRINTED = "printed:\n"
_RETURNED = "\n\nreturned:\n"
_PRINTED_TOO_MUCH = "{:,} more bytes were printed and are lost: print less, or return a value"
_STATE_LOST = "state was lost: globals set before are gone, the next run starts afresh"
_KINDS = {
    "syntax": "syntax error",
    "runtime": "runtime error",
    "tool": "tool error",
    "limit": "limit reached",
    "check": "check failed",
}
_STATUSES = {
    "error": "failed",
    "denied": "denied",
    "timeout": "timed out, may still have taken effect",
    "cancelled": "cancelled, may have taken effect",
    "in_flight": "in flight when the run ended, may have taken effect",
}
