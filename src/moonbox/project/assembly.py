"""The assembly: everything that one configuration describes, made and tied together.

[sandbox]  [limits]  [audit]     the Sandbox and its trail
[tools]                          tool scripts
[knowledge]                      the tools search, get and sources
[mcp.servers.<name>]             servers of others
[codemode]                       what the model is shown
[serve]                          how it is served
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.config.file import Config
from moonbox.project import parts
from moonbox.project.settings import servers_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from moonbox.codemode.mode import CodeMode
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.mcp.media import Media
    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.library import ScriptLibrary

__all__ = ["Assembly", "assemble"]


@dataclass(slots=True)
class Assembly:
    """The parts, open. Close it, or use it as a context manager."""

    config: Config
    sandbox: Sandbox
    mode: CodeMode
    upstreams: Upstreams | None
    scripts: ScriptLibrary | None
    knowledge: KnowledgeBase | None
    media: Media | None
    trail: Any
    """The audit trail, readable; None where none is written."""
    _closing: contextlib.ExitStack

    @property
    def builtin(self) -> tuple[str, ...]:
        """The tools that come with moonbox."""
        return ("search", "get", "sources") if self.knowledge is not None else ()

    def start(self, seconds: float = 0.0) -> Assembly:
        """Start the MCP servers, with nobody to answer what they ask back, and wait so long for them."""
        if self.upstreams is not None:
            self.upstreams.start()
            self.upstreams.wait(seconds)
        return self

    def refresh(self) -> bool:
        """Take up changed tool scripts; whether there were any."""
        return self.scripts is not None and self.scripts.refresh()

    def close(self) -> None:
        self._closing.close()

    def __enter__(self) -> Assembly:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def assemble(
    config: Config | None = None,
    *,
    tools: Any = (),
    mcp_config: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    approve: Callable[..., Any] | None = None,
    on_call: Callable[..., None] | None = None,
) -> Assembly:
    """Make what the configuration describes, with these Python tools beside it.

    `mcp_config` names files with the `mcpServers` of other clients. ConfigError says what is wrong with which setting.
    """
    config = config or Config()
    with contextlib.ExitStack() as closing:
        sink = parts.open_trail_sink(config)
        servers = servers_of(config, mcp_config)
        mode_settings, servers = parts.routing(config, servers)
        sandbox = closing.enter_context(parts.open_sandbox(config, tools, sink, approve, on_call))
        toolbox = sandbox.toolbox
        knowledge = parts.open_knowledge(config, closing)
        built_in = parts.built_in_tools(knowledge)
        with parts.named("[knowledge]"):
            toolbox.add(built_in)
        scripts = parts.open_scripts(config, sink, built_in, closing)
        if scripts is not None:
            with parts.named("[tools]"):
                toolbox.follow(scripts.toolbox)
        upstreams, media = parts.make_upstreams(servers, closing)
        if upstreams is not None:
            with parts.named("[mcp.servers]"):
                toolbox.follow(upstreams.toolbox)
        mode = closing.enter_context(parts.open_mode(sandbox, mode_settings))
        return Assembly(
            config, sandbox, mode, upstreams, scripts, knowledge, media, parts.readable(sink), closing.pop_all()
        )
    raise AssertionError
