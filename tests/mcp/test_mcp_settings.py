"""Settings of servers: the closed contract, and the files of other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox.config import Config
from moonbox.config.mcp import ServerSettings, servers_from_config
from moonbox.config.reader import read
from moonbox.config.sections import ServeSettings
from moonbox.errors import ConfigError, UsageError
from moonbox.mcp.imports import servers_from_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_becomes_settings_relative_to_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "moonbox.toml"
    path.write_text(
        """
        [mcp.servers.local]
        command = "bin/server"
        args = ["--fast"]
        env = { KEY = "${SECRET}" }
        cwd = "data"
        lazy = true
        exclude = ["delete_*"]
        tools = { delete_me = { policy = "approve" } }
        [mcp.servers.remote]
        url = "https://user:pw@example.com:8443/mcp?key=1"
        headers = { Authorization = "Bearer ${SECRET}" }
        policy = "direct"
        """
    )
    local, remote = servers_from_config(Config.load(path, environ={"SECRET": "s3"}))
    assert (local.name, local.command, local.cwd) == ("local", f"{tmp_path}/bin/server", tmp_path / "data")
    assert (dict(local.env), local.lazy, local.kind) == ({"KEY": "s3"}, True, "stdio")
    assert [local.offers(name) for name in ("read", "delete_it", "delete_me")] == [True, False, True]
    assert [local.setting_of(name, "policy") for name in ("read", "delete_me")] == [None, "approve"]
    assert (remote.kind, remote.headers["Authorization"]) == ("http", "Bearer s3")
    assert remote.where == "https://example.com:8443/mcp"
    assert remote.setting_of("anything", "policy") == "direct"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "[mcp.servers.x] set either command or url"),
        ({"command": "a", "url": "http://b"}, "[mcp.servers.x] set either command or url, not both"),
        ({"comand": "a"}, "[mcp.servers.x] unknown key 'comand'; did you mean 'command'?"),
        ({"command": "a", "headers": {"x": "y"}}, "[mcp.servers.x] headers and oauth are for a url, not for a command"),
        ({"url": "http://a", "args": ["b"]}, "[mcp.servers.x] args, env and cwd are for a command, not for a url"),
        ({"url": "ftp://a"}, "[mcp.servers.x] url must begin with http:// or https://, not 'ftp://a'"),
        ({"url": "http://a", "transport": "stdio"}, '[mcp.servers.x] transport = "stdio" requires command'),
        ({"command": "a", "timeout": 0}, "[mcp.servers.x] timeout must be more than 0, not 0"),
        ({"command": "a", "name": "y"}, "[mcp.servers.x] the table is the name; remove the key 'name'"),
        ("npx", "[mcp.servers.x] must be a table, not 'npx'"),
    ],
)
def test_what_is_wrong_is_named(table: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerSettings.from_dict("x", table)
    assert str(caught.value) == message


def test_a_rule_for_a_tool_is_closed_too() -> None:
    with pytest.raises(ConfigError, match=r"^\[mcp\.servers\.x\.tools\.a\] policy must be 'auto', 'approve' or"):
        ServerSettings.from_dict("x", {"command": "a", "tools": {"a": {"policy": "never"}}})


def test_an_unknown_key_beside_the_servers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^\[mcp\] unknown key 'server'; did you mean 'servers'\?$"):
        servers_from_config(Config(data={"mcp": {"server": {}}}))


def test_files_of_other_clients_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(
        """{
          // what an editor allows
          "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server", "${HOME}"], "env": {"N": 1}, "autoApprove": ["read"]},
            "remote": {"type": "streamable-http", "url": "https://example.com/mcp", "headers": {"K": "${env:KEY}"}},
            "old": {"transport": "sse", "url": "https://example.com/sse // no comment"},
            "gemini": {"httpUrl": "https://example.com/g"},
            "windsurf": {"serverUrl": "https://example.com/w"},
            "off": {"command": "x", "disabled": true},
            "moonbox": {"command": "/usr/bin/moonbox", "args": ["serve"]},
            "uvx": {"command": "uvx", "args": ["moonbox", "serve", "--config", "x"]},
          },
        }"""
    )
    found = {item.name: item for item in servers_from_file(path, environ={"HOME": "/h", "KEY": "k"})}
    assert list(found) == ["files", "remote", "old", "gemini", "windsurf"]
    assert (found["files"].args, dict(found["files"].env)) == (("-y", "server", "/h"), {"N": "1"})
    assert (found["remote"].kind, found["remote"].headers) == ("http", {"K": "k"})
    assert (found["old"].kind, found["old"].url) == ("sse", "https://example.com/sse // no comment")
    assert (found["gemini"].url, found["windsurf"].kind) == ("https://example.com/g", "http")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}', ["a"]),
        ('{"context_servers": {"a": {"source": "custom", "command": "x"}}}', ["a"]),
        ('{"context_servers": {"a": {"command": {"path": "x", "args": ["y"], "env": null}}}}', ["a"]),
        ('{"mcp": {"servers": {"a": {"command": "x"}}}}', ["a"]),
        ('{"mcpServers": {}}', []),
    ],
)
def test_each_client_has_its_own_root(text: str, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    assert [item.name for item in servers_from_file(path)] == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", 'contains no "mcpServers": {…}'),
        ('{"mcpServers": {"a": 1}}', "a must be an object, not 1"),
        (
            '{"mcpServers": {"a": {"command": "x", "args": ["${command:key}"]}}}',
            "is not the name of an environment",
        ),
        ('{"mcpServers": {"a": {"type": "carrier-pigeon", "url": "x"}}}', "unknown type 'carrier-pigeon'"),
        ('{"mcpServers": {"a": {}}}', "set either command or url"),
        ('{"mcpServers": {"a": {"command": "x", "env": ["A=1"]}}}', "[mcp.servers.a] env must be a table, not"),
        ('{"mcpServers": {"a": {"url": "https://x", "headers": "A"}}}', "[mcp.servers.a] headers must be a table"),
        ('{"mcpServers": {"a": {"command": ["x", "y"], "args": 5}}}', "[mcp.servers.a] args must be an array, not 5"),
    ],
)
def test_a_file_that_makes_no_sense_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        servers_from_file(path, environ={})
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"prot": 1}, "[serve] unknown key 'prot'; did you mean 'port'?"),
        ({"port": 70000}, "[serve] port must be at most 65535, not 70000"),
        ({"token": "short"}, "[serve] a token must have at least 16 characters"),
        ({"tokens": {"a": "x" * 16, "b": "x" * 16}}, "[serve] two clients must not have the same token"),
        ({"max_calls": 0}, "[serve] max_calls must be more than 0, not 0"),
        ({"calls_per_minute": 0}, "[serve] calls_per_minute must be more than 0, not 0"),
        ({"seconds_per_minute": -1}, "[serve] seconds_per_minute must be more than 0, not -1"),
        (
            {"oauth": {"issuer": "http://example.com", "resource": "https://x"}},
            "[serve.oauth] issuer must begin with https://",
        ),
    ],
)
def test_serve_is_a_closed_contract(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(ServeSettings, data, "serve")
    assert message in str(caught.value)


def test_strangers_are_not_served_without_a_token() -> None:
    with pytest.raises(UsageError, match=r"^serving on 0\.0\.0\.0 requires a token: "):
        ServeSettings(host="0.0.0.0").check_address()
    ServeSettings(host="0.0.0.0", token="x" * 16).check_address()
    ServeSettings(host="::1").check_address()
    for origin in ("*", "app.example", "https://app.example/", "https://*.example", "null"):
        with pytest.raises(ConfigError, match="must be an origin such as"):
            ServeSettings(origins=(origin,))


def test_host_names_are_those_of_this_machine_unless_told() -> None:
    assert ServeSettings().host_names == {"127.0.0.1", "localhost", "[::1]"}
    assert ServeSettings(host="10.0.0.5", token="x" * 16, hosts=("box.example",)).host_names == {
        "10.0.0.5",
        "box.example",
    }
    assert ServeSettings(host="0.0.0.0", token="x" * 16).host_names == frozenset()
