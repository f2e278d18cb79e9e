"""Network addresses: which of them are not public, and the addresses of a host name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from moonbox.net.errors import NetError

__all__ = ["LOOPBACK_NAMES", "Address", "NameLookup", "Resolver", "is_loopback", "parse_address", "why_refused"]

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a host name, given with the port; raises OSError when there are none."""

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""What a URL or a Host header calls this machine."""


def parse_address(text: str) -> Address | None:
    """The address that a text spells in its one strict form, an IPv4-mapped one as IPv4; None for anything else."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_loopback(host: str) -> bool:
    """Whether a host to listen on or to connect to is this machine alone."""
    address = parse_address(host.removeprefix("[").removesuffix("]"))
    return host == "localhost" if address is None else address.is_loopback


def why_refused(address: Address) -> str | None:
    """What kind of non-public address this is, or None when it is public.

    The tables are our own because those of `ipaddress` differ between Python versions. For IPv6 the
    public range is named and everything outside it refused, so that a new special range is closed by default.
    """
    if isinstance(address, IPv4Address):
        return next((why for network, why in _IPV4 if address in network), None)
    if address in _NAT64:
        inner = why_refused(IPv4Address(int(address) & 0xFFFFFFFF))
        return f"{inner} (through NAT64)" if inner else None
    special = next((why for network, why in _IPV6 if address in network), None)
    return special or (None if address in _IPV6_PUBLIC else "a reserved address")


class NameLookup:
    """Name resolution with a time limit, and a bounded number of threads that wait for the system's resolver."""

    def __init__(self, resolver: Resolver | None = None, *, most_at_once: int = 16) -> None:
        self._resolve = resolver or _system_addresses
        self._free = threading.BoundedSemaphore(most_at_once)

    def addresses(self, host: str, port: int, timeout: float) -> list[Address]:
        """All addresses of a name, or the address that it spells; raises OSError, or NetError after the timeout."""
        literal = parse_address(host)
        if literal is not None:
            return [literal]
        addresses = [parse_address(text) for text in dict.fromkeys(self._within(timeout, host, port))]
        known = [address for address in addresses if address is not None]
        if not known or len(known) < len(addresses):
            raise OSError(f"{host} has no usable address")
        return known

    def _within(self, timeout: float, host: str, port: int) -> Sequence[str]:
        """Resolve in a thread of its own: the system's resolver cannot be given a time limit.

        A lookup that takes too long is abandoned. It keeps its place until it ends, so that slow name servers
        cannot make the threads pile up.
        """
        answers: list[Sequence[str]] = []
        failures: list[Exception] = []

        def work() -> None:
            try:
                answers.append(self._resolve(host, port))
            except Exception as problem:  # noqa: BLE001 - carried over to the thread that waits
                failures.append(problem)
            finally:
                self._free.release()

        timeout = max(timeout, 0.0)
        if not self._free.acquire(timeout=timeout):
            raise NetError("too many name lookups are waiting for an answer", code="timeout", retryable=True)
        thread = threading.Thread(target=work, name="moonbox-resolve", daemon=True)
        thread.start()
        thread.join(timeout)
        if failures:
            raise OSError(f"the name {host} cannot be resolved") from failures[0]
        if not answers:
            raise NetError(f"resolving the name {host} took too long", code="timeout", retryable=True)
        return answers[0]


def _system_addresses(host: str, port: int) -> Sequence[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


_IPV4 = tuple(
    (IPv4Network(network), why)
    for network, why in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a private address"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a reserved address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a reserved address"),
        ("198.51.100.0/24", "a reserved address"),
        ("203.0.113.0/24", "a reserved address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("168.63.129.16/32", "a cloud metadata address"),  # public in form, but Azure answers it inside each machine
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_IPV6_PUBLIC = IPv6Network("2000::/3")
_IPV6 = tuple(
    (IPv6Network(network), why)
    for network, why in (
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("::/96", "an IPv4 address inside IPv6"),
        ("::ffff:0:0:0/96", "an IPv4 address inside IPv6"),
        ("64:ff9b:1::/48", "an IPv4 address inside IPv6"),
        ("2001::/32", "an IPv4 address inside IPv6"),  # Teredo
        ("2002::/16", "an IPv4 address inside IPv6"),  # 6to4
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "a reserved address"),
        ("3fff::/20", "a reserved address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "a multicast address"),
    )
)
