"""Grants: what a script may reach, read from its section of the configuration; and the patterns that name hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from moonbox.errors import ConfigError
from moonbox.net.addresses import Address, is_host_name, parse_address
from moonbox.suggest import unknown

_USUAL_PORTS = (80, 443)
_ANY_PORT = 0
_ENTRY = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::(\*|[0-9]{1,5}))?", re.ASCII)
_FORMS = '"api.example.com", "*.example.org", "127.0.0.1:8080" or "10.0.0.0/8"'
SECRET_PLACES = ("header", "body", "query")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_KERNEL_FOLDERS = ("/proc", "/sys", "/dev")


@dataclass(frozen=True, slots=True)
class HostPattern:
    """One entry of `http = [...]`.

    api.example.com      that host, on the ports 80 and 443
    api.example.com:8080 that host, on that port alone; `:*` means every port
    *.example.org        its subdomains at any depth, not example.org itself
    *                    every public host
    127.0.0.1:8080       an address, which may be a private one; so may 10.0.0.0/8, ::1 and [::1]:8080
    """

    name: str = ""
    """A host, or as `*.example.org` and `*` several."""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        """Raises ConfigError that says what to write instead."""
        if "://" in text or "@" in text:
            raise _invalid(text)
        host, port = _split_port(text)
        network = _network(host)
        if network is not None:
            return cls(network=network, port=port)
        name = (host.lower() if host.isascii() else host).removesuffix(".")
        domain = name.removeprefix("*.")
        if domain == "localhost" or domain.endswith(".localhost"):
            address = f"127.0.0.1:{port}" if port else "127.0.0.1"
            raise ConfigError(f'{text!r}: this machine is granted by its address; write "{address}"')
        if host != "*" and not is_host_name(domain):
            raise _invalid(text)
        return cls(name, port=port)

    def allows(self, host: str, address: Address | None, port: int) -> bool:
        """Whether a URL may name this host (already in lower case) or, when it is one, this address."""
        if not self._allows_port(port):
            return False
        if address is not None:
            return self.covers(address, port) or self.name == "*"
        return fnmatchcase(host, self.name)

    def covers(self, address: Address, port: int) -> bool:
        """Whether it grants this very address, private or not."""
        return self.network is not None and self._allows_port(port) and address in self.network

    def _allows_port(self, port: int) -> bool:
        return port in _USUAL_PORTS if self.port is None else self.port in (_ANY_PORT, port)


def grant_text(host: str, port: int) -> str:
    """The pattern that grants just this host or address and port."""
    host = f"[{host}]" if ":" in host else host
    return host if port in _USUAL_PORTS else f"{host}:{port}"


def _split_port(text: str) -> tuple[str, int | None]:
    """The host without brackets, and the port. A bare IPv6 address, which has colons of its own, has none."""
    entry = _ENTRY.fullmatch(text)
    if entry is None and text.count(":") > 1:
        return text, None
    if entry is None or (entry[3] and entry[3] != "*" and not 1 <= int(entry[3]) <= 65535):
        raise _invalid(text)
    host, port = entry[1] or entry[2] or "", entry[3]
    return host, None if port is None else _ANY_PORT if port == "*" else int(port)


def _network(host: str) -> IPv4Network | IPv6Network | None:
    """The network or the single address that a text spells in its one strict form."""
    base, slash, _ = host.partition("/")
    address = parse_address(base)
    try:
        return None if address is None else ip_network(host if slash else address)
    except ValueError:
        return None


def _invalid(text: str) -> ConfigError:
    host = text.rpartition("://")[2].partition("/")[0].rpartition("@")[2]
    if host != text and is_host_name(host):
        return ConfigError(f'invalid host {text!r}: write the host alone, such as "{host}"')
    return ConfigError(f"invalid host {text!r}: write it like {_FORMS}")


@dataclass(frozen=True, slots=True)
class SecretGrant:
    """An environment variable that a script may use but not read."""

    name: str
    hosts: tuple[str, ...] = ()
    """Where http may send it; empty means every host that `http` grants by name or address."""
    places: tuple[str, ...] = ("header",)
    """The parts of a request that may contain it."""

    def __post_init__(self) -> None:
        _check_variable(self.name)
        for host in self.hosts:
            HostPattern.parse(host)
        for place in self.places:
            if place not in SECRET_PLACES:
                raise ConfigError(f"secret {self.name}: {unknown('place', str(place), SECRET_PLACES)}")

    @property
    def patterns(self) -> tuple[HostPattern, ...]:
        return tuple(HostPattern.parse(host) for host in self.hosts)


@dataclass(frozen=True, slots=True)
class Grants:
    """What a script may reach; nothing by default.

    `env` lets the script read a variable and use it as a secret; `secrets` lets it only use it. `read` and
    `write` name folders, relative to `base`; writing does not include reading.
    """

    http: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    secrets: tuple[SecretGrant, ...] = ()
    base: str = ""
    protected: tuple[str, ...] = ()
    """Files and folders that stay unwritable although `write` covers them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", str(Path(self.base).absolute()))
        for host in self.http:
            HostPattern.parse(host)
        for name in self.env:
            _check_variable(name)
        for folder in (*self.read, *self.write):
            _check_folder(folder, self.folder(folder))

    @classmethod
    def from_dict(
        cls, mapping: Mapping[str, Any], base_dir: str | Path = ".", *, protected: Sequence[str] = ()
    ) -> Grants:
        """Grants from the keys of a configuration section; wrong types raise ConfigError."""
        given = {key: _strings(key, mapping.get(key, ())) for key in ("http", "env", "read", "write")}
        wanted = mapping.get("secrets", ())
        if not isinstance(wanted, Mapping):
            wanted = dict.fromkeys(_strings("secrets", wanted), ())
        secrets = tuple(_secret(name, how) for name, how in wanted.items())
        return cls(**given, secrets=secrets, base=str(base_dir), protected=tuple(protected))

    @property
    def patterns(self) -> tuple[HostPattern, ...]:
        """The parsed entries of `http`."""
        return tuple(HostPattern.parse(host) for host in self.http)

    def folder(self, text: str) -> Path:
        """The absolute path of one entry of `read` or `write`."""
        try:
            return Path(self.base, Path(text).expanduser())
        except RuntimeError:
            raise ConfigError(f"invalid folder {text!r}: unknown user") from None

    def secret(self, name: str) -> SecretGrant | None:
        """How this variable may be used as a secret, if at all."""
        usable = (*self.secrets, *(SecretGrant(name) for name in self.env))
        return next((secret for secret in usable if secret.name == name), None)


