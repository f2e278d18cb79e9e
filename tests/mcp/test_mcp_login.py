"""Logins at servers: `moonbox mcp login` with a browser and without, renewal, the end of a login, and `logout`."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import stat
import subprocess
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked
from mcp_types import ElicitResult

from moonbox.config.mcp import LoginSettings, ServerSettings
from moonbox.errors import ConfigError, UsageError
from moonbox.mcp.upstreams.browser import parse_return
from moonbox.mcp.upstreams.login import LoginStore, make_auth
from tests.mcp.mcp_driver import moonbox, stdio, text
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.mcp.mcp_driver import Driver

SERVER = Path(__file__).with_name("login_server.py")
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])
REFUSED = "it requires a login; run `moonbox mcp login acme`"
BROWSER = """
import html, re, sys, urllib.request
assert sys.argv[1].startswith("file:"), "every user of the machine can read a command line"
page = urllib.request.urlopen(sys.argv[1]).read().decode()
address = html.unescape(re.search(r'content="0; url=([^"]+)"', page)[1])
print(urllib.request.urlopen(address).read().decode())
"""


@contextmanager
def login_server(seconds: int) -> Iterator[str]:
    """The address of a server that requires a login, whose tokens are valid for so long."""
    with subprocess.Popen(program(SERVER, str(seconds)), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Starts a server that requires a login, and adds it to the configuration."""
    with ExitStack() as stack:

        def start(seconds: int = 3600) -> str:
            url = stack.enter_context(login_server(seconds))
            (tmp_path / "moonbox.toml").write_text(f'[mcp.servers.acme]\nurl = "{url}"\n')
            return url

        yield start


@pytest.fixture
def ended(home: Path) -> Callable[..., dict[str, Any]]:
    """Makes the login one that ended long ago; `renews` leaves what renews it. Returns what it was."""

    def end(*, renews: bool = False) -> dict[str, Any]:
        [record] = (home / "mcp-logins").iterdir()
        data: dict[str, Any] = json.loads(record.read_text())
        tokens = data["tokens"] if renews else {**data["tokens"], "access_token": "ended"}
        record.write_text(json.dumps({**data, "tokens": tokens, "expires_at": 1.0}))
        return data

    return end


@pytest.fixture
def run(tmp_path: Path, env: dict[str, str]) -> Any:
    """Run `moonbox mcp …` in a folder with a browser in which somebody agrees at once."""
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    whole = {**os.environ, **env, "MOONBOX_KEYRING": "off", "BROWSER": f"{shlex.join(program(script))} %s"}

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


def test_log_in_use_it_and_log_out(run: Any, home: Path, acme: Any) -> None:
    acme()
    assert REFUSED in run("doctor", fails=True)
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


def test_a_login_is_renewed_after_a_restart(run: Any, home: Path, acme: Any, ended: Any) -> None:
    acme()
    run("login", "acme")
    before = ended(renews=True)
    assert states(run("list", "--json"))["state"] == "ready"
    [record] = (home / "mcp-logins").iterdir()
    assert json.loads(record.read_text())["tokens"]["access_token"] != before["tokens"]["access_token"]


def test_a_login_that_has_ended_says_the_command(run: Any, acme: Any, ended: Any) -> None:
    acme(-3600)
    run("login", "acme")
    ended()
    assert REFUSED in run("doctor", fails=True)


@pytest.fixture
def agreeing() -> Any:
    """An elicitation callback behind which somebody opens the page and agrees, and what it was asked."""
    asked: list[Any] = []

    async def elicit(_: Any, params: Any) -> ElicitResult:
        asked.append(params)
        page = await asyncio.to_thread(urllib.request.urlopen, params.url)
        page.close()
        return ElicitResult(action="accept")

    return elicit, asked


@pytest.fixture
def served(driver: Driver, env: dict[str, str], tmp_path: Path) -> Any:
    def served(mode: str, elicit: Any = None) -> Any:
        server = stdio("--config", tmp_path / "moonbox.toml", env={**env, "MOONBOX_KEYRING": "off"})
        return driver.session(server, mode=mode, elicitation_callback=elicit)

    return served


@MODES
def test_a_client_is_asked_to_log_in_where_a_login_has_ended(
    mode: str, run: Any, home: Path, served: Any, agreeing: Any, acme: Any, ended: Any
) -> None:
    elicit, asked = agreeing
    url = acme(-3600)
    run("login", "acme")
    with served(mode, elicit) as session:  # from here on its tools are known
        wait_until(lambda: not session.lua("return tools.acme.hello()").is_error)
    assert asked == []
    ended()
    with served(mode, elicit) as session:
        assert session.value("return tools.acme.hello()") == "hello"
    [params] = asked
    assert (params.mode, params.message) == ("url", "Log in to use the MCP server 'acme'.")
    assert params.url.startswith(url.rsplit("/", 1)[0])
    [record] = (home / "mcp-logins").iterdir()
    assert json.loads(record.read_text())["tokens"]["access_token"] != "ended"


@MODES
def test_a_client_is_asked_to_log_in_where_nobody_has_yet(mode: str, served: Any, agreeing: Any, acme: Any) -> None:
    elicit, asked = agreeing
    acme()
    with served(mode, elicit) as session:
        wait_until(lambda: REFUSED in session.read("moonbox://servers"))
        available = "the MCP server 'acme' is available now; its tools are: acme.hello"
        assert session.value("return tools.acme.unavailable()") == available
        assert session.value("return tools.acme.hello()") == "hello"
    [params] = asked
    assert params.message == "Log in to use the MCP server 'acme'."


@MODES
@pytest.mark.parametrize("asked", [False, True], ids=["cannot be asked", "declines"])
def test_a_client_that_does_not_log_in_gets_the_command(
    mode: str, asked: bool, home: Path, served: Any, acme: Any
) -> None:
    async def decline(_: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    acme()
    with served(mode, decline if asked else None) as session:
        wait_until(lambda: REFUSED in session.read("moonbox://servers"))
        failed = session.lua("return tools.acme.unavailable()")
    assert failed.is_error
    assert f"the MCP server 'acme': {REFUSED}" in text(failed)
    assert "login_required" in text(failed)
    assert not [record for record in (home / "mcp-logins").glob("*") if "tokens" in json.loads(record.read_text())]


class Keys(KeyringBackend):
    """The keyring of a system, while the test lasts."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked("locked")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


def test_tokens_are_in_the_keyring_and_in_a_private_file_without_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MOONBOX_KEYRING", raising=False)
    before, keys = keyring.get_keyring(), Keys()
    keyring.set_keyring(keys)
    try:
        store, acme = LoginStore(), ServerSettings(name="acme", url="https://acme.example/mcp")
        assert store.place == "the system's keyring"
        store.write(acme, {"tokens": {"access_token": "secret", "refresh_token": "more"}, "expires_at": 5.0})
        login = LoginStore().login(acme)
        assert login is not None
        assert (login.expires_at, login.renews) == (5.0, True)
        assert len(keys.kept) == 1
        assert not (home / "mcp-logins").exists(), "nothing of it is in a file"
        assert store.remove(acme)
        assert keys.kept == {}
        keys.locked = True
        store.write(acme, {"tokens": {"access_token": "secret"}})
        [record] = (home / "mcp-logins").iterdir()
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
        assert LoginStore().login(acme) is not None
    finally:
        keyring.set_keyring(before)


def test_a_server_without_logins(run: Any, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text('[mcp.servers.clock]\ncommand = "clock"\n')
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


def test_an_address_without_a_code() -> None:
    with pytest.raises(UsageError, match="the address contains no code"):
        parse_return("http://127.0.0.1/callback")


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
