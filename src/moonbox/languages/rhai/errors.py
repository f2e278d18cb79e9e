"""The one error that compiling Rhai can raise."""

from __future__ import annotations

from moonbox.errors import MoonboxError

__all__ = ["RhaiSyntaxError"]


class RhaiSyntaxError(MoonboxError):
    """A script does not parse: `.message` in the reference's words, where, and what to write instead if known."""

    def __init__(self, message: str, line: int | None, position: int | None, hint: str | None = None) -> None:
        self.message, self.line, self.position, self.hint = message, line, position, hint
        super().__init__(self.text)

    @property
    def text(self) -> str:
        """The message with its position, as Rhai prints it."""
        where = f" (line {self.line}, position {self.position})" if self.line is not None else ""
        return f"Syntax error: {self.message}{where}"
