"""The assembly: creates and connects everything that one configuration describes.

[sandbox]  [limits]  [audit]     the Sandbox and its trail
[journal]                        where its runs are taken down
[tools]                          tool scripts
[llm]                            the tool llm
[knowledge]                      the tools search, get and sources
[mcp.servers.<name>]             MCP servers
[cluster]                        the Ray cluster whose nodes run the workers
[openapi.<name>]  [sql.<name>]   tools of specifications and databases
[codemode]                       what the model is shown
[serve]                          how it is served
"""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.audit.sinks import MemorySink, SharedSink, Sink
from moonbox.closing import Closing
from moonbox.config import Config
from moonbox.config.sections import CodeModeSettings, JournalSettings, read_limits
from moonbox.config.variables import unset_problem
from moonbox.errors import ToolError
from moonbox.project import sections
from moonbox.tools.naming import safe_alias
from moonbox.wording import counted
from moonbox.wording import size as in_units

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moonbox.codemode.mode import CodeMode
    from moonbox.config.mcp import ServerSettings
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.media import MediaStore
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.configured import ToolsSettings
    from moonbox.scripts.library import ScriptLibrary
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

_LOG = logging.getLogger("moonbox.scripts")
_MUCH = 20_000
"""Bytes of definitions beside the code tool that are worth a warning."""
_LESS = "approvals = true under [codemode] lets scripts call those that need approval, keep_visible says which stay"


@dataclass(slots=True)
class Assembly(Closing):
    """The parts, open. Close it, or use it as a context manager."""

    config: Config
    sandbox: Sandbox
    mode: CodeMode
    upstreams: Upstreams | None
    scripts: ScriptLibrary | None
    knowledge: KnowledgeBase | None
    trail: Any
    """The audit trail, if it can be read; otherwise None."""
    _sandbox_in: Callable[[str], Sandbox]
    _closing: contextlib.ExitStack
    recovers: bool = False
    """Whether interrupted runs of the journal go on here."""

    @property
    def builtin(self) -> tuple[str, ...]:
        """The tools that come with moonbox."""
        return ("search", "get", "sources") if self.config.section("knowledge") else ()

    @property
    def media(self) -> MediaStore | None:
        """What MCP servers returned of images, sounds and files."""
        return None if self.upstreams is None else self.upstreams.media

    def start(self, seconds: float = 0.0) -> Assembly:
        """Start the MCP servers, without a client to answer their requests, and wait up to `seconds` for them."""
        if self.upstreams is not None:
            self.upstreams.start()
            self.upstreams.wait(seconds)
        return self

    def sandbox_in(self, language: str) -> Sandbox:
        """A further Sandbox with the same tools, for scripts in another language; the caller closes it."""
        sandbox = self._sandbox_in(language)
        if self.recovers:
            sandbox.start_recovering()
        return sandbox

    def recover(self) -> None:
        """Continue interrupted runs of the journal from now on, unless [journal] says otherwise.

        Called once the servers are ready, or could not be started: before, a run would miss their tools.
        """
        if self.sandbox.has_journal and self.config.read(JournalSettings, "journal").recover:
            self.recovers = True
            self.sandbox.start_recovering(self.mode.options_for)

    def refresh(self) -> bool:
        """Load changed tool scripts. Returns whether there were any."""
        if self.scripts is None or not self.scripts.refresh():
            return False
        self.report_broken()
        return True

    def report_broken(self) -> None:
        """Log each tool script that cannot be used, and why."""
        _report_broken(self.scripts)

    def close(self) -> None:
        self._closing.close()


def assemble(
    config: Config | None = None,
    *,
    tools: Any = (),
    mcp_config: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    approve: Callable[..., Any] | None = None,
    on_call: Callable[..., None] | None = None,
    on_output: Callable[[str], None] | None = None,
    wrap_sink: Callable[[Sink], Sink] | None = None,
    sources: Sequence[str] | None = None,
) -> Assembly:
    """Make what the configuration describes, with these Python tools added.

    `mcp_config` names files with the `mcpServers` of other clients. `wrap_sink` puts another sink around the trail's;
    where no trail is kept, the latest runs are then held in memory. `sources` are all scripts there will be: MCP
    servers that they do not use are left out. ConfigError says which setting is wrong.
    """
    config = config or Config()
    with contextlib.ExitStack() as closing:
        trail_sink = sink = sections.open_trail(config)
        if wrap_sink is not None:
            trail_sink = sink or MemorySink()
            sink = wrap_sink(trail_sink)
        settings, servers = config.read(CodeModeSettings, "codemode"), sections.read_servers(config, mcp_config)
        secrets = sections.read_secrets(config, mcp_config)
        hooks: dict[str, Any] = {"secrets": secrets, "metrics": sections.open_metrics()}
        hooks |= {"approve": approve, "on_call": on_call, "on_output": on_output}
        sandbox = closing.enter_context(_open_sandbox(config, tools, sink, hooks))
        knowledge, scripts = _add_own_tools(config, sandbox, sink, closing)
        servers = sections.used_servers(servers, sources, sandbox.toolbox)
        upstreams = _add_upstreams(config, sandbox, servers, secrets, closing)
        mode = closing.enter_context(_open_mode(config, sandbox, settings, servers))
        trail = trail_sink if hasattr(trail_sink, "get") and hasattr(trail_sink, "list") else None
        shared = None if sink is None else SharedSink(sink)

        def sandbox_in(language: str) -> Sandbox:
            other = _open_sandbox(config, sandbox.toolbox, shared, hooks, language=language)
            _define_reading(other, upstreams, servers)
            return other

        return Assembly(config, sandbox, mode, upstreams, scripts, knowledge, trail, sandbox_in, closing.pop_all())
    raise AssertionError


