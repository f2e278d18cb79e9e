"""The options of `run` and `repl` as they were given, and the Sandbox that they describe."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.config import Config, find
from moonbox.errors import UsageError
from moonbox.languages.registry import DEFAULT_LANGUAGE, LANGUAGES
from moonbox.limits import Limits
from moonbox.suggest import unknown
from moonbox.values import refuse_constant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from moonbox.audit.sinks import Sink
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.sources import WorkerSource

START_SECONDS = 30.0
"""How long MCP servers may take to start, by default."""
_LIMIT_NAME = r"Limits\.(\w+)"


class CommandRunOptions(Struct, frozen=True, kw_only=True, dict=True):
    """How scripts run: tools, isolation, trail and limits. `options.RUN_OPTIONS` says how each is typed."""

    tools: Sequence[str] | None = None
    config: Path | None = None
    no_config: bool = False
    yes: bool = False
    """Whether scripts may call tools that may delete or overwrite, which code mode keeps from them."""
    wait_for_approval: bool = False
    """Whether calls wait for a person in the journal where there is no terminal."""
    isolation: str | None = None
    workers: WorkerSource | None = None
    """For the isolation `process`: a source of workers that is loading already."""
    features: Sequence[str] | None = None
    audit: str | None = None
    journal: str | None = None
    limits: str | None = None
    changes: Mapping[str, float | None] = {}
    """Single limits that differ from the preset, by the names of `Limits`."""

    @property
    def language(self) -> str:
        """The language of scripts where neither a suffix nor --language says it: that of the project."""
        if self.project is None:
            return DEFAULT_LANGUAGE
        from moonbox.project.sections import read_sandbox

        return str(read_sandbox(self.project)["language"])

    @cached_property
    def trail(self) -> str | None:
        """Where runs are recorded, or None: what --audit says, or else [audit] of the project, if it says anything."""
        if self.audit is None:
            if self.project is None or not self.project.section("audit").keys() & {"enabled", "path"}:
                return None
            from moonbox.project.sections import read_trail

            return read_trail(self.project)
        if self.audit in ("", "off"):
            return None
        from moonbox.audit.sinks import default_path, names_a_file

        if self.audit == "on":
            return str(default_path())
        if not names_a_file(self.audit):
            raise UsageError(
                f"--audit must be on, off, or a path that ends in .db, .sqlite or .jsonl; not '{self.audit}'"
            )
        return self.audit

    def open_trail(self) -> Sink | None:
        """The trail in which runs are recorded, if there is one."""
        if self.trail is None:
            return None
        if self.audit is None and self.project is not None:
            from moonbox.project.sections import open_trail

            return open_trail(self.project)
        from moonbox.audit.sinks import open_sink

        return open_sink(self.trail)

    def open(self, language: str, **hooks: Any) -> Sandbox:
        """The Sandbox that the options describe; UsageError says which setting is wrong."""
        from moonbox.sandbox.sandbox import Sandbox

        limits, known = self._limits(self.project), feature_names()  # checked before a journal is opened
        features = [name for part in self.features or () for name in part.replace(",", " ").split()]
        for name in features:
            if name not in known:
                raise UsageError(f"--features: {unknown('feature', name, known)}")
        settings: dict[str, Any] = {}
        if self.journal is not None or self.project is not None:
            from moonbox.project.sections import sandbox_options, with_journal

            config = with_journal(self.project or Config(), self.journal)
            settings = {"secrets": config.secrets, **sandbox_options(config, language)}
        if self.isolation is not None:
            settings["isolation"] = self.isolation
        if self.workers is not None and settings.get("isolation", "process") == "process":
            settings["isolation"] = self.workers
        if features:
            settings["lua_features"] = frozenset(features)
        settings |= {"limits": limits, "language": language, "min_workers": 0}
        boxes: list[Sandbox] = []
        tools: Toolbox | tuple[()] = ()
        if self.tools:
            from moonbox.project.python_tools import load_tools

            tools = load_tools(self.tools, boxes=boxes)
        sandbox = Sandbox(tools, **settings, **hooks)
        for box in boxes:
            sandbox.define_as(box)
        return sandbox

    @cached_property
    def project(self) -> Config | None:
        """The configuration whose tools scripts find; None without one."""
        if self.no_config:
            if self.config is not None:
                raise UsageError("use either --config or --no-config, not both")
            return None
        if self.config is None and find() is None:
            return None
        from moonbox.cli.trust import trusted_config

        config = trusted_config(self.config)
        return config if config.path is not None else None

    def _limits(self, config: Config | None) -> Limits:
        """The preset, or else the project's limits, changed by the limits that have options of their own."""
        try:
            if config is not None and self.limits is None:
                from moonbox.config.sections import read_limits

                return read_limits(config).replace(**self.changes)
            return Limits.preset(self.limits or "default", **self.changes)
        except UsageError as problem:
            raise UsageError(re.sub(_LIMIT_NAME, lambda name: option_name(name[1]), str(problem))) from None


def default_trail() -> str:
    """The trail that is shown in this folder: the one that its moonbox.toml names, or one's own."""
    from moonbox.audit.sinks import default_path

    named = Config.load().section("audit").get("path") is not None
    return (CommandRunOptions().trail if named else None) or str(default_path())


def option_name(limit: str) -> str:
    """The option of `run` and `repl` that sets a limit."""
    return "--" + limit.replace("max_tool_calls", "max_calls").replace("_", "-")


def feature_names() -> list[str]:
    """The optional parts of all languages."""
    return sorted({feature for language in LANGUAGES.values() for feature in language.features})


def json_or_text(text: str) -> Any:
    """What a person typed as a value: JSON where it is valid JSON, else the text itself."""
    try:
        return read_json(text)
    except ValueError:
        return text


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text; ValueError if it is not valid JSON."""
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
