"""HostApi: the host functions of one script, behind its grants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from moonbox.audit.records import Run, changed
from moonbox.closing import Closing
from moonbox.errors import Denied, MissingExtra, ToolError
from moonbox.scripts.hostapi import crypto, csv, encoding, fs, http, log, regex, secrets
from moonbox.scripts.hostapi import time as time_functions
from moonbox.scripts.hostapi.functions import Host, HostFunction, HostModule
from moonbox.scripts.hostapi.grants import Grants
from moonbox.suggest import unknown

MODULES: tuple[HostModule, ...] = (http, fs, secrets, log, time_functions, encoding, csv, crypto, regex)
"""The built-in host modules, in the order in which they are documented."""

_EXAMPLES = {
    "http": 'http = ["api.example.com"]',
    "env": 'env = ["MY_API_KEY"]',
    "secrets": 'secrets = ["MY_API_KEY"]',
    "read": 'read = ["./data"]',
    "write": 'write = ["./out"]',
}


class HostApi(Closing):
    """The functions that one script may call, and the secrets that belong to it.

    `functions` holds what the grants allow; `absent` the others, each of which raises Denied with the line of
    configuration that would allow it. All are safe to call from several threads. Close it when the script is done
    with: that ends waiting and connections.
    """

    def __init__(
        self, grants: Grants | None = None, *, modules: Sequence[HostModule] | None = None, **options: Any
    ) -> None:
        """The options are fields of Host, such as name, section, environ, limits and clock."""
        self.grants = grants or Grants()
        self._host = Host(self.grants, **options)
        self._host.secrets = secrets.SecretStore(self._host)
        self.functions: dict[str, HostFunction] = {}
        self.absent: dict[str, HostFunction] = {}
        for module in MODULES if modules is None else modules:
            for function in module.functions(self._host):
                self._offer(function)

    @property
    def docs(self) -> dict[str, str]:
        """The documentation of each granted function."""
        return {name: function.doc for name, function in self.functions.items()}

    def call(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call a function by its name, as a script does."""
        function = self.functions.get(name) or self.absent.get(name)
        if function is None:
            raise ToolError(unknown("host function", name, self.functions), code="not_found")
        return function(*args)

    def hide(self, secrets: Mapping[str, str]) -> None:
        """Replace these values too, by their names, in everything that `redact` is given."""
        for name, value in secrets.items():
            self._host.redact.add(name, value)

    def redact(self, value: Any) -> Any:
        """A plain value with every known secret replaced: for returned values, printed output and audit entries."""
        return self._host.redact(value)

    def redact_run(self, run: Run) -> Run:
        """The record of a run with every known secret replaced, wherever it is."""
        return changed(run, self.redact)

    def close(self) -> None:
        """End waiting calls and connections. Later calls raise an error."""
        self._host.closing.set()
        while self._host.on_close:
            self._host.on_close.pop()()

    def _offer(self, function: HostFunction) -> None:
        granted = not function.needs or any(getattr(self.grants, key) for key in function.needs)
        if granted or function.refuses:
            offered = replace(function, run=self._guarded(function))
        else:
            line = " or ".join(_EXAMPLES[key] for key in function.needs)
            message = f"{function.name} is not granted; add {line} under [{self._host.section}]"
            offered = replace(function, run=_denial(message))
        (self.functions if granted else self.absent)[function.name] = offered

    def _guarded(self, function: HostFunction) -> Callable[..., Any]:
        """The function with all secrets removed from its results and errors."""

        def run(*args: Any) -> Any:
            if self._host.closing.is_set():
                raise ToolError("the host is closing", code="cancelled", tool=function.name)
            try:
                return self.redact(function.run(*args))
            except MissingExtra as missing:
                raise ToolError(str(missing), code="missing_package", tool=function.name) from None
            except ToolError as error:
                error.message, error.data = self.redact(error.message), self.redact(error.data)
                error.detail, error.tool = self.redact(error.detail), error.tool or function.name
                error.args = (error.message,)
                raise

        return run


def _denial(message: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any) -> NoReturn:
        raise Denied(message, code="not_granted")

    return refuse