def add_project_tools(
    config: Config,
    sandbox: Sandbox,
    closing: contextlib.ExitStack,
    *,
    sink: Sink | None = None,
    wait: float = 0.0,
    sources: Sequence[str] | None = None,
) -> None:
    """Give a Sandbox the tools of a project: its tool scripts, knowledge base, Python tools and MCP servers.

    `sink` records the runs of tool scripts. `wait` is how many seconds the servers have to start; with `sources`, all
    scripts there will be, only those that they use. What is opened is closed with `closing`.
    """
    _, scripts = _add_own_tools(config, sandbox, sink, closing)
    _report_broken(scripts, sources)
    servers = sections.used_servers(sections.read_servers(config), sources, sandbox.toolbox)
    upstreams = _add_upstreams(config, sandbox, servers, config.secrets, closing)
    if upstreams is not None:
        upstreams.start()
        upstreams.wait(wait)


def _report_broken(library: ScriptLibrary | None, sources: Sequence[str] | None = None) -> None:
    """Log each tool script that cannot be used; with `sources`, only those that these scripts name."""
    for script in library.scripts if library is not None else ():
        name = script.settings.name
        used = sources is None or any(word in source for source in sources for word in (name, safe_alias(name)))
        if script.problem is not None and used:
            _LOG.warning("the tool script %s is broken: %s", script.settings.path.name, script.problem)


def _add_own_tools(
    config: Config, sandbox: Sandbox, sink: Sink | None, closing: contextlib.ExitStack
) -> tuple[KnowledgeBase | None, ScriptLibrary | None]:
    """Everything but the MCP servers."""
    toolbox = sandbox.toolbox
    settings = sections.read_tools(config)
    if settings.restricts:
        toolbox.only(settings.adapted)
    _add_python_tools(config, toolbox)
    sections.add_model(config, toolbox)
    sections.add_sources(config, toolbox)
    knowledge, built_in = _open_knowledge(config, closing)
    with sections.in_section(config, "knowledge"):
        toolbox.add(built_in)
    scripts = _open_scripts(config, sandbox, sink, built_in, closing)
    if scripts is not None:
        with sections.in_section(config, "tools"):
            toolbox.follow(scripts.toolbox)
            if scripts.settings.table.model_saves:
                from moonbox.scripts.saving import saving

                tool, layer = saving(scripts, sink if hasattr(sink, "list") else None)
                toolbox.add(tool)
                sandbox.add_middleware(layer)
    return knowledge, scripts


def _open_sandbox(
    config: Config, tools: Any, sink: Sink | None, hooks: Mapping[str, Any], *, language: str | None = None
) -> Sandbox:
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.toolbox import Toolbox

    cluster, options = sections.read_cluster(config), sections.sandbox_options(config, language)
    toolbox = Toolbox()
    toolbox.follow(Toolbox.of(tools))  # a copy to which tools are added; changes of the given toolbox are followed
    with sections.in_section(config, "sandbox"):
        return Sandbox(
            toolbox,
            **options,
            cluster=cluster.address,
            node_timeout=cluster.node_timeout,
            sleep_after=cluster.sleep_after,
            audit=sink,
            **hooks,
        )


def _add_python_tools(config: Config, toolbox: Toolbox) -> None:
    """The Python tools that the configuration names: the one place that runs a project's Python code."""
    references = sections.read_tools(config).table.python
    if references:
        from moonbox.project.python_tools import load_tools

        with sections.in_section(config, "tools"):
            toolbox.add(load_tools(references, folder=config.folder, option="python:"))


def _open_knowledge(config: Config, closing: contextlib.ExitStack) -> tuple[KnowledgeBase | None, list[Tool]]:
    """The knowledge base and its tools. Without the variable that its path needs, only the tools, which report that."""
    section = config.section("knowledge")
    if not section:
        return None, []
    from moonbox.knowledge.base import KnowledgeBase, knowledge_tools
    from moonbox.knowledge.config import Unusable

    if (problem := unset_problem(section.get("path"))) is not None:
        return None, knowledge_tools(Unusable(partial(ToolError, problem, code="unavailable")))
    knowledge = closing.enter_context(KnowledgeBase.from_config(sections.read_knowledge(config)))
    return knowledge, knowledge_tools(knowledge)


