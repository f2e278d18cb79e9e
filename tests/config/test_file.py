"""The configuration file: where it is found, how it is read, its variables, and files that are invalid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from moonbox.config import SECTIONS, Config, find
from moonbox.config.sections import ServeSettings
from moonbox.config.variables import Variables
from moonbox.errors import ConfigError


def test_the_nearest_upwards_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "moonbox.toml").write_text("")
    assert find(deep) == tmp_path / "moonbox.toml"
    (tmp_path / "a" / "moonbox.toml").write_text("")
    assert find(deep) == tmp_path / "a" / "moonbox.toml"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "is a folder, not a file"),
        (lambda path: path.write_bytes(b'[tools]\nfolders = ["\xff"]\n'), "is not UTF-8 (line 2); save it as UTF-8"),
        (lambda path: None, "does not exist; `moonbox init` creates one"),
    ],
    ids=["a folder is not passed over", "not UTF-8", "missing"],
)
def test_what_cannot_be_read(tmp_path: Path, make: Any, message: str) -> None:
    path = tmp_path / "moonbox.toml"
    make(path)
    assert find(tmp_path) == path or not path.exists()
    with pytest.raises(ConfigError, match=f"'{re.escape(str(path))}' {re.escape(message)}$"):
        Config.load(path)


def test_no_file_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moonbox.config.file.find", lambda: None)  # there may be one above the temporary folder
    config = Config.load()
    assert (config.path, config.folder, config.section("serve")) == (None, tmp_path, {})
    assert config.read(ServeSettings, "serve") == ServeSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serv]", "moonbox.toml: unknown section 'serv'; did you mean 'serve'?"),
        ("[zzz]", f"moonbox.toml: unknown section 'zzz'; known sections: {', '.join(SECTIONS)}"),
        ("[serve", "moonbox.toml is not valid TOML: "),
        (f"[serve]\nport = {'1' * 5000}", "moonbox.toml is not valid TOML: "),
        (f"[serve]\nport = {'[' * 100_000}", "moonbox.toml is not valid TOML: "),
        ("serve = 1", "moonbox.toml: [serve] must be a table, not 1"),
        ("[serve]\nprot = 1", "moonbox.toml: [serve] unknown key 'prot'; did you mean 'port'?"),
        (
            "[serve]\nport = '1'\nhost = 1",
            (
                "moonbox.toml: [serve] host must be a string, not 1\n"
                "moonbox.toml: [serve] port must be a whole number, not '1'"
            ),
        ),
    ],
)
def test_messages_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moonbox.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        Config.load().read(ServeSettings, "serve")
    assert str(caught.value).startswith(message)


def test_a_file_elsewhere_is_named_in_full(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text("[serve]\nprot = 1")
    with pytest.raises(ConfigError, match=f"^{re.escape(str(path))}: \\[serve\\] unknown key 'prot'"):
        Config.load(path).read(ServeSettings, "serve")


def test_changes_replace_keys_and_keep_the_rest() -> None:
    config = Config.parse("[serve]\nport = 1\nhost = 'localhost'\n[audit]\nenabled = true")
    changed = config.with_changes(serve={"port": 2}, codemode={"mode": "auto"})
    assert changed.data == {
        "serve": {"port": 2, "host": "localhost"},
        "audit": {"enabled": True},
        "codemode": {"mode": "auto"},
    }
    assert config.section("serve")["port"] == 1


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("a ${ONE} b ${TWO}", "a 1 b 2"),
        ("${ONE}${ONE}", "11"),
        ("${NONE:-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY}", ""),
        ("${NONE:-}", ""),
        ("$${ONE}", "${ONE}"),
        ("${NESTED}", "${ONE}"),
        ("$ONE", "$ONE"),
        (["${ONE}", {"key": "${TWO}"}, 3], ["1", {"key": "2"}, 3]),
    ],
)
def test_variables(text: Any, expanded: Any) -> None:
    environ = {"ONE": "1", "TWO": "2", "EMPTY": "", "NESTED": "${ONE}"}
    assert Variables(environ).expand(text) == expanded


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[serve]\nhosts = ["a", "${NONE}"]',
            (
                "moonbox.toml: [serve] hosts[1]: the environment variable NONE is not set; "
                "set it, or give a default: ${NONE:-default}"
            ),
        ),
        ('[serve]\nhost = "${a b}"', "moonbox.toml: [serve] host: '${a b}' is not the name of an environment variable"),
        ('[serve]\nhost = "${}"', "moonbox.toml: [serve] host: '${}' is not the name of an environment variable"),
    ],
)
def test_variables_that_are_missing_or_invalid(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.parse(text, Path("moonbox.toml"), environ={}).read(ServeSettings, "serve")
    assert str(caught.value) == message
