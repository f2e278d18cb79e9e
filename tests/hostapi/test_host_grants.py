"""Grants and host patterns: what they accept, what they refuse, and in which words."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from moonbox.errors import ConfigError
from moonbox.net.addresses import parse_address, why_refused
from moonbox.scripts.hostapi import Grants, SecretGrant
from moonbox.scripts.hostapi.grants import HostPattern, grant_text


def test_grants_come_from_a_configuration(tmp_path: Path) -> None:
    grants = Grants.from_dict(
        {
            "http": ["api.example.com", "*.example.org"],
            "env": ["MY_API_KEY"],
            "read": ["./data"],
            "write": ["/srv/out"],
            "secrets": {"TOKEN": ["api.example.com"], "CLIENT": {"hosts": ["auth.example.com"], "places": ["body"]}},
        },
        tmp_path,
    )
    assert grants.http == ("api.example.com", "*.example.org")
    assert grants.folder("./data") == tmp_path / "data"
    assert grants.folder("/srv/out") == Path("/srv/out")
    assert grants.secrets == (
        SecretGrant("TOKEN", ("api.example.com",)),
        SecretGrant("CLIENT", ("auth.example.com",), ("body",)),
    )
    assert grants.secret("MY_API_KEY") == SecretGrant("MY_API_KEY")
    assert grants.secret("OTHER") is None


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"htpp": []}, "unknown grant 'htpp'; did you mean 'http'?"),
        ({"zzz": []}, "unknown grant 'zzz'; known grants: http, env, read, write, secrets"),
        ({"http": "api.example.com"}, 'http must be an array of strings; write http = ["api.example.com"]'),
        ({"env": [1]}, "env must be an array of strings, not [1]"),
        ({"env": ["MY KEY"]}, "invalid name of an environment variable 'MY KEY'; write it like \"MY_API_KEY\""),
        ({"env": ["*"]}, "invalid name of an environment variable '*'; write it like \"MY_API_KEY\""),
        ({"read": [""]}, "invalid folder ''; write it like \"./data\""),
        ({"read": ["/"]}, "'/' is the whole file system; grant the folders that the script needs"),
        ({"read": ["/proc/self"]}, "'/proc/self' is in /proc, which contains no ordinary files; grant another folder"),
        (
            {"write": ["/dev/shm/../"]},
            "'/dev/shm/../' is in /dev, which contains no ordinary files; grant another folder",
        ),
        ({"secrets": {"A": {"host": []}}}, "secret A: unknown key 'host'; did you mean 'hosts'?"),
        ({"secrets": {"A": {"places": ["url"]}}}, "secret A: unknown place 'url'; known places: header, body, query"),
    ],
)
def test_wrong_configuration_is_refused(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Grants.from_dict(mapping)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("https://api.example.com/v1", ': write the host alone, such as "api.example.com"'),
        ("user@evil.example", ': write the host alone, such as "evil.example"'),
        ("api.example.com/v1", ': write the host alone, such as "api.example.com"'),
        ("api.*.com", ': a star is only allowed at the beginning, such as "*.example.org"'),
        ("bücher.example", ": write it in its ASCII form (xn--…)"),
        ("localhost:8080", ': this machine is granted by its address; write "127.0.0.1:8080"'),
        ("a.localhost", ': this machine is granted by its address; write "127.0.0.1"'),
        ("api.example.com:99999", ": the port must be a number from 1 to 65535 or *, not '99999'"),
        ("127.1", ": write it like 10.0.0.5 or 10.0.0.0/8"),
        ("10.0.0.1/8", ": 10.0.0.1/8 has host bits set"),
        ("0x7f.1.0x1", ': write it like "api.example.com", "*.example.org" or "127.0.0.1:8080"'),
        ("", ': write it like "api.example.com", "*.example.org" or "127.0.0.1:8080"'),
    ],
)
def test_wrong_host_patterns_say_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HostPattern.parse(text)
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("pattern", "host", "port", "allowed"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "api.example.com", 80, True),
        ("api.example.com", "api.example.com", 8080, False),
        ("api.example.com", "x.api.example.com", 443, False),
        ("api.example.com", "example.com", 443, False),
        ("API.Example.com.", "api.example.com", 443, True),
        ("api.example.com:8080", "api.example.com", 8080, True),
        ("api.example.com:8080", "api.example.com", 443, False),
        ("api.example.com:*", "api.example.com", 12345, True),
        ("*.example.org", "a.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("*", "anything.example", 443, True),
        ("*", "anything.example", 22, False),
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("127.0.0.1:8080", "127.0.0.2", 8080, False),
        ("10.0.0.0/8", "10.9.8.7", 80, True),
        ("10.0.0.0/8", "db.internal", 80, False),
        ("::1", "::1", 80, True),
        ("[::1]:8080", "::1", 8080, True),
        ("[fd00::/8]:5000", "fd12::1", 5000, True),
        ("::ffff:127.0.0.1", "127.0.0.1", 80, True),
    ],
)
def test_patterns_match(pattern: str, host: str, port: int, allowed: bool) -> None:
    assert HostPattern.parse(pattern).allows(host, parse_address(host), port) is allowed


def test_the_advised_grant_is_one_that_allows_it() -> None:
    for host, port in (("api.example.com", 443), ("api.example.com", 81), ("127.0.0.1", 80), ("::1", 80), ("::1", 81)):
        assert HostPattern.parse(grant_text(host, port)).allows(host, parse_address(host), port)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("93.184.216.34", None),
        ("8.8.8.8", None),
        ("0.0.0.0", "an unspecified address"),
        ("0.1.2.3", "an unspecified address"),
        ("10.1.2.3", "a private address"),
        ("100.100.100.200", "a private address"),
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("169.254.169.254", "a link-local address"),
        ("172.31.0.1", "a private address"),
        ("172.32.0.1", None),
        ("192.0.0.192", "a reserved address"),
        ("192.168.1.1", "a private address"),
        ("198.18.0.1", "a reserved address"),
        ("168.63.129.16", "a cloud metadata address"),
        ("224.0.0.1", "a multicast address"),
        ("255.255.255.255", "a reserved address"),
        ("2606:4700::1111", None),
        ("::", "an unspecified address"),
        ("::1", "a loopback address"),
        ("::127.0.0.1", "an IPv4 address inside IPv6"),
        ("fe80::1", "a link-local address"),
        ("fe80::1%eth0", "a link-local address"),
        ("fd00:ec2::254", "a private address"),
        ("fec0::1", "a private address"),
        ("ff02::1", "a multicast address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("::ffff:10.0.0.1", "a private address"),
        ("::ffff:0:127.0.0.1", "an IPv4 address inside IPv6"),
        ("64:ff9b::7f00:1", "a loopback address (through NAT64)"),
        ("64:ff9b::808:808", None),
        ("64:ff9b:1::7f00:1", "an IPv4 address inside IPv6"),
        ("2002:7f00:1::", "an IPv4 address inside IPv6"),
        ("2001:0:7f00:1::", "an IPv4 address inside IPv6"),
        ("2001:db8::1", "a reserved address"),
        ("4000::1", "a reserved address"),
        ("5f00::1", "a reserved address"),
    ],
)
def test_addresses_that_are_not_public_are_known(address: str, why: str | None) -> None:
    parsed = parse_address(address)
    assert parsed is not None
    assert why_refused(parsed) == why


def test_everything_that_python_calls_private_is_refused() -> None:
    for text in ("10.0.0.1", "192.0.2.1", "203.0.113.9", "fc00::1", "100::1", "2001:10::1", "3fff::1"):
        assert why_refused(ip_address(text)) is not None
