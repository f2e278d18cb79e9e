"""Limits: defaults, presets, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox import Limits, MoonboxError
from moonbox.errors import UsageError

MIB = 1024 * 1024
FIELDS = [field.name for field in dataclasses.fields(Limits)]
OPTIONAL = {"timeout", "max_operations", "max_tool_calls"}
LEAST = {"max_tool_calls": 0, "max_memory": MIB, "max_output": 0, "max_string": 64}


def test_defaults() -> None:
    assert Limits().to_dict() == {
        "timeout": 30.0,
        "max_operations": None,
        "max_tool_calls": 1000,
        "max_memory": 64 * MIB,
        "max_string": 10_000_000,
        "max_array": 100_000,
        "max_output": 65_536,
        "max_depth": 64,
        "max_source": 1024 * 1024,
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quick", {"timeout": 5.0, "max_operations": 10_000, "max_tool_calls": 10, "max_array": 10_000}),
        ("standard", {"timeout": 30.0, "max_operations": 100_000, "max_tool_calls": 50, "max_array": 10_000}),
        ("extended", {"timeout": 120.0, "max_operations": 500_000, "max_tool_calls": 100, "max_array": 10_000}),
        (
            "untrusted",
            {
                "timeout": 5.0,
                "max_operations": 10_000,
                "max_tool_calls": 5,
                "max_memory": 16 * MIB,
                "max_string": 100_000,
                "max_array": 1_000,
                "max_output": 16 * 1024,
                "max_depth": 32,
                "max_source": 64 * 1024,
            },
        ),
        ("default", {}),
    ],
)
def test_presets(name: str, expected: dict[str, Any]) -> None:
    limits = Limits.preset(name)
    assert limits == Limits(**expected)
    if name != "default":
        assert getattr(Limits, name)() == limits
        assert getattr(Limits, name)(timeout=7) == dataclasses.replace(limits, timeout=7)
    assert Limits.preset(name, max_depth=9).max_depth == 9


def test_an_unknown_preset() -> None:
    with pytest.raises(UsageError) as caught:
        Limits.preset("huge")
    assert str(caught.value) == (
        "unknown limits preset 'huge'; known limits presets: default, quick, standard, extended, untrusted"
    )


def test_frozen_hashable_and_picklable() -> None:
    limits = Limits(timeout=5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.timeout = 6  # type: ignore[misc]
    assert hash(limits) == hash(Limits(timeout=5))
    assert pickle.loads(pickle.dumps(limits)) == limits
    with pytest.raises(TypeError):
        Limits(5)  # type: ignore[call-arg]


BASE = Limits(timeout=2, max_tool_calls=3, max_depth=9)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), BASE),
        (Limits(timeout=1), Limits(timeout=1, max_tool_calls=3, max_depth=9)),
        (Limits(timeout=30.0), Limits(max_tool_calls=3, max_depth=9)),
        (Limits(max_tool_calls=None), Limits(timeout=2, max_tool_calls=None, max_depth=9)),
        (Limits(timeout=1).replace(max_depth=8), Limits(timeout=1, max_tool_calls=3, max_depth=8)),
        (BASE.replace(timeout=30), Limits(max_tool_calls=3, max_depth=9)),
        (dataclasses.replace(BASE, timeout=30), Limits(max_tool_calls=3, max_depth=9)),
        (dataclasses.replace(Limits(timeout=1), max_depth=8), Limits(timeout=1, max_depth=8)),
        (Limits.quick(), Limits.quick(max_depth=9)),
        (Limits.quick(timeout=1).over(Limits(max_string=99)), Limits.quick(timeout=1, max_string=99, max_depth=9)),
        (Limits.preset("default", timeout=1), Limits(timeout=1, max_tool_calls=3, max_depth=9)),
    ],
)
def test_limits_change_only_what_was_given(limits: Limits, expected: Limits) -> None:
    assert limits.over(BASE) == expected
    for again in (copy.copy(limits), copy.deepcopy(limits), pickle.loads(pickle.dumps(limits))):
        assert again == limits
        assert again.over(BASE) == expected


def test_what_was_given_is_not_part_of_the_value() -> None:
    assert Limits(timeout=30.0) == Limits()
    assert hash(Limits(timeout=30.0)) == hash(Limits())
    assert repr(Limits(timeout=30.0)) == repr(Limits())
    assert list(dataclasses.asdict(Limits())) == FIELDS
    with pytest.raises(TypeError):
        Limits().replace(max_dept=1)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [True, "5", [], math.nan, -1, math.inf, -math.inf, 10**30])
def test_bad_values(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"Limits\.{name} must be "):
        Limits(**{name: value})


@pytest.mark.parametrize("name", FIELDS)
def test_none(name: str) -> None:
    given: dict[str, Any] = {name: None}
    if name in OPTIONAL:
        assert getattr(Limits(**given), name) is None
    else:
        with pytest.raises(UsageError) as caught:
            Limits(**given)
        assert str(caught.value) == f"Limits.{name} must be a number, not None"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "Limits.timeout must be more than 0, not 0"),
        ({"timeout": "soon"}, "Limits.timeout must be a number of seconds, not 'soon'"),
        ({"timeout": 2e9}, "Limits.timeout must be at most 1000000000, not 2000000000.0"),
        ({"max_memory": 1000}, "Limits.max_memory must be at least 1048576, not 1000"),
        ({"max_string": 10}, "Limits.max_string must be at least 64, not 10"),
        ({"max_operations": 0}, "Limits.max_operations must be at least 1, not 0"),
        ({"max_array": 1.5}, "Limits.max_array must be a whole number, not 1.5"),
        ({"max_depth": 181}, "Limits.max_depth must be at most 180, not 181"),
        ({"max_tool_calls": 2**49}, "Limits.max_tool_calls must be at most 281474976710656, not 562949953421312"),
    ],
)
def test_messages(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Limits(**options)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, MoonboxError)


@given(st.sampled_from(FIELDS), st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text()))
def test_a_value_is_either_refused_or_usable(name: str, value: Any) -> None:
    try:
        limits = Limits(**{name: value})
    except UsageError as problem:
        assert f"Limits.{name}" in str(problem)
        return
    kept = getattr(limits, name)
    assert kept == value
    if kept is None:
        assert name in OPTIONAL
        return
    assert not isinstance(kept, bool)
    assert kept >= LEAST.get(name, 0 if name == "timeout" else 1)
    assert kept <= 2**48
    assert Limits(**limits.to_dict()) == limits
