"""Host functions: their shape, that of the modules that offer them, and what a module is given to use and to spend."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol

from moonbox._version import __version__
from moonbox.errors import UsageError
from moonbox.scripts.hostapi.arguments import Parameter, bind
from moonbox.scripts.hostapi.grants import GRANT_KEYS, not_granted
from moonbox.suggest import unknown

if TYPE_CHECKING:
    import ssl
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from moonbox.errors import Denied
    from moonbox.net.addresses import Resolver
    from moonbox.scripts.hostapi.grants import Grants
    from moonbox.scripts.hostapi.secrets import SecretStore

__all__ = ["Host", "HostFunction", "HostLimits", "HostModule", "HttpOptions"]

MB = 1_000_000


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
    """Seconds of processor time of the calling thread: what waits for a busy machine is not slow."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """Bounds of the host functions of one HostApi; sizes are bytes, times are seconds."""

    http_timeout: float = 30.0
    """A whole http call, redirects included, when the script gives no timeout."""
    max_http_timeout: float = 120.0
    """The longest timeout that a script may choose."""
    max_redirects: int = 10
    max_request: int = 10 * MB
    max_response: int = 10 * MB
    """Of the body, after decompression."""
    max_headers: int = 64_000
    """Of all request headers together; a response may have about 100 kB."""
    max_file: int = 10 * MB
    """One read, one write."""
    max_written: int = 100 * MB
    """All writes of one HostApi together."""
    max_entries: int = 10_000
    """Of one folder listing."""
    max_text: int = 10 * MB
    """Any text or data given to a function that computes (base64, crypto, csv, regex, url)."""
    max_cells: int = 500_000
    """Fields of one CSV text, or of the matches of one regex call."""
    max_parsed: int = 50 * MB
    """Characters in the rows of one parsed CSV text, with the column names that each row repeats."""
    max_matches: int = 10_000
    """Matches of one regex call."""
    max_regex_work: int = 400 * MB
    """Text size times compiled pattern size of one match (more with many groups); each takes RE2 up to 9 ns."""
    regex_seconds: float = 2.0
    """Of one regex call that looks for several matches."""
    max_sleep: float = 30.0
    max_random: int = 65_536
    max_log_records: int = 1_000
    max_log_message: int = 10_000

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            whole = limit.type == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                wanted = "a whole number" if whole else "a number of seconds"
                raise UsageError(f"HostLimits.{limit.name} must be {wanted}, not {value!r}")
            if not 0 <= value < float("inf"):
                raise UsageError(f"HostLimits.{limit.name} must be at least 0, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How http requests are made. Proxies and other settings of the environment are never used."""

    resolver: Resolver | None = None
    """Name resolution; the system's by default."""
    ssl_context: ssl.SSLContext | None = None
    """Certificates to trust; the system's and certifi's by default."""
    secrets_over_plain_http: bool = False
    """Send secrets without TLS to hosts by name. Local addresses need no such permission."""
    user_agent: str = f"moonbox/{__version__}"
