"""Conversation: one conversation of a CodeMode, and for whom it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.runs.options import RunOptions, merged

if TYPE_CHECKING:
    from typing import Unpack

    from moonbox.codemode.client_calls import Reply
    from moonbox.codemode.definitions import Format
    from moonbox.codemode.mode import CodeMode


class Conversation:
    """Answers the calls of one conversation, each with the options that it was made with.

    Make it with `CodeMode.conversation()`. Options of one call come over them. It holds no state of its own: the
    CodeMode keeps the Repl under the conversation's name.
    """

    def __init__(self, mode: CodeMode, name: str, options: RunOptions) -> None:
        self.name = name
        self._mode = mode
        self._options = merged({}, options)

    def definitions(self, form: Format = "openai") -> list[dict[str, Any]]:
        """Like `CodeMode.definitions`, with the labels of this conversation."""
        return self._mode.definitions(form, labels=self._options.get("labels"))

    def handle(self, name: str, arguments: Any, **options: Unpack[RunOptions]) -> str:
        """Like `CodeMode.handle`."""
        return self._mode.handle(name, arguments, conversation=self.name, **merged(self._options, options))

    async def ahandle(self, name: str, arguments: Any, **options: Unpack[RunOptions]) -> str:
        """The same, awaited."""
        return await self._mode.ahandle(name, arguments, conversation=self.name, **merged(self._options, options))

    def reply(self, name: str, arguments: Any, *, pause: bool | None = None, **options: Unpack[RunOptions]) -> Reply:
        """Like `CodeMode.reply`."""
        given = merged(self._options, options)
        return self._mode.reply(name, arguments, conversation=self.name, pause=pause, **given)

    async def areply(
        self, name: str, arguments: Any, *, pause: bool | None = None, **options: Unpack[RunOptions]
    ) -> Reply:
        """The same, awaited."""
        given = merged(self._options, options)
        return await self._mode.areply(name, arguments, conversation=self.name, pause=pause, **given)

    def end(self) -> bool:
        """End it: its state is gone. Whether there was any."""
        return self._mode.end(self.name)
