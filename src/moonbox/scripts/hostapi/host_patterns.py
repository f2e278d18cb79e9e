"""Host patterns: the hosts, addresses and ports that an http grant names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal

from moonbox.errors import ConfigError
from moonbox.net.addresses import Address, parse_address
from moonbox.net.urls import is_host_name

__all__ = ["HostPattern", "grant_text"]

_USUAL_PORTS = (80, 443)
_ANY_PORT = 0


@dataclass(frozen=True, slots=True)
class HostPattern:
    """One entry of `http = [...]`.

    api.example.com      that host, on the ports 80 and 443
    api.example.com:8080 that host, on that port alone; `:*` means every port
    *.example.org        its subdomains at any depth, not example.org itself
    *                    every public host
    127.0.0.1:8080       an address, which may be a private one; so may 10.0.0.0/8, ::1 and [::1]:8080
    """

    text: str
    kind: Literal["any", "name", "subdomains", "network"]
    name: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        """Raises ConfigError that says what to write instead."""
        if "://" in text or "@" in text:
            raise _not_alone(text)
        host, port = _split_port(text)
        network = _network(host)
        if network is not None:
            return cls(text, "network", network=network, port=port)
        if host == "*":
            return cls(text, "any", port=port)
        name = (host.lower() if host.isascii() else host).removesuffix(".")
        kind: Literal["name", "subdomains"] = "subdomains" if name.startswith("*.") else "name"
        name = name.removeprefix("*.")
        if name == "localhost" or name.endswith(".localhost"):
            address = f"127.0.0.1:{port}" if port else "127.0.0.1"
            raise ConfigError(f'{text!r}: this machine is granted by its address; write "{address}"')
        if not is_host_name(name):
            raise ConfigError(f"invalid host {text!r}: {_hint(name)}")
        return cls(text, kind, name=name, port=port)

    def allows(self, host: str, address: Address | None, port: int) -> bool:
        """Whether a URL may name this host (already in lower case) or, when it is one, this address."""
        if not self._allows_port(port):
            return False
        if address is not None:
            return self.covers(address, port) or self.kind == "any"
        match self.kind:
            case "any":
                return True
            case "name":
                return host == self.name
            case "subdomains":
                return host.endswith("." + self.name)
        return False

    def covers(self, address: Address, port: int) -> bool:
        """Whether it grants this very address, private or not."""
        return self.network is not None and self._allows_port(port) and address in self.network

    def _allows_port(self, port: int) -> bool:
        if self.port is None:
            return port in _USUAL_PORTS
        return self.port in (_ANY_PORT, port)


def grant_text(host: str, port: int) -> str:
    """The pattern that grants just this host or address and port."""
    host = f"[{host}]" if ":" in host else host
    return host if port in _USUAL_PORTS else f"{host}:{port}"


def _split_port(text: str) -> tuple[str, int | None]:
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", text)
    if bracketed:
        host, port = bracketed[1], bracketed[2]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, None
    if port is None:
        return host, None
    if port == "*":
        return host, _ANY_PORT
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise ConfigError(f"{text!r}: the port must be a number from 1 to 65535 or *, not {port!r}")
    return host, int(port)


def _network(host: str) -> IPv4Network | IPv6Network | None:
    base, slash, _ = host.partition("/")
    address = parse_address(base)
    if address is None:
        if re.fullmatch(r"[0-9.]+", base):
            raise ConfigError(f"invalid address or network {host!r}: write it like 10.0.0.5 or 10.0.0.0/8")
        if slash:
            raise _not_alone(host)
        return None
    try:
        return ip_network(host if slash else address)
    except ValueError as problem:
        raise ConfigError(f"invalid network {host!r}: {problem}") from None


def _not_alone(text: str) -> ConfigError:
    host = text.rpartition("://")[2].partition("/")[0].rpartition("@")[2]
    return ConfigError(f'invalid host {text!r}: write the host alone, such as "{host or "api.example.com"}"')


def _hint(name: str) -> str:
    if not name.isascii():
        return "write it in its ASCII form (xn--…)"
    if "*" in name:
        return 'a star is only allowed at the beginning, such as "*.example.org"'
    return 'write it like "api.example.com", "*.example.org" or "127.0.0.1:8080"'
