"""Settings: what a Sandbox was made with, as far as its runs depend on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox.runs.environment import Additions, describe_environment
from moonbox.runs.options import RunOptions

if TYPE_CHECKING:
    from moonbox.failures import Failures
    from moonbox.languages.registry import Language
    from moonbox.limits import Limits
    from moonbox.runs.decisions import Middleware, ToolCall
    from moonbox.tools.toolbox import Toolbox


@dataclass(slots=True, kw_only=True)
class Settings:
    """What a Sandbox was made with, as far as its runs depend on it."""

    toolbox: Toolbox
    limits: Limits
    language: Language
    features: frozenset[str] = frozenset()
    context: Mapping[str, Any] = field(default_factory=dict)
    allow_nan: bool = False
    failures: Failures = "return"
    """What becomes of results that are nothing but a failure, where the tool does not say."""
    approve: Callable[[ToolCall], Any | Awaitable[Any]] | None = None
    approve_script: Callable[[ToolCall], Any] | bool = False
    """Asked before a script runs; True: `approve` is asked."""
    approval_seconds: float = 0.0
    """How long a question to a person stays open in the journal."""
    middleware: Sequence[Middleware] = ()
    run_options: RunOptions = field(default_factory=RunOptions)
    """What a run has that is given nothing else: limits and callbacks."""
    check: bool = True
    """Whether scripts are checked before they run."""
    additions: Additions = field(default_factory=Additions.standard)
    """What Repls that are made from now on find beside their tools."""

    @property
    def script_approver(self) -> Callable[[ToolCall], Any] | None:
        return self.approve if isinstance(self.approve_script, bool) else self.approve_script

    def limits_for_worker(self, limits: Limits) -> dict[str, Any]:
        return {**limits.to_dict(), "allow_nan": self.allow_nan}

    def config_for_workers(self, toolbox: Toolbox, additions: Additions) -> dict[str, Any]:
        """What every worker starts with, for scripts that find this."""
        return {
            "engine": self.language.engine_for_workers(),
            "limits": self.limits_for_worker(self.limits),
            "environment": describe_environment(toolbox, additions, self.features, self.language, with_runtime=True),
        }
