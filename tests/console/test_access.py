"""Who may see the pages and use the API: one-time keys, tokens, cookies, the page's key, origins and headers."""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from moonbox import tool
from moonbox.http.browser import BrowserAccess, SignInKey, key_of_project

from .serving import TOOLS, running_console

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox.net.guard import Scope

    from .serving import Console

TOKEN = "a-token-of-some-length"
VIEWS = ("playground", "runs", "approvals", "durable", "tools", "tools/refund", "mcp", "knowledge")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Console]:
    with running_console(TOOLS, token=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def public() -> Iterator[Console]:
    """`moonbox serve --console` without a token."""
    with running_console([*TOOLS, launch], public=True) as running:
        yield running


@tool
def launch() -> str:
    """Needs no arguments."""
    return "launched"


def client(console: Console, **options: Any) -> httpx.Client:
    return httpx.Client(base_url=console.url, timeout=60, **options)


@contextlib.contextmanager
def signed_in(console: Console) -> Iterator[httpx.Client]:
    with client(console) as browser:
        assert browser.get(console.sign_in_address()).status_code == 303
        yield browser


def test_the_page_of_a_run_shows_its_state_and_the_tracebacks_of_tools(public: Console) -> None:
    from moonbox.audit.records import Call, CallError, Run

    failed = Call(1, "pay", {}, "error", error=CallError("tool_error", "no", detail='File "bank.py" <b>, in pay'))
    public.trail.write(Run("traced", "return 1", calls=(failed, Call(2, "slow", {}, "in_flight"))))
    public.trail.write(Run("going", "return 2", calls=(Call(1, "slow", {}, "in_flight"),), running=True))
    with client(public) as anybody:
        page = anybody.get("/console/runs/traced").text
        assert "File &#34;bank.py&#34; &lt;b&gt;, in pay" in page
        assert "bank.py" not in anybody.get("/runs/traced/calls/1").text
        page = anybody.get("/console/runs/going").text
        assert '<span class="state warn">running</span>' in page
        assert "What the model saw" not in page
        assert [run["id"] for run in anybody.get("/runs?state=running").json()["runs"]] == ["going"]
    with running_console(TOOLS, token=TOKEN, trail=public.trail) as guarded, client(guarded) as stranger:
        assert "bank.py" not in stranger.get("/console/runs/traced").text


def page_key(browser: httpx.Client) -> str:
    match = re.search(r'name="moonbox-key" content="(\w+)"', browser.get("/console/runs").text)
    assert match
    return match[1]


def test_the_printed_address_works_once(console: Console) -> None:
    address = console.sign_in_address()
    with client(console) as first, client(console) as second:
        answer = first.get(address)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower()
        assert first.get("/console/runs").status_code == 200
        refused = second.get(address)
        assert refused.status_code == 403
        assert "used before" in refused.text
        assert second.get("/console/runs").status_code == 401
        assert first.get(address).headers["location"] == "/console/"


@pytest.mark.parametrize(
    "path", ["/runs", "/tools/list", "/events", "/approvals", "/doctor", "/servers", "/openapi.json"]
)
def test_nothing_is_told_without_a_sign_in(console: Console, path: str) -> None:
    with client(console) as stranger:
        assert stranger.get(path).status_code == 401
        for disguised in (f"/console/..{path}", f"/console/%2e%2e{path}", f"/{path}", f"/console{path}/../..{path}"):
            assert stranger.get(console.url + disguised).status_code in (401, 404), disguised


@pytest.mark.parametrize("view", [*VIEWS, "", "nowhere", "runs/abc", "compare?a=1&b=2"])
def test_pages_ask_for_a_sign_in(console: Console, view: str) -> None:
    with client(console) as stranger:
        answer = stranger.get(f"/console/{view}")
        assert answer.status_code == 401
        assert "refund" not in answer.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/sessions"),
        ("POST", "/run"),
        ("POST", "/tools/list_orders"),
        ("POST", "/approvals/x"),
        ("POST", "/check"),
        ("DELETE", "/sessions/x"),
        ("POST", "/servers/x/retry"),
        ("POST", "/servers/x/login"),
    ],
)
def test_changes_need_the_key_of_the_page(console: Console, method: str, path: str) -> None:
    with signed_in(console) as browser:
        for key in ({}, {"x-moonbox-key": "0" * 64}, {"x-moonbox-key": ""}):
            assert browser.request(method, path, json={}, headers=key).status_code == 401
        right = {"x-moonbox-key": page_key(browser)}
        assert browser.request(method, path, json={}, headers=right).status_code != 401


def test_the_key_of_one_browser_is_not_that_of_another(console: Console) -> None:
    with signed_in(console) as first, signed_in(console) as second:
        key = page_key(second)
        assert first.post("/sessions", json={}, headers={"x-moonbox-key": key}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.invalid"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
        {"host": "evil.invalid"},
    ],
    ids=str,
)
def test_pages_of_other_sites_reach_nothing(console: Console, headers: dict[str, str]) -> None:
    with signed_in(console) as browser:
        key = {"x-moonbox-key": page_key(browser)}
        assert browser.get("/runs", headers=headers).status_code in (401, 403, 421)
        assert browser.post("/sessions", json={}, headers={**headers, **key}).status_code in (401, 403, 421)