def _check_variable(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f'invalid name of an environment variable {name!r}; write it like "MY_API_KEY"')


def _check_folder(text: str, path: Path) -> None:
    if not text or "\0" in text:
        raise ConfigError(f'invalid folder {text!r}; write it like "./data"')
    resolved = path.resolve()
    if resolved == Path(resolved.anchor):
        raise ConfigError(f"{text!r} is the whole file system; grant the folders that the script needs")
    for kernel in _KERNEL_FOLDERS:
        if resolved.is_relative_to(kernel):
            raise ConfigError(f"{text!r} is in {kernel}, which contains no ordinary files; grant another folder")


def _strings(key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ConfigError(f'{key} must be an array of strings; write {key} = ["{value}"]')
    if not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{key} must be an array of strings, not {value!r}")
    return tuple(value)


def _secret(name: str, how: Any) -> SecretGrant:
    if not isinstance(how, Mapping):
        return SecretGrant(name, hosts=_strings(f"secrets.{name}", how))
    for key in how:
        if key not in ("hosts", "places"):
            raise ConfigError(f"secret {name}: {unknown('key', str(key), ('hosts', 'places'))}")
    return SecretGrant(
        name,
        hosts=_strings(f"secrets.{name}.hosts", how.get("hosts", ())),
        places=_strings(f"secrets.{name}.places", how.get("places", ("header",))),
    )


def excerpt(value: Any, most: int = 60) -> str:
    """The beginning of a text that a script chose, for a message."""
    text = str(value)
    return text if len(text) <= most else text[:most] + "…"
