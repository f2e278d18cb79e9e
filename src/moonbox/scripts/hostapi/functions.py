"""Host functions: their shape and arguments, the modules that offer them, and what a module may use and spend."""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from moonbox.errors import ArgumentError, Denied
from moonbox.scripts.hostapi.grants import Grants, excerpt
from moonbox.secrets import SecretRedactor
from moonbox.suggest import unknown
from moonbox.values import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping, Sequence

    from moonbox.net.addresses import Resolver
    from moonbox.scripts.hostapi.secrets import SecretStore

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
    refuses: bool = False
    """It checks its grants itself and names exactly what is missing: it is called even when nothing is granted."""

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
        """Check the arguments, then run. Errors about arguments begin with the signature."""
        try:
            return self.run(*_bound(self.parameters, args))
        except Wrong as wrong:
            raise ArgumentError(f"{self.signature}: {wrong.message}", code=wrong.code, tool=wrong.tool) from None


class HostModule(Protocol):
    """A source of host functions, such as a Python module with this function."""

    def functions(self, host: Host) -> Sequence[HostFunction]:
        """Every function it offers, granted or not; called once for each HostApi."""


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


@dataclass(slots=True)
class Host:
    """What host functions may use: everything that differs between machines, runs and tests comes from here."""

    grants: Grants
    name: str = "script"
    section: str = ""
    """The section of the configuration that holds the grants, for messages."""
    limits: HostLimits = field(default_factory=HostLimits)
    resolver: Resolver | None = None
    """Name resolution for http; the system's by default. Settings of the environment, such as proxies, are not used."""
    ssl_context: ssl.SSLContext | None = None
    """Certificates to trust; the system's and certifi's by default."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)  # for no traceback to show
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.thread_time
    """Processor time of the calling thread in seconds, which does not include waiting for a busy machine."""
    entropy: Callable[[int], bytes] = os.urandom
    closing: threading.Event = field(default_factory=threading.Event)
    on_close: list[Callable[[], None]] = field(default_factory=list)
    redact: SecretRedactor = field(default_factory=SecretRedactor)
    """Replaces every known secret in a plain value."""
    secrets: SecretStore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.section = self.section or f"tools.script.{self.name}"

    def not_granted(self, what: str, key: str, value: str) -> Denied:
        """The refusal that says which line of the configuration would allow it."""
        value = excerpt(value, 1_000)
        line = f'"{value}" to {key}' if getattr(self.grants, key) else f'{key} = ["{value}"]'
        return Denied(f"{excerpt(what, 1_000)} is not granted; add {line} under [{self.section}]", code="not_granted")


Kind = Literal["string", "data", "integer", "number", "boolean", "table", "array", "options", "any"]
_WORDS = {"data": "a string", "integer": "an integer", "array": "an array", "options": "a table", "any": "any value"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a host function, or one key of its options table.

    `data` accepts any string, binary ones included, and arrives as bytes; `options` is a table of the keys in
    `options` and no others, and arrives as a dict that holds every one of them.
    """

    name: str
    kind: Kind
    doc: str = ""
    required: bool = False
    default: Any = None
    least: float | None = None
    most: float | None = None
    """The largest number, or the most bytes of a string."""
    choices: tuple[str, ...] = ()
    options: tuple[Parameter, ...] = ()


def options(*known: Parameter) -> Parameter:
    """The last parameter of many functions: a table of these keys."""
    return Parameter("options", "options", options=known)


class Wrong(ArgumentError):
    """An argument that a function cannot take. `HostFunction` puts the signature before the message."""


def _bound(parameters: Sequence[Parameter], args: Sequence[Any]) -> list[Any]:
    """The checked arguments in the parameters' order."""
    if len(args) > len(parameters):
        most = f"at most {len(parameters)} argument{'s' * (len(parameters) != 1)}" if parameters else "no arguments"
        raise Wrong(f"takes {most}, not {len(args)}")
    given = [*args, *[None] * (len(parameters) - len(args))]
    return [checked(parameter, value, parameter.name) for parameter, value in zip(parameters, given, strict=True)]


def scalar_text(value: Any) -> str:
    """A string, number or boolean of a script as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def type_word(value: Any) -> str:
    """The script's word for the type of a plain value."""
    if value is None:
        return "null"
    words = {bool: "boolean", int: "integer", float: "float", str: "string", bytes: "binary string"}
    return words.get(type(value)) or ("array" if isinstance(value, list) else "table")


def checked(parameter: Parameter, value: Any, path: str) -> Any:
    """The value as the parameter takes it, or its default. Raises Wrong, whose message names the path."""
    if value is None:
        if parameter.required:
            raise Wrong(f"{path} is missing")
        return _options(parameter, {}, path) if parameter.kind == "options" else parameter.default
    value = _converted(parameter, value, path)
    if isinstance(value, int | float | str | bytes) and not isinstance(value, bool):
        _in_range(parameter, value, path)
    if parameter.choices and value not in parameter.choices:
        known = ", ".join(f'"{choice}"' for choice in parameter.choices)
        raise Wrong(f'{path} must be one of {known}, not "{excerpt(value)}"')
    return value


def _converted(parameter: Parameter, value: Any, path: str) -> Any:
    match parameter.kind:
        case "any":
            return value
        case "string" | "data" if isinstance(value, str):
            encoded = _encoded(value, path)
            return value if parameter.kind == "string" else encoded
        case "data" if isinstance(value, bytes):
            return value
        case "string" if isinstance(value, bytes):
            raise Wrong(f"{path} must be text, but this string is not UTF-8")
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" | "number" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case "number" if isinstance(value, float) and math.isfinite(value):
            return value
        case "integer" if isinstance(value, float) and value.is_integer() and INT64_MIN <= value <= INT64_MAX:
            return int(value)
        # An empty table of a script may arrive as either of the two.
        case "array" if isinstance(value, list) or value == {}:
            return list(value)
        case "table" if isinstance(value, dict) or value == []:
            return dict(value)
        case "options" if isinstance(value, dict) or value == []:
            return _options(parameter, dict(value), path)
    given = str(value) if isinstance(value, float) and not math.isfinite(value) else type_word(value)
    raise Wrong(f"{path} must be {_WORDS.get(parameter.kind, f'a {parameter.kind}')}, not {given}")


def _options(parameter: Parameter, given: dict[Any, Any], path: str) -> dict[str, Any]:
    known = {option.name: option for option in parameter.options}
    for key in given:
        if key not in known:
            raise Wrong(unknown("option" if path == "options" else "key", str(key), known))
    return {name: checked(option, given.get(name), f"{path}.{name}".lstrip(".")) for name, option in known.items()}


def _in_range(parameter: Parameter, value: float | str | bytes, path: str) -> None:
    if isinstance(value, str | bytes):
        size = len(value.encode("utf-8", "surrogatepass") if isinstance(value, str) and parameter.most else value)
        if parameter.most is not None and size > parameter.most:
            raise Wrong(f"{path} must have at most {parameter.most:,} bytes, not {size:,}", code="too_large")
    elif parameter.least is not None and value < parameter.least:
        raise Wrong(f"{path} must be at least {parameter.least:,.12g}, not {value}")
    elif parameter.most is not None and value > parameter.most:
        raise Wrong(f"{path} must be at most {parameter.most:,.12g}, not {value}")


def _encoded(value: str, path: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise Wrong(f"{path} contains half of a surrogate pair, which is not a character") from None
