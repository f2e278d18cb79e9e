"""The sources of a configuration: [openapi.<name>] and [sql.<name>] are namespaces of tools, [llm] is one tool."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from moonbox.config.reader import read
from moonbox.config.sections import LlmSettings
from moonbox.config.sources import OpenApiSettings, SqlSettings, tables_of
from moonbox.config.variables import unset_problem
from moonbox.errors import ConfigError, MoonboxError, ToolError
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from moonbox.config import Config

_LOG = logging.getLogger("moonbox.sources")
_KINDS: dict[str, type[Any]] = {"openapi": OpenApiSettings, "sql": SqlSettings}


def read_sources(config: Config, section: str) -> dict[str, Any]:
    """The settings of one of the sections, by name; without those that have a variable that is not set."""
    tables = {name: data for name, data in tables_of(config, section).items() if unset_problem(data) is None}
    with config.naming_file():
        return {name: read(_KINDS[section], data, f"{section}.{name}") for name, data in tables.items()}


def add_sources(config: Config, toolbox: Toolbox) -> None:
    """Add the tools of all sources. One that cannot be used now costs its own tools and nothing else."""
    for section in _KINDS:
        read_sources(config, section)
        for name in config.section(section):
            source = open_source(config, section, name)
            for problem in source.problems:
                _LOG.warning("[%s.%s] %s", section, name, problem)
            toolbox.merge(source, namespace=name)


def add_model(config: Config, toolbox: Toolbox) -> None:
    """Add the tool `llm`, if the configuration has a model."""
    if not config.section("llm"):
        return
    from moonbox.adapters.llm import model_tool
    from moonbox.project.sections import in_section, need_mcp

    settings, ask = config.read(LlmSettings, "llm"), None
    if settings.provider == "client":
        need_mcp()
        from moonbox.mcp.caller import sample

        ask = partial(sample, max_tokens=settings.max_answer)
    with in_section(config, "llm"):
        toolbox.add(model_tool(settings, ask=ask, secrets=config.secrets))


def open_source(config: Config, section: str, name: str) -> Toolbox:
    """The tools of one source; where it cannot be used, one that says why."""
    data = dict(tables_of(config, section)[name])
    try:
        if (unset := unset_problem(data)) is not None:
            raise ConfigError(unset)
        place = data.pop("spec" if section == "openapi" else "url")
        make = Toolbox.from_openapi if section == "openapi" else Toolbox.from_sql
        return make(place, folder=config.folder, **data)
    except MoonboxError as problem:
        reason = str(problem)

        def unavailable(_: dict[str, Any]) -> Any:
            raise ToolError(reason, code="unavailable", retryable=True)

        text = f"This source of tools is configured, but cannot be used: {reason}"
        box = Toolbox([Tool.from_schema(name="unavailable", description=text, call=unavailable)])
        box.problems = (reason,)
        return box
