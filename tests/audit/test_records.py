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
from tests.strategies import INTEGERS, plain_values

text = st.text(max_size=20)
moments = st.floats(0, 1e11)
keys = st.one_of(text, INTEGERS, st.sampled_from(["$bytes", "$float", "$pairs"]))
values = plain_values(text=text, keys=keys, max_leaves=12)
BY_TYPE: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(0, 10**9),
    float: moments,
    str: text,
    type(None): st.none() | text,
}


def made(kind: Any, **special: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records of that kind; fields that are not given here are of the types of their defaults."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    fields = {name: BY_TYPE.get(type(value)) for name, value in zip(names[::-1], defaults[::-1], strict=False)}
    found = {name: field for name, field in fields.items() if field is not None}
    return st.builds(lambda **given: kind(**given), **found | special)  # annotations are not there at run time


numbers = st.none() | st.integers(1, 999)
errors = st.builds(
    ScriptError,
    st.sampled_from(ERROR_KINDS),
    text,
    line=numbers,
    column=numbers,
    traceback=text,
    limit=st.none() | st.sampled_from(LIMIT_NAMES),
    hint=st.none() | text,
    code=st.none() | text,
    tool=st.none() | text,
    retryable=st.booleans(),
    data=values,
    frames=st.lists(st.builds(Frame, numbers, text, st.none() | text, text), max_size=2).map(tuple),
)
calls = made(
    Call,
    index=st.integers(1, 999),
    tool=text,
    arguments=values,
    original_arguments=values,
    status=st.sampled_from(CALL_STATUSES),
    packed=values.map(pack),
    error=st.none() | made(CallError, code=text, message=text, data=values),
    retry_of=numbers,
    spent=st.none() | st.dictionaries(text, st.integers(0, 999)),
)
runs = made(
    Run,
    id=text,
    source=text,
    values=st.lists(values, max_size=3).map(tuple),
    calls=st.lists(calls, max_size=3).map(tuple),
    usage=made(Usage, operations=st.none() | INTEGERS),
    error=st.none() | errors,
    seed=INTEGERS,
    observations=st.lists(st.builds(Observation, text, values), max_size=2).map(tuple),
    limits=st.none(),
    labels=st.dictionaries(text, text),
    running=st.just(False),
)


@settings(max_examples=times(60), deadline=None)
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
