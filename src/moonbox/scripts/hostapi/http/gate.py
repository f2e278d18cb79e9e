"""The gate: which hosts a script may name, and which addresses its connections may go to."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from moonbox.errors import Denied, ToolError
from moonbox.net.addresses import parse_address, why_refused
from moonbox.scripts.hostapi.patterns import grant_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.net.addresses import Address
    from moonbox.scripts.hostapi.function import Host
    from moonbox.scripts.hostapi.http.options import Resolver
    from moonbox.scripts.hostapi.http.urls import Target

__all__ = ["Gate"]


class Gate:
    """The two checks of every request and of every redirect: the host that the URL names, then, when a
    connection is made, all the addresses that the host has."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._patterns = host.grants.patterns
        self._resolve = host.http.resolver or system_addresses

    def admit(self, target: Target) -> None:
        """Raises Denied unless the script may name this host."""
        if any(pattern.allows(target.host, target.address, target.port) for pattern in self._patterns):
            return
        wanted = grant_text(target.host, target.port)
        if target.host == "localhost" or target.host.endswith(".localhost"):
            local = grant_text("127.0.0.1", target.port)
            raise self._host.not_granted(f"http access to {wanted} by name", "http", local)
        raise self._host.not_granted(f"http access to {wanted}", "http", wanted)

    def addresses(self, host: str, port: int, timeout: float) -> list[str]:
        """The addresses to connect to, resolved once; raises Denied if any of them must not be reached."""
        literal = parse_address(host)
        found = [literal] if literal is not None else self._resolved(host, port, timeout)
        for address in found:
            why = why_refused(address)
            if why and not any(pattern.covers(address, port) for pattern in self._patterns):
                raise self._refused(host, address, port, why)
        return [str(address) for address in found]

    def _resolved(self, host: str, port: int, timeout: float) -> list[Address]:
        texts = _within(timeout, self._resolve, host, port)
        addresses = [parse_address(text) for text in dict.fromkeys(texts)]
        known = [address for address in addresses if address is not None]
        if not known or len(known) < len(addresses):
            raise OSError(f"{host} has no usable address")
        return known

    def _refused(self, host: str, address: Address, port: int, why: str) -> Denied:
        what = f"{address} is {why}" if parse_address(host) else f"{host} has the address {address}, {why}"
        advice = f'add "{grant_text(str(address), port)}" to http under [{self._host.section}]'
        return Denied(f"{what}, which is reached only when granted by address; {advice}", code="not_granted")


def system_addresses(host: str, port: int) -> Sequence[str]:
    """What the system's resolver knows."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def _within(timeout: float, resolve: Resolver, host: str, port: int) -> Sequence[str]:
    """Resolve in a thread of its own, because the system's resolver cannot be given a time limit."""
    answer: list[Sequence[str]] = []
    failure: list[Exception] = []

    def work() -> None:
        try:
            answer.append(resolve(host, port))
        except Exception as problem:  # noqa: BLE001 - carried over to the thread that waits
            failure.append(problem)

    thread = threading.Thread(target=work, name="moonbox-resolve", daemon=True)
    thread.start()
    thread.join(max(timeout, 0.0))
    if failure:
        raise OSError(f"the name {host} cannot be resolved") from failure[0]
    if not answer:
        raise ToolError(f"resolving the name {host} took too long", code="timeout", retryable=True)
    return answer[0]
