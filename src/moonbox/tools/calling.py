"""From validated arguments to a Python call: typed values, positions, and what the host injects."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError
from moonbox.tools.context import Context
from moonbox.tools.function import CONTEXT, Parameter

if TYPE_CHECKING:
    from moonbox.tools.binding import Binder
    from moonbox.tools.schema import Converter

__all__ = ["CallPlan", "plan_call"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How a bound dict becomes the arguments of one function."""

    converter: Converter | None
    """None for a function that takes the whole dict as its one argument."""
    injected: tuple[Parameter, ...] = ()
    positional: tuple[Parameter, ...] = ()
    """Parameters that must be passed by position, in order."""
    spread: str | None = None
    """The `*args` parameter."""

    def arguments(
        self, bound: dict[str, Any], context: Context | None, tool: str, binder: Binder, first_index: int = 0
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for the call; raises ArgumentError where a value does not convert."""
        if self.converter is None:
            return [dict(bound)], self._injections(context, tool)
        try:
            values = self.converter.convert(bound)
        except ValueError as error:  # pydantic's ValidationError is one, and only it is raised
            raise binder.error(_problems(error, bound, first_index), tool) from None
        if self.injected:
            values.update(self._injections(context, tool))
        if not self.positional and self.spread is None:
            return [], values
        return self._place(values), values

    def _place(self, values: dict[str, Any]) -> list[Any]:
        """Take from `values` what goes by position; a gap is closed with the parameter's own default."""
        rest = values.pop(self.spread, []) if self.spread is not None else []
        placed: list[Any] = []
        last = (
            len(self.positional)
            if rest
            else max((at for at, item in enumerate(self.positional, 1) if item.name in values), default=0)
        )
        for item in self.positional[:last]:
            placed.append(values.pop(item.name) if item.name in values else item.default)
        return [*placed, *rest]

    def _injections(self, context: Context | None, tool: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        context = context if context is not None else Context(tool=tool)
        for item in self.injected:
            if item.injected == CONTEXT:
                found[item.name] = context
            elif item.injected is not None and item.injected in context.extra:
                found[item.name] = context.extra[item.injected]
            elif not item.has_default:
                raise ToolError(
                    f"{tool} needs {item.injected!r} from the host, which did not supply it",
                    code="missing_context",
                    tool=tool,
                )
        return found


def plan_call(parameters: tuple[Parameter, ...], converter: Converter | None) -> CallPlan:
    """Work out once how a function is called."""
    injected = tuple(item for item in parameters if item.injected is not None)
    if converter is None:
        return CallPlan(None, injected)
    spread = next((item.name for item in parameters if item.kind is inspect.Parameter.VAR_POSITIONAL), None)
    kinds = _POSITIONAL if spread is not None else _POSITIONAL[:1]
    positional = tuple(item for item in parameters if item.kind in kinds)
    return CallPlan(converter, injected, positional, spread)


def _problems(error: ValueError, bound: dict[str, Any], first_index: int) -> list[str]:
    from moonbox.tools.schema import explain

    return explain(error, bound, first_index)