@pytest.mark.parametrize(
    "sent",
    [
        {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
        {"origin": "http://localhost:8000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"origin": "http://127.0.0.1:1"},  # a browser that sends no Sec-Fetch headers
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
    ],
    ids=str,
)
@pytest.mark.parametrize("body", [{"content": b""}, {"json": {}}], ids=["empty", "json"])
def test_a_page_of_another_port_calls_no_tool_of_a_console_without_a_token(
    public: Console, sent: dict[str, str], body: dict[str, Any]
) -> None:
    with client(public) as browser:
        assert browser.post("/tools/launch", headers=sent, **body).json()["error"]["code"] == "wrong_origin"
        assert browser.get("/runs", headers=sent).status_code == 403
        assert "launch" not in browser.get("/runs").text


def test_its_own_pages_and_programs_use_a_console_without_a_token(public: Console) -> None:
    own = {"origin": public.url, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    with client(public) as browser:
        for headers in (own, {}):
            assert browser.post("/check", json={"source_code": "return 1"}, headers=headers).status_code == 200
        assert browser.get("/console/runs").status_code == 200


def test_a_link_from_elsewhere_opens_the_page(console: Console) -> None:
    with signed_in(console) as browser:
        visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert browser.get("/console/runs", headers=visit).status_code == 200


def test_signing_in_with_the_servers_token(guarded: Console) -> None:
    origin = {"origin": guarded.url}
    with client(guarded) as browser:
        wrong = browser.post("/console/sign-in", data={"token": "wrong"}, headers=origin)
        assert (wrong.status_code, "not the server" in wrong.text) == (403, True)
        elsewhere = browser.post("/console/sign-in", data={"token": TOKEN}, headers={"origin": "http://evil.invalid"})
        assert elsewhere.status_code == 403
        for target in ("https://evil.invalid/", "//evil.invalid/console/", "/console/\\evil.invalid", "/runs"):
            answer = browser.post("/console/sign-in", data={"token": TOKEN, "next": target}, headers=origin)
            assert answer.headers["location"] == "/console/" or answer.headers["location"].startswith("/console/")
        answer = browser.post("/console/sign-in", data={"token": TOKEN, "next": "/console/tools?q=a"}, headers=origin)
        assert answer.headers["location"] == "/console/tools?q=a"
        assert browser.get("/console/tools").status_code == 200
        assert browser.get("/runs").status_code == 200


def test_a_new_address_is_printed_and_never_sent_to_the_one_who_asks() -> None:
    with running_console(TOOLS) as console, client(console) as stranger:
        assert "Print a new address" not in stranger.get("/console/runs").text
        printed: list[str] = []
        console.browser.on_renewal = printed.append
        first, origin = console.browser.one_time_key(), {"origin": console.url}
        assert "Print a new address" in stranger.get("/console/runs").text
        for wrong in ({}, {"origin": "http://evil.invalid"}):
            assert stranger.post("/console/renew", headers=wrong).status_code == 403
        assert printed == []
        answer = stranger.post("/console/renew", headers=origin)
        assert len(printed) == 1
        assert printed[0] not in answer.text + str(answer.headers)
        assert "A new address was printed" in answer.text
        assert "a moment ago" in stranger.post("/console/renew", headers=origin).text
        assert len(printed) == 1, "nobody can fill the terminal"
        assert stranger.get(f"/console/open?key={first}").status_code == 403, "the address before it is worth nothing"
        assert stranger.get(f"/console/open?key={printed[0]}").status_code == 303


def test_signing_out_ends_the_session(console: Console) -> None:
    with signed_in(console) as browser, client(console, cookies=dict(browser.cookies)) as same:
        assert "Sign out" in browser.get("/console/runs").text
        browser.post("/console/sign-out", headers={"origin": "http://evil.invalid"})
        assert same.get("/runs").status_code == 200
        answer = browser.post("/console/sign-out", headers={"origin": console.url})
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/")
        assert same.get("/runs").status_code == 401
        assert browser.get("/console/runs").status_code == 401


def test_a_sign_in_survives_a_restart_and_ends_with_a_sign_out(tmp_path: Path) -> None:
    path = tmp_path / "state" / "sign-in.key"
    with running_console([], key=SignInKey(path)) as first, signed_in(first) as browser:
        cookies, port = dict(browser.cookies), int(first.url.rpartition(":")[2])
        key = page_key(browser)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    with running_console([], key=SignInKey(path), port=port) as again, client(again, cookies=cookies) as browser:
        assert browser.get("/runs").status_code == 200
        assert browser.post("/sessions", json={}, headers={"X-Moonbox-Key": key}).status_code == 201
        with client(again) as stranger:
            stranger.post("/console/sign-out", headers={"origin": again.url})
        assert browser.get("/runs").status_code == 200, "strangers sign nobody out"
        assert browser.post("/console/sign-out", headers={"origin": again.url}).status_code == 303
    with running_console([], key=SignInKey(path), port=port) as third, client(third, cookies=cookies) as copy:
        assert copy.get("/runs").status_code == 401, "a copy of the cookie is worth nothing after a restart, too"


def test_a_cookie_that_was_not_signed_here_is_refused(tmp_path: Path) -> None:
    key, now = SignInKey(tmp_path / "key"), int(time.time())
    with running_console([], key=key, token=TOKEN) as console, signed_in(console) as browser:
        [(name, cookie)] = browser.cookies.items()
        expires, nonce, signature = cookie.split(".")
        assert now <= int(expires) - 7 * 24 * 3600 <= now + 60
        stranger = BrowserAccess(TOKEN, key=SignInKey())
        elsewhere = BrowserAccess("another token of the server", key=key)
        old = BrowserAccess(TOKEN, key=key)
        forged = {
            "later": f"{int(expires) + 9}.{nonce}.{signature}",
            "another nonce": f"{expires}.{nonce[::-1]}.{signature}",
            "the key of the page": f"{expires}.{nonce}.{old.page_key(scope_with(name, f'{expires}.{nonce}'))}",
            "no signature": f"{expires}.{nonce}.",
            "other digits": f"{expires.translate(ARABIC)}.{nonce}.{signature}",
            "another token": elsewhere.redeem(elsewhere.one_time_key()) or "",
            "another key": stranger.redeem(stranger.one_time_key()) or "",
        }
        for what, text in forged.items():
            assert not old.knows(scope_with(name, text)), what
        assert old.knows(scope_with(name, cookie))


def test_a_key_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    path, secret = tmp_path / "key", b"x" * 32
    for mode, damaged in ((0o644, secret), (0o600, b"short"), (0o600, secret + b"y")):
        path.write_bytes(damaged)
        path.chmod(mode)
        fresh = SignInKey(path).read()
        assert fresh not in damaged
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (fresh, 0o600)
        assert SignInKey(path).read() == fresh
    aim = tmp_path / "aim"
    aim.write_bytes(secret)
    aim.chmod(0o600)
    path.unlink()
    path.symlink_to(aim)
    assert SignInKey(path).read() != secret
    assert (aim.read_bytes(), path.is_symlink()) == (secret, False)


def test_without_a_place_for_the_key_it_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    key = SignInKey(tmp_path / "file" / "key")
    assert key.read() == key.read()
    before = key.read()
    assert key.rotate() == key.read() != before


def test_each_project_and_kind_of_server_has_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path))
    named = [("console", tmp_path / "a"), ("console", tmp_path / "b"), ("serve", tmp_path / "a")]
    assert len({key_of_project(*each).read() for each in named}) == 3
    assert key_of_project(*named[0]).read() == key_of_project(*named[0]).read()
    assert len(list((tmp_path / "sign-in").iterdir())) == 3


ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def scope_with(name: str, cookie: str) -> Scope:
    """What a server gets of a request with this cookie."""
    headers = [(b"cookie", f"{name}={cookie}".encode())]
    return {"type": "http", "method": "GET", "headers": headers, "server": ("127.0.0.1", int(name.rpartition("_")[2]))}


def test_guessing_the_token_is_slowed_down(guarded: Console) -> None:
    with running_console(TOOLS, token=TOKEN) as fresh, client(fresh) as browser:
        origin = {"origin": fresh.url}
        for _ in range(20):
            assert browser.post("/console/sign-in", data={"token": "guess"}, headers=origin).status_code == 403
        assert browser.post("/console/sign-in", data={"token": TOKEN}, headers=origin).status_code == 403
        with client(fresh, transport=httpx.HTTPTransport(local_address="127.0.0.2")) as other:
            assert other.post("/console/sign-in", data={"token": TOKEN}, headers=origin).status_code == 303


def test_other_clients_use_the_same_api_with_the_token(guarded: Console) -> None:
    with client(guarded, headers={"authorization": f"Bearer {TOKEN}"}) as program:
        session = program.post("/sessions", json={"language": "lua"})
        assert session.status_code == 201
        assert program.get(f"/sessions/{session.json()['id']}").json()["state"] == "idle"
        assert program.delete(f"/sessions/{session.json()['id']}").status_code == 204
        assert program.get("/console/runs").status_code == 401


def test_every_page_has_a_strict_policy(console: Console) -> None:
    with signed_in(console) as browser:
        for view in (*VIEWS, "nowhere"):
            answer = browser.get(f"/console/{view}")
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "require-trusted-types-for 'script'" in policy
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["cache-control"] == "no-store"
            assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", answer.text), view
            assert not re.search(r'(src|href)="(https?:)?//', answer.text), view


def test_static_files_carry_their_version_and_nothing_else_is_served(console: Console) -> None:
    with client(console) as stranger:
        page = stranger.get("/console/runs").text
        address = re.search(r'href="([^"]+console\.css)"', page)
        assert address
        style = stranger.get(address[1])
        assert (style.status_code, "immutable" in style.headers["cache-control"]) == (200, True)
        for path in ("../app.py", "..%2fapp.py", "%2e%2e/app.py", "../templates/base.html"):
            assert stranger.get(address[1].replace("console.css", path)).status_code in (401, 404)
