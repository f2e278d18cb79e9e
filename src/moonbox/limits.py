"""Limits: one frozen value that says what a run may spend."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

from moonbox.errors import UsageError
from moonbox.suggest import unknown

KIB = 1024
MIB = 1024 * KIB
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"timeout": 5.0, "max_operations": 10_000, "max_tool_calls": 10, "max_array": 10_000},
    "standard": {"timeout": 30.0, "max_operations": 100_000, "max_tool_calls": 50, "max_array": 10_000},
    "extended": {"timeout": 120.0, "max_operations": 500_000, "max_tool_calls": 100, "max_array": 10_000},
    "untrusted": {
        "timeout": 5.0,
        "max_operations": 10_000,
        "max_tool_calls": 5,
        "max_memory": 16 * MIB,
        "max_string": 100_000,
        "max_array": 1_000,
        "max_output": 16 * KIB,
        "max_depth": 32,
        "max_source": 64 * KIB,
    },
}
"""The fields that each preset gives."""


class _Given:
    """Knows the names of the arguments that it was made with."""

    __slots__ = ("_given",)
    _given: frozenset[str]

    def __new__(cls, *_: Any, **given: Any) -> Self:
        made = super().__new__(cls)
        object.__setattr__(made, "_given", frozenset(given))
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(_Given):
    """What one run may spend. `None` means "no limit" where the field allows it.

    Limits of a Repl or of one run change only the fields that they were made with: `Limits(timeout=5)` leaves the
    other limits of the Sandbox as they are, and a preset changes those that it names.
    """

    timeout: float | None = 30.0
    """Seconds for the whole run, its tool calls included, waiting for a person excluded."""
    max_operations: int | None = None
    """VM instructions (Lua) or evaluated nodes (Rhai)."""
    max_tool_calls: int | None = 1000
    """Tool calls of one run."""
    max_memory: int = 64 * MIB
    """Bytes that the script's environment may hold."""
    max_string: int = 10_000_000
    """Bytes of one string made by a library function or crossing the boundary."""
    max_array: int = 100_000
    """Elements of one array or map in a value that crosses the boundary."""
    max_output: int = 64 * KIB
    """Bytes printed."""
    max_depth: int = 64
    """Levels of nesting in a value that crosses the boundary."""
    max_source: int = MIB
    """Bytes of one script."""

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            if value is None and name in _OPTIONAL:
                continue
            is_time = name == "timeout"
            least, most = _LEAST.get(name, 1), _MOST.get(name, _LARGEST)
            wanted = ""
            if value is None:
                wanted = "a number"
            elif isinstance(value, bool) or not isinstance(value, (int, float) if is_time else int):
                wanted = "a number of seconds" if is_time else "a whole number"
            elif not (value > 0 if is_time else value >= least):
                wanted = "more than 0" if is_time else f"at least {least}"
            elif value > most:
                wanted = f"at most {most}"
            if wanted:
                raise UsageError(f"Limits.{name} must be {wanted}, not {value!r}")

    @classmethod
    def quick(cls, **changes: Any) -> Limits:
        """For short look-ups: 5 seconds, 10 calls, 10 000 operations."""
        return cls(**{**PRESETS["quick"], **changes})

    @classmethod
    def standard(cls, **changes: Any) -> Limits:
        """For ordinary work: 30 seconds, 50 calls, 100 000 operations."""
        return cls(**{**PRESETS["standard"], **changes})

    @classmethod
    def extended(cls, **changes: Any) -> Limits:
        """For long work: 120 seconds, 100 calls, 500 000 operations."""
        return cls(**{**PRESETS["extended"], **changes})

    @classmethod
    def untrusted(cls, **changes: Any) -> Limits:
        """For scripts of unknown origin: 5 seconds, 5 calls, 16 MiB."""
        return cls(**{**PRESETS["untrusted"], **changes})

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Limits:
        """The preset of that name, or the defaults for "default"."""
        if name == "default":
            return cls(**changes)
        if str(name) not in PRESETS:
            raise UsageError(unknown("limits preset", str(name), ("default", *PRESETS)))
        return cls(**{**PRESETS[name], **changes})

    def replace(self, **changes: Any) -> Limits:
        """These limits with changes. (`dataclasses.replace` does the same, but counts every field as given.)"""
        return Limits(**changes).over(self)

    def over(self, base: Limits) -> Limits:
        """The fields that were given here, and those of `base` for the rest."""
        return Limits(**{**base._chosen(), **self._chosen()}) if self._given else base

    def _chosen(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._given}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Limits, **self._chosen()), ()  # the other fields have their defaults

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


_OPTIONAL = frozenset({"timeout", "max_operations", "max_tool_calls"})
_LEAST = {"max_tool_calls": 0, "max_memory": MIB, "max_output": 0, "max_string": 64}
_LARGEST = 2**48  # far more than any machine has, and a multiple of it still fits into 64 bits
_MOST = {
    "timeout": 1_000_000_000,  # thirty years; clocks of the system take not much more
    "max_depth": 180,  # JSON and Lua parsers recurse on the C stack; both are safe well past this
}
