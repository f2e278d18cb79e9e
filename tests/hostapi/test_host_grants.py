"""Grants and host patterns: what they accept, what they refuse, and in which words. The tables are in grants.txt."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from moonbox.errors import ConfigError
from moonbox.net.addresses import parse_address, why_refused
from moonbox.scripts.hostapi.grants import Grants, HostPattern, SecretGrant, grant_text

LINES = [
    [part.strip() for part in line.split(" |")]
    for line in Path(__file__).with_name("grants.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def test_grants_come_from_a_configuration(tmp_path: Path) -> None:
    secrets = {"TOKEN": ["api.example.com"], "CLIENT": {"hosts": ["auth.example.com"], "places": ["body"]}}
    given = {"http": ["*.example.org"], "env": ["MY_API_KEY"], "read": ["./data"], "write": ["/srv/out"]}
    grants = Grants.from_dict({**given, "secrets": secrets}, tmp_path)
    assert grants.http == ("*.example.org",)
    assert [grants.folder(text) for text in ("./data", "/srv/out")] == [tmp_path / "data", Path("/srv/out")]
    assert grants.secrets == (
        SecretGrant("TOKEN", ("api.example.com",)),
        SecretGrant("CLIENT", ("auth.example.com",), ("body",)),
    )
    assert (grants.secret("MY_API_KEY"), grants.secret("OTHER")) == (SecretGrant("MY_API_KEY"), None)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"http": "api.example.com"}, 'http must be an array of strings; write http = ["api.example.com"]'),
        ({"env": [1]}, "env must be an array of strings, not [1]"),
        ({"env": ["*"]}, "invalid name of an environment variable '*'; write it like \"MY_API_KEY\""),
        ({"read": [""]}, "invalid folder ''; write it like \"./data\""),
        ({"read": ["/"]}, "'/' is the whole file system; grant the folders that the script needs"),
        (
            {"read": ["/dev/shm/../"]},
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


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_hosts_and_addresses(line: list[str]) -> None:
    kind, text, *rest = line
    if kind == "wrong":
        with pytest.raises(ConfigError) as caught:
            HostPattern.parse(text)
        assert str(caught.value).endswith(rest[0])
    elif kind == "address":
        parsed = parse_address(text)
        assert parsed is not None
        assert (why_refused(parsed) or "public") == rest[0]
    else:
        allowed = HostPattern.parse(text).allows(rest[0], parse_address(rest[0]), int(rest[1]))
        assert allowed is (kind == "allows")


def test_the_advised_grant_is_one_that_allows_it() -> None:
    for host, port in (("api.example.com", 443), ("api.example.com", 81), ("127.0.0.1", 80), ("::1", 80), ("::1", 81)):
        assert HostPattern.parse(grant_text(host, port)).allows(host, parse_address(host), port)


def test_everything_that_python_calls_private_is_refused() -> None:
    for text in ("10.0.0.1", "192.0.2.1", "203.0.113.9", "fc00::1", "100::1", "2001:10::1", "3fff::1"):
        assert why_refused(ip_address(text)) is not None