def _open_scripts(
    config: Config, sandbox: Sandbox, sink: Sink | None, built_in: list[Tool], closing: contextlib.ExitStack
) -> ScriptLibrary | None:
    from moonbox.scripts.library import ScriptLibrary

    settings = sections.read_tools(config)
    if not settings.scripts and not settings.folders and settings.saved is None:
        return None
    # Workers of their own: scripts that wait for tool scripts must not hold the workers that these need.
    own = closing.enter_context(sandbox.sibling(None if sink is None else SharedSink(sink)))
    with config.naming_file():
        library = ScriptLibrary(settings, own, tools=sandbox.toolbox, context=_script_context(built_in))
        return closing.enter_context(library)


def script_library(config: Any, settings: ToolsSettings | None = None, **options: Any) -> ScriptLibrary:
    """The tool scripts of a configuration by themselves, with the limits and the context of the whole project.

    `config` is a Config, the path of one, or the [tools] table as a dict, which has no knowledge base. `settings`
    replaces what it says of tools.
    """
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.configured import ToolsSettings
    from moonbox.scripts.library import ScriptLibrary

    with contextlib.ExitStack() as closing:
        of_sandbox: dict[str, Any] = {name: options.pop(name) for name in ("audit", "redact") if name in options}
        if isinstance(config, dict):
            settings = settings or ToolsSettings.from_dict(config, Path.cwd())
        else:
            config = config if isinstance(config, Config) else Config.load(config)
            of_sandbox |= {name: sections.read_sandbox(config)[name] for name in ("failures", "require")}
            of_sandbox["limits"] = read_limits(config)
            settings = settings or sections.read_tools(config)
            if "context" not in options:
                options["context"] = _script_context(_open_knowledge(config, closing)[1])
        sandbox = closing.enter_context(Sandbox(**of_sandbox))
        library = ScriptLibrary(settings, sandbox, **options)
        library.closing(closing.pop_all())
        return library
    raise AssertionError


def _script_context(built_in: list[Tool]) -> dict[str, Callable[..., Any]]:
    """The built-in tools as tool scripts find them."""
    return {tool.name: _context_function(tool) for tool in built_in}


def _context_function(tool: Tool) -> Callable[..., Any]:
    """A built-in tool as `context.<name>(value, options)`."""
    first = next(iter(tool.parameters.get("properties", {})), None)

    def call(value: Any = None, options: Mapping[str, Any] | None = None) -> Any:
        arguments = {} if first is None or value is None else {first: value}
        return tool.invoke(tool.bind({**(options or {}), **arguments}))

    return call


def _add_upstreams(
    config: Config,
    sandbox: Sandbox,
    servers: list[ServerSettings],
    secrets: Mapping[str, str],
    closing: contextlib.ExitStack,
) -> Upstreams | None:
    if not servers:
        return None
    from moonbox.mcp.upstreams.catalog import ToolCache, default_cache_folder
    from moonbox.mcp.upstreams.login import LoginStore
    from moonbox.mcp.upstreams.manager import Upstreams

    cache = ToolCache(default_cache_folder())
    upstreams = Upstreams(servers, cache=cache, logins=LoginStore(), secrets=secrets)
    closing.callback(upstreams.close)
    with sections.in_section(config, "mcp.servers"):
        sandbox.toolbox.follow(upstreams.toolbox)
    _define_reading(sandbox, upstreams, servers)
    return upstreams


def _define_reading(sandbox: Sandbox, upstreams: Upstreams | None, servers: list[ServerSettings]) -> None:
    """`mcp.read` and `mcp.prompt`, for the servers that grant them to scripts."""
    if upstreams is None:
        return
    from moonbox.mcp.upstreams import tools as reading

    if any("resources" in server.scripts for server in servers):
        sandbox.define("mcp.read", reading.reader(upstreams), doc=reading.READ)
    if any("prompts" in server.scripts for server in servers):
        sandbox.define("mcp.prompt", reading.prompter(upstreams), doc=reading.PROMPT)


def _open_mode(config: Config, sandbox: Sandbox, settings: CodeModeSettings, servers: list[ServerSettings]) -> CodeMode:
    from moonbox.codemode.mode import CodeMode

    with sections.in_section(config, "codemode"):
        later = [server.name for server in servers]
        mode = CodeMode.from_config(sandbox, vars(settings), later=later, can_pause=False)
    direct = mode.definitions("anthropic")[1:] if mode.choice.code else []
    size = len(json.dumps(direct))
    if size > _MUCH:
        count = counted(len(direct), "direct tool")
        _LOG.warning("the model gets the definitions of %s, %s: %s", count, in_units(size), _LESS)
    return mode
