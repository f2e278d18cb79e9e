"""Data classes that cost little to define: `dataclass`, `field`, `fields`, `replace` as in the standard library.

That compiles six methods of each class when it is defined, and imports `inspect` for it: half of what starting
moonbox took. Here a constructor is compiled when its class is first called, and the other methods are closures. The
functions of `dataclasses` work on these classes; what moonbox does not use is left out.
"""

from __future__ import annotations

from operator import attrgetter
from reprlib import recursive_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MISSING", "dataclass", "field", "fields", "is_dataclass", "replace"]

MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "<factory>"})()
"""In place of a default that there is none of."""
_OWN = "__moonbox_fields__"


class _Field:
    """One field, as `dataclasses.Field` describes it."""

    __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "name", "repr", "type")

    def __init__(self, default: Any, default_factory: Any, *, init: bool, repr: bool, compare: bool) -> None:
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = init, repr, compare
        self.name, self.type, self.kw_only = "", "", False


def _field(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: bool = True,
    repr: bool = True,
    compare: bool = True,
) -> Any:
    """More about a field than its default value."""
    return _Field(default, default_factory, init=init, repr=repr, compare=compare)


def _fields(subject: Any) -> tuple[_Field, ...]:
    """The fields of such a class, or of one of its instances; of the standard library's too."""
    own = vars(subject if isinstance(subject, type) else type(subject)).get(_OWN)
    if own is not None:
        return tuple(own.values())
    import dataclasses

    return dataclasses.fields(subject)  # type: ignore[return-value]  # they have the same attributes


def _is_dataclass(subject: Any) -> bool:
    """Whether it is such a class, or an instance of one."""
    return hasattr(subject, _OWN)


def _replace(instance: Any, /, **changes: Any) -> Any:
    """A copy with other values in some fields."""
    for item in _fields(instance):
        if item.init and item.name not in changes:
            changes[item.name] = getattr(instance, item.name)
    return instance.__class__(**changes)


def _dataclass(
    cls: Any = None,
    /,
    *,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """A class whose annotations are its fields; the options are those of the standard library."""

    def define(cls: Any) -> Any:
        own = _collect(cls, kw_only=kw_only)
        inherited = [vars(base)[_OWN] for base in reversed(cls.__mro__[1:]) if _OWN in vars(base)]
        every = {name: item for group in (*inherited, own) for name, item in group.items()}
        if slots:
            cls = _with_slots(cls, tuple(own))
        methods = {_OWN: every, "__replace__": _replace}
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            methods[name] = _Standard(cls, name, frozen=frozen)
        methods["__match_args__"] = tuple(item.name for item in every.values() if item.init and not item.kw_only)
        methods["__init__"] = _Constructor(cls, every, frozen=frozen, slots=slots)
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= _comparison(every, hashable=frozen)
        if frozen:
            methods |= _frozen(cls, every)
            if slots:
                methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
        for name, method in methods.items():
            if name not in vars(cls) or (name == "__hash__" and "__eq__" not in vars(cls)):
                setattr(cls, name, method)
        return cls

    return define if cls is None else define(cls)


def _collect(cls: Any, *, kw_only: bool) -> dict[str, _Field]:
    """The fields that the class itself declares; their default values stay attributes of the class."""
    own = {}
    for name, kind in cls.__annotations__.items():
        if kind.startswith("ClassVar"):
            continue
        default = vars(cls).get(name, MISSING)
        if isinstance(default, _Field):
            item = default
            if item.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, item.default)
        else:
            item = _Field(default, MISSING, init=True, repr=True, compare=True)
        item.name, item.type, item.kw_only = name, kind, kw_only
        own[name] = item
    return own


