"""Records go to JSON and back without loss."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from moonbox import Limits, Sandbox
from moonbox.audit.records import CALL_STATUSES, Call, CallError, Observation, Run, Usage
from moonbox.errors import ERROR_KINDS, LIMIT_NAMES, Frame, ScriptError
from moonbox.values import Packed, pack
from tests.long import times

text = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats()
moments = st.floats(0, 1e11)
keys = st.one_of(text, numbers, st.sampled_from(["$bytes", "$float", "$pairs"]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, floats, text, st.binary(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)
frames = st.builds(Frame, st.none() | st.integers(1, 99), text, st.none() | text, text)
errors = st.builds(
    lambda kind, message, **more: ScriptError(kind, message, **more),
    st.sampled_from(ERROR_KINDS),
    text,
    line=st.none() | st.integers(1, 999),
    column=st.none() | st.integers(1, 999),
    traceback=text,
    limit=st.none() | st.sampled_from(LIMIT_NAMES),
    hint=st.none() | text,
    code=st.none() | text,
    tool=st.none() | text,
    retryable=st.booleans(),
    data=values,
    frames=st.lists(st.builds(Frame, st.none() | st.integers(1, 99), text, st.none() | text, text), max_size=2).map(
        tuple
    ),
)
calls = st.builds(
    lambda **fields: Call(**fields),
    index=st.integers(1, 999),
    tool=text,
    arguments=values,
    status=st.sampled_from(CALL_STATUSES),
    packed=values.map(pack),
    error=st.none() | st.builds(CallError, text, text, st.booleans(), values, st.none() | text),
    started=moments,
    queued=moments,
    duration=moments,
    bytes_in=st.integers(0, 10**9),
    bytes_out=st.integers(0, 10**9),
    approval=st.sampled_from([None, "allowed", "always", "edited", "denied"]),
    retry_of=st.none() | st.integers(1, 999),
    batch=st.integers(0, 99),
)
usages = st.builds(
    Usage,
    wall=moments,
    cpu=moments,
    operations=st.none() | numbers,
    peak_memory=st.integers(0),
    calls=st.integers(0),
    bytes_in=st.integers(0),
    bytes_out=st.integers(0),
    native=st.booleans(),
)
runs = st.builds(
    lambda **fields: Run(**fields),  # its annotations are not there at run time
    id=text,
    source=text,
    language=st.sampled_from(["lua", "rhai"]),
    values=st.lists(values, max_size=3).map(tuple),
    output=text,
    output_cut=st.integers(0, 10**9),
    calls=st.lists(calls, max_size=3).map(tuple),
    usage=usages,
    error=st.none() | errors,
    started=moments,
    repl=text,
    number=st.integers(1, 999),
    seed=numbers,
    observations=st.lists(st.builds(Observation, text, values), max_size=2).map(tuple),
    state_lost=st.booleans(),
)


@settings(max_examples=times(150), deadline=None)
@given(runs)
def test_a_run_survives_the_way_to_a_dict_and_to_json_and_back(run: Run) -> None:
    as_dict = run.to_dict()
    json.dumps(as_dict, allow_nan=False)  # strict JSON, as the tags promise
    assert _exact(Run.from_dict(as_dict)) == _exact(run)
    assert _exact(Run.from_json(run.to_json())) == _exact(run)
    assert _exact(Run.from_json(run.to_json(indent=2).encode())) == _exact(run)
    assert json.loads(run.to_json()) == as_dict
    assert "\n" not in run.to_json()


def test_half_a_surrogate_pair_is_escaped_so_that_the_line_is_utf8() -> None:
    run = Run("a", "return 1", values=("\ud800", {"\udfff": "é"}), output="\udcff")
    assert run.to_json().encode()
    assert Run.from_json(run.to_json()) == run


def test_to_dict_shares_nothing_with_the_run() -> None:
    run = Run("a", "", values=([1, 2],), calls=(Call(1, "t", {"a": [1]}),))
    run.to_dict()["values"][0].append(3)
    run.to_dict()["calls"][0]["arguments"]["a"].append(3)
    assert run.value == [1, 2]
    assert run.calls[0].arguments == {"a": [1]}


def test_unknown_fields_are_ignored_and_missing_ones_take_defaults() -> None:
    data = {
        "id": "a",
        "source": "return 1",
        "invented_later": True,
        "usage": {"wall": 1.0, "watts": 3},
        "calls": [
            {"index": 1, "tool": "t", "arguments": {}, "colour": "red", "error": {"code": "c", "message": "m", "x": 1}}
        ],
    }
    run = Run.from_dict(data)
    assert run == Run("a", "return 1", usage=Usage(wall=1.0), calls=(Call(1, "t", {}, error=CallError("c", "m")),))


def test_ok_is_written_for_readers_and_not_read_back() -> None:
    run = Run("a", "", error=ScriptError("runtime", "no"), calls=(Call(1, "t", {}, "denied"),))
    data = run.to_dict()
    assert (data["ok"], data["calls"][0]["ok"]) == (False, False)
    assert not Run.from_dict({**data, "ok": True}).ok


def _exact(value: Any) -> Any:
    """Comparable down to the type, the sign of zero and NaN, which `==` cannot tell."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else value.hex())
    if isinstance(value, list | tuple):
        return (type(value).__name__, [_exact(item) for item in value])
    if isinstance(value, dict):
        return [(_exact(key), _exact(item)) for key, item in value.items()]
    if isinstance(value, ScriptError):
        return _exact({**value.to_dict(), "frames": value.frames})
    if isinstance(value, Packed):
        return _exact(value.value)
    if isinstance(value, Struct):
        return (type(value).__name__, {name: _exact(getattr(value, name)) for name in value.__struct_fields__})
    return (type(value).__name__, value)


def test_a_run_records_its_limits() -> None:
    with Sandbox(limits=Limits.quick(max_output=100), min_workers=0) as box, box.repl() as repl:
        assert repl.run("return 1").limits == Limits.quick(max_output=100)
        run = box.repl(limits=Limits(timeout=2)).run("return 1")
    assert run.limits == Limits.quick(timeout=2, max_output=100)
    assert Run.from_json(run.to_json()).limits == run.limits
    for damaged in ({"timeout": "x"}, {"max_memory": -1}, [1], "x", 5):
        assert Run.from_dict({**run.to_dict(), "limits": damaged}).limits is None
    assert Run.from_dict({**run.to_dict(), "limits": {**Limits().to_dict(), "max_later": 1}}).limits == Limits()
