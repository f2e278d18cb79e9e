"""Grants: what a script may reach, read from its section of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moonbox.errors import ConfigError, Denied
from moonbox.scripts.hostapi.arguments import excerpt
from moonbox.scripts.hostapi.host_patterns import HostPattern
from moonbox.suggest import unknown

__all__ = ["GRANT_KEYS", "SECRET_PLACES", "Grants", "SecretGrant", "not_granted"]

GRANT_KEYS = ("http", "env", "read", "write", "secrets")
SECRET_PLACES = ("header", "body", "query")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_KERNEL_FOLDERS = ("/proc", "/sys", "/dev")


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
        """Grants from the keys of a configuration section; unknown keys and wrong types raise ConfigError."""
        for key in mapping:
            if key not in GRANT_KEYS:
                raise ConfigError(unknown("grant", str(key), GRANT_KEYS))
        lists = {key: _strings(key, mapping[key]) for key in ("http", "env", "read", "write") if key in mapping}
        return cls(
            **lists, secrets=_secrets(mapping.get("secrets", ())), base=str(base_dir), protected=tuple(protected)
        )

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
        for secret in self.secrets:
            if secret.name == name:
                return secret
        return SecretGrant(name) if name in self.env else None


def not_granted(what: str, key: str, value: str, grants: Grants, section: str) -> Denied:
    """The refusal that says which line of the configuration would allow it."""
    value = excerpt(value, 1_000)
    line = f'"{value}" to {key}' if getattr(grants, key) else f'{key} = ["{value}"]'
    return Denied(f"{excerpt(what, 1_000)} is not granted; add {line} under [{section}]", code="not_granted")


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


def _secrets(value: Any) -> tuple[SecretGrant, ...]:
    if isinstance(value, Mapping):
        return tuple(_secret(name, how) for name, how in value.items())
    return tuple(SecretGrant(name) for name in _strings("secrets", value))


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