def _with_slots(cls: Any, names: tuple[str, ...]) -> Any:
    """The class once more: slots can only be given to a new one."""
    space = {name: value for name, value in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    again = type(cls)(cls.__name__, cls.__bases__, {**space, "__slots__": names})
    again.__qualname__ = cls.__qualname__
    return again


class _Constructor:
    """Stands for `__init__` until somebody needs it, and then puts the function in its place."""

    __slots__ = ("cls", "every", "frozen", "slots")

    def __init__(self, cls: Any, every: dict[str, _Field], *, frozen: bool, slots: bool) -> None:
        self.cls, self.every, self.frozen, self.slots = cls, every, frozen, slots

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        constructor = self._compile()
        if vars(self.cls).get("__init__") is self:  # not yet done by another thread
            self.cls.__init__ = constructor
        return constructor if instance is None else constructor.__get__(instance, owner)

    def _compile(self) -> Any:
        space: dict[str, Any] = {"missing": MISSING, "put": object.__setattr__}
        positional, body = ["self"], []
        keyword: list[str] = []
        for name, item in self.every.items():
            value = name
            if item.default_factory is not MISSING:
                space[f"make_{name}"] = item.default_factory
                value = f"make_{name}() if {name} is missing else {name}" if item.init else f"make_{name}()"
            if item.init:
                (keyword if item.kw_only else positional).append(_parameter(item, space))
            elif item.default_factory is MISSING:
                continue  # a class attribute, or set by __post_init__
            if not self.frozen:
                body.append(f"    self.{name} = {value}\n")
            elif self.slots:
                space[f"put_{name}"] = getattr(self.cls, name).__set__
                body.append(f"    put_{name}(self, {value})\n")
            else:
                body.append(f"    put(self, {name!r}, {value})\n")
        if hasattr(self.cls, "__post_init__"):
            body.append("    self.__post_init__()\n")
        parameters = ", ".join([*positional, "*", *keyword] if keyword else positional)
        exec(f"def __init__({parameters}):\n{''.join(body) or '    pass'}", space)  # only names of fields are in it
        init = space["__init__"]
        init.__qualname__, init.__module__ = f"{self.cls.__qualname__}.__init__", self.cls.__module__
        init.__annotations__ = {name: item.type for name, item in self.every.items() if item.init} | {"return": None}
        return init


def _parameter(item: _Field, space: dict[str, Any]) -> str:
    if item.default is not MISSING:
        space[f"default_{item.name}"] = item.default
        return f"{item.name}=default_{item.name}"
    return item.name if item.default_factory is MISSING else f"{item.name}=missing"


class _Standard:
    """Stands for an attribute by which the functions of `dataclasses` know such a class, until one of them asks."""

    __slots__ = ("cls", "frozen", "name")

    def __init__(self, cls: Any, name: str, *, frozen: bool) -> None:
        self.cls, self.name, self.frozen = cls, name, frozen

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        import dataclasses

        described = []
        for item in _fields(self.cls):
            options: dict[str, Any] = {
                "init": item.init,
                "repr": item.repr,
                "compare": item.compare,
                "kw_only": item.kw_only,
            }
            if item.default is not MISSING:
                options["default"] = item.default
            if item.default_factory is not MISSING:
                options["default_factory"] = item.default_factory
            described.append((item.name, item.type, dataclasses.field(**options)))
        standard: Any = dataclasses.make_dataclass(self.cls.__name__, described, frozen=self.frozen)
        attribute = getattr(standard, self.name)
        setattr(self.cls, self.name, attribute)
        return attribute


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in _fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _comparison(every: dict[str, _Field], *, hashable: bool) -> dict[str, Any]:
    names = [item.name for item in every.values() if item.compare]
    values: Any = attrgetter(*names) if names else lambda self: ()

    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if hashable else None}


def _frozen(cls: Any, every: dict[str, _Field]) -> dict[str, Any]:
    def refuse(self: Any, name: str, action: str) -> None:
        if type(self) is cls or name in every:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {action} field {name!r}")

    def __setattr__(self: Any, name: str, value: Any) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in _fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for item, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


if TYPE_CHECKING:  # to a checker they are the ones of the standard library
    from dataclasses import dataclass, field, fields, is_dataclass, replace
else:
    dataclass, field, fields, is_dataclass, replace = _dataclass, _field, _fields, _is_dataclass, _replace
