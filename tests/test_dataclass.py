"""Data classes that cost little to define: what they share with those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from moonbox.dataclass import dataclass as light
from moonbox.dataclass import field as light_field
from moonbox.dataclass import fields, is_dataclass, replace
from moonbox.frozen import quick

if sys.version_info >= (3, 13):
    from copy import replace as copy_replace


def _plain(dataclass: Any, field: Any) -> Any:
    @dataclass
    class Plain:
        """With every kind of field."""

        first: int
        second: list[int] = field(default_factory=list)
        third: str = "x"
        hidden: str = field(default="h", repr=False)
        uncompared: int = field(default=0, compare=False)
        late: int = field(init=False, repr=False)
        shared: ClassVar[int] = 1

        def __post_init__(self) -> None:
            self.late = self.first * 2

    return Plain


def _frozen(dataclass: Any, field: Any) -> Any:
    @dataclass(frozen=True, slots=True)
    class Frozen:
        first: int
        second: str = "x"
        third: tuple[int, ...] = field(default_factory=tuple)

        def doubled(self) -> int:
            return self.first * 2

    return Frozen


def _keywords(dataclass: Any, field: Any) -> Any:
    @dataclass(frozen=True, kw_only=True)
    class Keywords:
        first: int
        second: str = field(default="x", repr=False)

    return Keywords


def _by_identity(dataclass: Any, field: Any) -> Any:
    @dataclass(slots=True, eq=False)
    class Node:
        first: Any
        at: int = 0

    return Node


def _derived(dataclass: Any, field: Any) -> Any:
    @dataclass(frozen=True, slots=True)
    class Base:
        first: int

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        second: int = 5

    return Derived


def _own_methods(dataclass: Any, field: Any) -> Any:
    @dataclass(frozen=True, slots=True, repr=False)
    class Own:
        first: int

        def __repr__(self) -> str:
            return f"<{self.first}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

        def __hash__(self) -> int:
            return 7

    return Own


KINDS = [_plain, _frozen, _keywords, _by_identity, _derived, _own_methods]
ATTEMPTS: dict[str, Any] = {
    "repr": lambda cls: repr(cls(first=1)),
    "doc": lambda cls: inspect.getdoc(cls) if inspect.getdoc(cls) == "With every kind of field." else None,
    "signature": lambda cls: str(inspect.signature(cls)),
    "init name": lambda cls: cls.__init__.__qualname__.partition("<locals>.")[2],
    "match args": lambda cls: cls.__match_args__,
    "equal": lambda cls: cls(first=1) == cls(first=1),
    "unequal": lambda cls: cls(first=1) == cls(first=2),
    "not comparable": lambda cls: cls(first=1).__eq__("other"),
    "hashes": lambda cls: len({hash(one) for one in [cls(first=1), cls(first=1)]}),  # both live: no address twice
    "unknown argument": lambda cls: cls(first=1, other=2),
    "missing argument": lambda cls: cls(),
    "positional": lambda cls: cls(1).first,
    "set": lambda cls: setattr(cls(first=1), "first", 2),
    "delete": lambda cls: delattr(cls(first=1), "first"),
    "slots": lambda cls: getattr(cls, "__slots__", None),
    "default on the class": lambda cls: hasattr(cls, "second") and not hasattr(type(cls.second), "__get__"),
    "is one": lambda cls: (dataclasses.is_dataclass(cls), dataclasses.is_dataclass(cls(first=1))),
    "field names": lambda cls: [(item.name, item.type, item.kw_only, item.init) for item in dataclasses.fields(cls)],
    "as a dict": lambda cls: dataclasses.asdict(cls(first=1)),
    "replaced": lambda cls: repr(dataclasses.replace(cls(first=1), first=3)),
    "replaced wrongly": lambda cls: dataclasses.replace(cls(first=1), other=3),
    "copied": lambda cls: repr(copy.copy(cls(first=1))),
    "copied deeply": lambda cls: repr(copy.deepcopy(cls(first=1))),
    "other objects": lambda cls: cls(first=1) is cls(first=1),
    "recursive": lambda cls: repr(_recursive(cls)),
}


def _recursive(cls: Any) -> Any:
    made = cls(first=[])
    made.first.append(made)
    return made


def _outcome(attempt: Any, cls: Any) -> Any:
    try:
        return attempt(cls)
    except (AttributeError, TypeError, RecursionError) as problem:
        return type(problem), str(problem).replace(cls.__qualname__, cls.__name__)


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_is_like_the_standard_one(kind: Any, name: str) -> None:
    ours, standard = kind(light, light_field), kind(dataclasses.dataclass, dataclasses.field)
    assert _outcome(ATTEMPTS[name], ours) == _outcome(ATTEMPTS[name], standard)


def test_constructor_is_made_when_it_is_needed() -> None:
    cls = _frozen(light, light_field)
    before = vars(cls)["__init__"]
    assert not inspect.isfunction(before)
    assert cls(1, third=(2,)).third == (2,)
    assert inspect.isfunction(vars(cls)["__init__"])
    assert before.__get__(None, cls) is not None  # another thread may have been on its way to it
    assert cls(2) == cls(2)


def test_default_factories_are_called_each_time() -> None:
    cls = _plain(light, light_field)
    assert cls(1).second is not cls(1).second
    assert cls(1, [3]).second == [3]


def test_own_functions() -> None:
    cls = _derived(light, light_field)
    one: Any = cls(1)
    assert [item.name for item in fields(cls)] == ["first", "second"] == [item.name for item in fields(one)]
    assert replace(one, second=2) == cls(1, 2)
    assert is_dataclass(type(one)) and is_dataclass(one) and not is_dataclass(3)
    if sys.version_info >= (3, 13):
        assert copy_replace(one, second=2) == cls(1, 2)
    frozen = _frozen(light, light_field)
    assert quick(frozen)(1) == frozen(1) and type(quick(frozen)(1)) is frozen


def test_the_standard_one_can_derive_from_it() -> None:
    base = _keywords(light, light_field)
    body: Any = {"third": 3, "__annotations__": {"third": "int"}}
    derived: Any = dataclasses.dataclass(frozen=True, kw_only=True)(type("Derived", (base,), dict(body)))
    assert repr(derived(first=1)).endswith("Derived(first=1, third=3)")
    assert replace(derived(first=1, third=4), first=2) == derived(first=2, third=4)
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Mutable", (base,), dict(body)))


@light(frozen=True, slots=True)
class Pickled:
    first: int
    second: str = "x"


def test_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(3))) == Pickled(3)


def test_costs_no_import() -> None:
    program = (
        "import sys; from moonbox.dataclass import dataclass\n"
        "@dataclass(frozen=True, slots=True)\n"
        "class Point:\n    __annotations__ = {'x': 'int'}\n"
        "assert Point(1) == Point(1), 'unequal'\n"
        "sys.exit(', '.join({'dataclasses', 'inspect', 'typing'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path}\n{program}"], check=True)
