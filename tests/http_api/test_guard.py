"""The guard: token, Host, Origin and size, against a real server."""

from __future__ import annotations

import httpx
import pytest

GOOD = {"authorization": "Bearer s3cret"}


def test_health_is_open_and_everything_else_needs_the_token(guarded: str) -> None:
    assert httpx.get(f"{guarded}/health").status_code == 200
    answer = httpx.get(f"{guarded}/tools/list")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert httpx.get(f"{guarded}/tools/list", headers=GOOD).status_code == 200


def preflight(url: str, origin: str, headers: str = "authorization, content-type", **more: str) -> httpx.Response:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": headers}
    return httpx.options(url, headers={"origin": origin, **asked, **more})


def test_pages_of_configured_origins_may_ask_before_they_send(guarded: str) -> None:
    good = preflight(f"{guarded}/run", "https://good.example")
    assert (good.status_code, good.headers["access-control-allow-origin"]) == (200, "https://good.example")
    assert "access-control-allow-credentials" not in good.headers, "no page uses the cookie of the console"
    for refused in (
        preflight(f"{guarded}/run", "https://evil.example"),
        preflight(f"{guarded}/run", "http://localhost:5173"),
        preflight(f"{guarded}/run", "https://good.example", "x-moonbox-key"),
        preflight(f"{guarded}/run", "https://good.example", host="evil.example"),
    ):
        assert refused.status_code in (400, 403, 421)
    unread = httpx.get(f"{guarded}/tools/list", headers={**GOOD, "origin": "http://localhost:5173"})
    assert "access-control-allow-origin" not in unread.headers
    refused = httpx.get(f"{guarded}/tools/list", headers={"origin": "https://good.example"})
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (401, True)
    read = httpx.get(f"{guarded}/tools/list", headers={**GOOD, "origin": "https://good.example"})
    assert (read.status_code, read.headers["access-control-allow-origin"]) == (200, "https://good.example")


def test_without_configured_origins_no_page_may_ask(address: str) -> None:
    answer = preflight(f"{address}/tools/list", "http://localhost:5173")
    assert answer.status_code == 405 and "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/tools/list", "/health"])
def test_a_get_of_another_origin_is_refused_and_one_of_this_machine_is_not_readable(address: str, path: str) -> None:
    foreign = httpx.get(address + path, headers={"origin": "https://evil.example"})
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "wrong_origin")
    here = httpx.get(address + path, headers={"origin": "http://localhost:5173"})
    assert here.status_code == 200 and "access-control-allow-origin" not in here.headers


def test_large_bodies_are_refused_also_without_a_length(guarded: str) -> None:
    assert httpx.post(f"{guarded}/run", content=b"x" * 3000, headers=GOOD).status_code == 413

    def endless() -> object:
        for _ in range(5):
            yield b"x" * 1000

    headers = {**GOOD, "content-type": "application/json"}
    assert httpx.post(f"{guarded}/run", content=endless(), headers=headers).status_code == 413  # type: ignore[arg-type]
