"""The commands `moonbox console` and `moonbox serve --console`, as processes of their own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from moonbox import Sandbox, tool
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXAMPLES = Path(__file__).parents[2] / "examples"
TOKEN = "a-token-of-some-length"


@contextlib.contextmanager
def started(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it prints."""
    environment = {**os.environ, "MOONBOX_HOME": str(folder), **(env or {})}
    with subprocess.Popen(
        program("-m", "moonbox", *arguments),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = None
            for line in process.stdout:
                address = re.search(r"http://[\w.:]+/console/\S*", line)
                if address:
                    break
            assert address, "no address was printed"
            yield process, address[0]
        finally:
            process.kill()


def test_the_console_opens_with_tools_and_a_script(tmp_path: Path) -> None:
    tools = [f"--tools={EXAMPLES / name}" for name in ("demo.py", "payments.py")]
    script = str(EXAMPLES / "console.lua")
    with started(tmp_path, "console", script, *tools, "--no-browser", "--port", "0") as (process, address):
        home = address.partition("/console/")[0]
        with httpx.Client(base_url=home, follow_redirects=True, timeout=30) as browser:
            assert browser.get("/console/runs").status_code == 401
            page = browser.get(address)
            assert page.status_code == 200
            assert "Who of the first six spent most on meals?" in page.text
            assert "pay_back" in browser.get("/console/tools").text
            assert "seccomp" in browser.get("/console/doctor?wait=1").text
            assert browser.get("/runs").json()["runs"] == []
            with browser.stream("GET", "/events") as events:
                lines = events.iter_lines()
                assert next(lines) == "retry: 2000"
                process.send_signal(signal.SIGINT)
                for _ in lines:
                    pass  # the stream ends with the server, not after a timeout
        assert process.wait(30) == 0


def test_the_command_line_of_the_browser_holds_no_key(tmp_path: Path) -> None:
    """Every user of the machine can read it, and the key signs in whoever comes first."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o700)
    env = {"BROWSER": f"{browser} %s", "DISPLAY": ":0", "TMPDIR": str(tmp_path)}
    with started(tmp_path, "console", "--port", "0", env=env) as (process, address):
        wait_until(seen.exists)
        key = address.partition("key=")[2]
        opened = seen.read_text().strip()
        assert key not in opened
        file = Path(unquote(urlsplit(opened).path))
        assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]
        [target] = re.findall(r'content="0; url=([^"]+)"', file.read_text())
        assert unescape(target) == address
        assert httpx.get(address).status_code == 303
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert not file.parent.exists()


def test_the_server_has_the_console_beside_its_api(tmp_path: Path) -> None:
    options = ("serve", "--console", "--port", "0", "--token", TOKEN, f"--tools={EXAMPLES / 'payments.py'}")
    with started(tmp_path, *options) as (process, address):
        home = address.partition("/console/")[0]
        with httpx.Client(base_url=home, follow_redirects=True, timeout=30) as browser:
            assert "The server's token" in browser.get("/console/tools").text.replace("&#39;", "'")
            form = {"token": TOKEN, "next": "/console/tools"}
            assert "pay_back" in browser.post("/console/sign-in", data=form, headers={"origin": home}).text
            assert browser.get("/approvals").json() == {"pending": [], "answered": []}
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert httpx.get(f"{home}/tools/list", headers=bearer).json()["tools"][0]["name"] == "pay_back"
        assert httpx.get(f"{home}/tools/list").status_code == 401
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def test_the_console_answers_the_questions_of_other_processes(tmp_path: Path) -> None:
    @tool(policy="approve")
    def delete(path: str) -> str:
        return f"deleted {path}"

    options = ("serve", "--console", "--port", "0", "--token", TOKEN, "--journal", "j.db")
    with started(tmp_path, *options) as (process, address), Sandbox([delete], journal=tmp_path / "j.db") as box:
        handle = box.repl().submit("return tools.delete{path = '<b>'}")
        bearer = {"authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=address.partition("/console/")[0], headers=bearer, timeout=30) as api:
            (question,) = wait_until(lambda: api.get("/approvals").json()["pending"])
            assert (question["run"], question["arguments"]) == (handle.run_id, {"path": "<b>"})
            answered = [api.post(f"/approvals/{question['id']}", json={"decision": "allow"}) for _ in range(2)]
            assert [answer.status_code for answer in answered] == [200, 404]
            assert "it was answered (allow by console)" in answered[1].text
            assert api.post("/approvals/ffff", json={"decision": "allow"}).status_code == 404
        assert handle.wait(30).calls[0].approval_by == "console"
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("console", "nothing.lua"), "the file 'nothing.lua' does not exist"),
        (("console", "--tools", "nothing_at_all"), "nothing_at_all"),
        (("console", "--port", "99999"), "65535"),
        (("serve", "--console"), "--console requires a server with one token or none"),
    ],
)
def test_mistakes_are_said_plainly(moonbox: Any, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "moonbox.toml").write_text(f'[serve.tokens]\nada = "{TOKEN}"\n', encoding="utf-8")
    done = moonbox(*arguments)
    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (2, True, False)
