"""Logins at servers: `moonbox mcp login` with a browser and without, renewal, the end of a login, and `logout`."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.config.mcp import LoginSettings, ServerSettings
from moonbox.errors import ConfigError, UsageError
from moonbox.mcp.upstreams.browser import parse_return
from moonbox.mcp.upstreams.login import LoginStore, make_auth
from tests.mcp.mcp_driver import moonbox

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = Path(__file__).with_name("login_server.py")
BROWSER = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1]).read().decode())
"""


@contextmanager
def login_server(seconds: int) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, str(SERVER), str(seconds)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.fixture
def run(tmp_path: Path, env: dict[str, str]) -> Any:
    """Run `moonbox mcp …` in a folder with a browser in which somebody agrees at once."""
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    whole = {**os.environ, **env, "MOONBOX_KEYRING": "off", "BROWSER": f"{sys.executable} {script} %s"}

    def run(*args: str, fails: bool = False) -> str:
        command, arguments = moonbox("mcp", *args)
        done = subprocess.run(
            [command, *arguments], cwd=tmp_path, env=whole, capture_output=True, text=True, timeout=200, check=False
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def states(text: str) -> dict[str, Any]:
    [status] = json.loads(text[text.index("[") : text.rindex("]") + 1])
    return dict(status)


def test_log_in_use_it_and_log_out(run: Any, home: Path) -> None:
    with login_server(3600) as url:
        run("add", "acme", "--url", url)
        assert "it requires a login; run `moonbox mcp login acme`" in run("doctor", fails=True)
        said = run("login", "acme")
        assert "logged in at 'acme', renewed by itself" in said
        [record] = (home / "mcp-logins").iterdir()
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        token = json.loads(record.read_text())["tokens"]["access_token"]
        listed = run("list", "--json")
        assert token not in said + listed
        status = states(listed)
        assert (status["state"], status["login"]["renews"]) == ("ready", True)
        assert json.loads(run("call", "acme.hello")) == "hello"
        assert "logged out of 'acme'" in run("logout", "acme")
        assert not list((home / "mcp-logins").iterdir())
        assert "there is no login at 'acme'" in run("logout", "acme")


def test_a_login_is_renewed_after_a_restart(run: Any, home: Path) -> None:
    with login_server(3600) as url:
        run("add", "acme", "--url", url)
        run("login", "acme")
        [record] = (home / "mcp-logins").iterdir()
        data = json.loads(record.read_text())
        record.write_text(json.dumps({**data, "expires_at": 1.0}))  # long ago
        assert states(run("list", "--json"))["state"] == "ready"
        assert json.loads(record.read_text())["tokens"]["access_token"] != data["tokens"]["access_token"]


def test_a_login_that_has_ended_says_the_command(run: Any, home: Path) -> None:
    with login_server(-3600) as url:
        run("add", "acme", "--url", url)
        run("login", "acme")
        [record] = (home / "mcp-logins").iterdir()
        data = json.loads(record.read_text())
        data["tokens"]["access_token"] = "ended"
        record.write_text(json.dumps({**data, "expires_at": 1.0}))
        assert "it requires a login; run `moonbox mcp login acme`" in run("doctor", fails=True)


def test_a_server_without_logins(run: Any) -> None:
    run("add", "clock", "--", sys.executable, "-c", "pass")
    assert "only servers with a url have logins" in run("login", "clock", fails=True)


def test_another_address_under_the_same_name_gets_no_tokens(tmp_path: Path) -> None:
    store = LoginStore(tmp_path)
    mine = ServerSettings(name="acme", url="https://acme.example/mcp")
    store.write(mine, {"tokens": {"access_token": "secret"}})
    other = ServerSettings(name="acme", url="https://evil.example/mcp")
    assert (store.login(mine) is not None, store.login(other)) == (True, None)
    assert make_auth(other, store) is None


def test_a_configured_header_comes_first(tmp_path: Path) -> None:
    settings = ServerSettings(name="acme", url="https://acme.example/mcp", headers={"authorization": "Bearer x"})
    store = LoginStore(tmp_path)
    store.write(settings, {"tokens": {"access_token": "secret"}})
    assert make_auth(settings, store) is None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "http://127.0.0.1/callback?error=access_denied&error_description=No",
            "the login was refused: access_denied: No",
        ),
        ("http://127.0.0.1/callback", "the address contains no code"),
    ],
)
def test_what_a_browser_returns_with(address: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_return(address)
    assert parse_return("http://127.0.0.1/callback?code=c&state=s&iss=i").iss == "i"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grant": "client_credentials", "client_id": "me"}, "requires client_id, and either"),
        ({"grant": "client_credentials", "client_id": "me", "client_secret": "s"}, "requires issuer"),
        ({"client_secret": "s"}, "client_secret requires client_id"),
        ({"private_key": "k"}, "private_key requires grant"),
        ({"issuer": "http://login.example"}, "issuer must begin with https://"),
    ],
)
def test_invalid_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LoginSettings(**settings)
