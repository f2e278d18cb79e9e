"""What every adapter has: the code mode behind it, and a plain word about a package that is missing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Self

from moonbox.codemode.mode import CodeMode
from moonbox.errors import MissingExtra, UsageError
from moonbox.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

__all__ = ["Adapter", "needed"]


class Adapter:
    """Code mode for one provider or framework. Use it as a context manager, or call `close`.

    `source` is a CodeMode, a Sandbox, or what `Sandbox(tools=…)` takes: functions, Tools, Toolboxes. With a Sandbox or
    with tools, `settings` are those of CodeMode (keep_visible, mode, full_schemas, …). What the adapter made itself is
    closed with it; what it was given stays open.
    """

    def __init__(self, source: Any = (), **settings: Any) -> None:
        self._own_box: Sandbox | None = None
        self._own_mode: CodeMode | None = None
        if isinstance(source, CodeMode):
            if settings:
                raise UsageError(f"{next(iter(settings))} belongs to the CodeMode; give it there, or give a Sandbox")
            self.mode = source
            return
        if not isinstance(source, Sandbox):
            source = self._own_box = Sandbox(source)
        try:
            self.mode = self._own_mode = CodeMode(source, **settings)
        except BaseException:
            self.close()
            raise

    @property
    def system_prompt(self) -> str:
        """An addition to the system prompt, at most 500 bytes; empty when there is no code tool."""
        return self.mode.system_prompt

    def close(self) -> None:
        """End what the adapter made itself."""
        if self._own_mode is not None:
            self._own_mode.close()
        if self._own_box is not None:
            self._own_box.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def needed(module: str, *, extra: str, purpose: str, package: str | None = None) -> ModuleType:
    """The module, or MissingExtra with the command that installs it.

    `package` is the name on PyPI, where it differs; `purpose` is what cannot be done without it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as problem:
        missing = problem.name or ""
        if module != missing and not module.startswith(missing + "."):
            raise  # the package is there and broken: that is another story
        raise MissingExtra(package or module.partition(".")[0], extra, purpose) from None
