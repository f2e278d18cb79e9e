"""Host functions: the shape of one, of the modules that offer them, and of what a module is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.errors import UsageError
from moonbox.scripts.hostapi.arguments import Parameter, bind
from moonbox.scripts.hostapi.grants import GRANT_KEYS, not_granted
from moonbox.suggest import unknown

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from moonbox.errors import Denied
    from moonbox.scripts.hostapi.grants import Grants
    from moonbox.scripts.hostapi.limits import HostLimits, HttpOptions
    from moonbox.scripts.hostapi.secrets import SecretStore

__all__ = ["Host", "HostFunction", "HostModule"]


@dataclass(frozen=True, slots=True)
class HostFunction:
    """One function of the host that a script may call by its name, such as "http.get"."""

    name: str
    summary: str
    run: Callable[..., Any]
    parameters: tuple[Parameter, ...] = ()
    returns: str = ""
    needs: tuple[str, ...] = ()
    """Keys of Grants, of which at least one must grant something; empty for functions that reach nothing."""
    blocking: bool = False
    """It may wait for the network, the disk or the clock: call it in a thread of its own."""
    refuses: bool = False
    """It checks its grants itself and names exactly what is missing: it is called even when nothing is granted."""

    def __post_init__(self) -> None:
        for key in self.needs:
            if key not in GRANT_KEYS:
                raise UsageError(f"{self.name}: {unknown('grant', key, GRANT_KEYS)}")

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(parameter.name for parameter in self.parameters)})"

    @property
    def doc(self) -> str:
        """The signature, what it does, and each parameter: text for the script's `docs`."""
        lines = [self.signature + (f" -> {self.returns}" if self.returns else ""), self.summary]
        for parameter in self.parameters:
            lines += _described(parameter, "  ")
        return "\n".join(lines)

    def __call__(self, *args: Any) -> Any:
        """Check the arguments, then run."""
        return self.run(*bind(self.signature, self.parameters, args))


class HostModule(Protocol):
    """A source of host functions. A Python module with this one function is one."""

    def functions(self, host: Host) -> Sequence[HostFunction]:
        """Every function it offers, granted or not; called once for each HostApi."""


@dataclass(frozen=True, slots=True)
class Host:
    """What host functions may use: everything that differs between machines, runs and tests comes from here."""

    name: str
    section: str
    """The section of the configuration that holds the grants, for messages."""
    grants: Grants
    limits: HostLimits
    http: HttpOptions
    environ: Mapping[str, str] = field(repr=False)  # a traceback must not show it
    secrets: SecretStore
    clock: Callable[[], float]
    timer: Callable[[], float]
    """Seconds from any start, for measuring how long something takes."""
    entropy: Callable[[int], bytes]
    log: Callable[[str, str, Any], None]
    closing: threading.Event
    on_close: list[Callable[[], None]] = field(default_factory=list)

    def redact(self, value: Any) -> Any:
        """A plain value with every known secret replaced."""
        return self.secrets.redact(value)

    def not_granted(self, what: str, key: str, value: str) -> Denied:
        """The refusal that says which line of the configuration would allow it."""
        return not_granted(what, key, value, self.grants, self.section)


def _described(parameter: Parameter, indent: str) -> list[str]:
    kind = "string" if parameter.kind == "data" else "table" if parameter.kind == "options" else parameter.kind
    optional = "" if parameter.required else ", optional"
    lines = [f"{indent}{parameter.name} ({kind}{optional})" + (f": {parameter.doc}" if parameter.doc else "")]
    for option in parameter.options:
        lines += _described(option, indent + "  ")
    return lines
