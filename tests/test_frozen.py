"""Constructors of frozen dataclasses: the native one, and the one in Python, make what the class's own makes."""

from __future__ import annotations

import gc
import pickle
import sys
import weakref
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from moonbox import frozen
from moonbox.dataclass import dataclass, field, replace
from moonbox.frozen import quick


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)


@pytest.fixture(params=["native", "python"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "python":
        monkeypatch.setattr(frozen, "NATIVE", None)
    elif frozen.NATIVE is None:
        pytest.skip("the native part is not in use")
    return quick(Point)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((1, 3, ["a"]), {}), ((1,), {}), ((1,), {"y": 5}), ((), {"x": 1, "names": ["b"]})],
    ids=["all", "defaults", "named", "only named"],
)
def test_it_makes_what_the_class_makes(make: Any, args: Any, kwargs: Any) -> None:
    made = make(*args, **kwargs)
    assert made == Point(*args, **kwargs)
    assert type(made) is Point
    assert pickle.loads(pickle.dumps(made)) == made
    assert replace(made, x=9) == replace(Point(*args, **kwargs), x=9)


def test_what_it_makes_is_frozen(make: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        make(1, 2, []).x = 3


def test_defaults_are_not_shared(make: Any) -> None:
    make(1).names.append("a")
    assert make(1).names == []


@pytest.mark.parametrize("args", [(), (1, 2, [], 4)], ids=["too few", "too many"])
def test_a_wrong_number_of_values_is_refused(make: Any, args: Any) -> None:
    with pytest.raises(TypeError):
        make(*args)


def test_what_it_holds_is_let_go(make: Any) -> None:
    class Held:
        pass

    held = Held()
    seen = weakref.ref(held)
    cycle: list[Any] = []
    cycle.append(make(1, 2, [held, cycle]))
    del held, cycle
    gc.collect()
    assert seen() is None


def test_only_slots_of_the_class() -> None:
    if frozen.NATIVE is None:
        pytest.skip("the native part is not in use")

    @dataclass(frozen=True)
    class Loose:
        x: int

    with pytest.raises(TypeError, match="no slot of the class"):
        frozen.NATIVE.maker(Loose, ("x",), Loose)


def test_slots_of_bases_and_values_that_are_the_same_for_all() -> None:
    if frozen.NATIVE is None:
        pytest.skip("the native part is not in use")

    class Base:
        __slots__ = ("a", "b")

    class Derived(Base):
        __slots__ = ("c",)

        def __init__(self, a: int) -> None:
            self.a = self.b = self.c = a

    shared = object()
    make = frozen.NATIVE.maker(Derived, ("c", "a", "b"), Derived, (shared,))
    one = make(1, 2)
    assert (one.c, one.a, one.b) == (1, 2, shared)
    assert make(5).b == 5  # another number of values is for the class itself
    before = sys.getrefcount(shared)
    del one
    assert sys.getrefcount(shared) == before - 1
    with pytest.raises(TypeError, match="not a class for a maker"):
        frozen.NATIVE.maker(Derived, ("c",), Derived, (1, 2))
