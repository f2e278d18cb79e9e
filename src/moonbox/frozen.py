"""Frozen dataclasses, made quickly: their own constructors take a detour for every field."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["quick"]


def quick(cls: type[T]) -> type[T]:
    """A constructor of that frozen dataclass with slots, several times faster than its own.

    What it makes is a twin that is not frozen, with the same slots; once filled, it becomes one of the class.
    """

    def freeze(self: Any) -> None:
        self.__class__ = cls

    members: list[Any] = [(item.name, item.type, _again(item)) for item in fields(cls)]  # type: ignore[arg-type]
    twin: Any = make_dataclass(
        cls.__name__, members, namespace={"__post_init__": freeze}, slots=True, eq=False, repr=False
    )
    return twin  # type: ignore[no-any-return]


def _again(item: Any) -> Any:
    return field(default=item.default, default_factory=item.default_factory)
