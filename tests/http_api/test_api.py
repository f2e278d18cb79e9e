"""The HTTP API against a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from httpx import Client

    from moonbox.http.app import Service


def test_health_tells_version_and_tools(client: Client) -> None:
    body = client.get("/health").json()
    assert body["status"] == "ok"
    assert body["tools"] == 4


def test_tools_are_listed_with_their_parameters(client: Client) -> None:
    tools = {tool["name"]: tool for tool in client.get("/tools/list").json()["tools"]}
    assert list(tools) == ["add", "fail", "crash", "risky"]
    assert tools["add"]["builtin"] is True
    assert tools["fail"]["builtin"] is False
    assert tools["add"]["parameters"]["required"] == ["a"]


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code", "said"),
    [
        ("fail", {"code": "timeout"}, 504, "timeout", "it failed"),
        ("fail", {"code": "connection"}, 502, "connection", "it failed"),
        ("fail", {"code": "anything"}, 502, "anything", "it failed"),
        ("fail", {"code": "unavailable"}, 503, "unavailable", "it failed"),
        ("fail", {"code": "denied"}, 403, "denied", "it failed"),
        ("add", {"a": "x", "c": 1}, 400, "invalid", 'a: expected integer, got "x" (string)'),
        ("add", {"a": "x", "c": 1}, 400, "invalid", "c: unknown parameter"),
        ("ad", {}, 404, "unknown_tool", "add"),
        ("risky", {}, 403, "approval_unavailable", ""),
    ],
)
def test_failed_calls(
    client: Client, tool: str, arguments: dict[str, object], status: int, code: str, said: str
) -> None:
    answer = client.post(f"/tools/{tool}", json=arguments)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert said in answer.json()["error"]["message"]


def test_a_tool_is_called_also_with_an_empty_body(client: Client) -> None:
    answer = client.post("/tools/add", json={"a": 2, "b": 3})
    assert (answer.status_code, answer.json()["result"]) == (200, 5)
    answer = client.post("/tools/crash", headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], "/etc/secret" in error["message"]) == (502, "tool_error", False)


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b'{"a": NaN}', "application/json", 400, "invalid_json"),
        (b"[1]", "application/json", 400, "invalid"),
        (b"a=1", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b"", "text/plain", 415, "unsupported_media_type"),  # what any page in a browser can send
        (b"", "", 415, "unsupported_media_type"),
        (b"[" * 100_000, "application/json", 400, "invalid_json"),
    ],
)
def test_bad_bodies(client: Client, body: bytes, kind: str, status: int, code: str) -> None:
    answer = client.post("/tools/add", content=body, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_script_runs_and_can_be_read_back(client: Client) -> None:
    answer = client.post("/run", json={"source_code": "print('hi') return tools.add{a = 40, b = 2}, {1}"})
    body = answer.json()
    assert (body["result"], body["values"], body["output"]) == (42, [42, [1]], "hi\n")
    run = client.get(f"/runs/{body['run']}").json()
    assert run["calls"][0]["tool"] == "add"
    assert any(item["id"] == body["run"] for item in client.get("/runs", params={"limit": 500}).json()["runs"])


def test_clients_do_not_get_the_tracebacks_of_tools(client: Client, service: Service) -> None:
    answer = client.post("/run", json={"source_code": "tools.crash()"})
    run = answer.json()["error"]["run"]
    kept = service.readable.get(run).calls[0].error
    assert kept is not None
    assert "in crash" in (kept.detail or "")
    for path in (f"/runs/{run}", f"/runs/{run}/report", f"/runs/{run}/calls/1", f"/compare?a={run}&b={run}"):
        found = client.get(path)
        assert found.status_code == 200
        assert "in crash" not in found.text
    assert "in crash" not in answer.text


@pytest.mark.parametrize(
    ("source", "status", "code"),
    [
        ("return 1 +", 400, "syntax"),
        ("error('x')", 422, "runtime"),
        ("while true do end", 504, "limit_time"),
        ("for i = 1, 30 do tools.add(i) end", 422, "limit_calls"),
        ("tools.risky()", 403, "denied"),
    ],
)
def test_failed_scripts(client: Client, source: str, status: int, code: str) -> None:
    answer = client.post("/run", json={"source_code": source})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("body", [{}, {"source_code": 1}, {"source_code": "1", "more": 2}, {"source": "1"}])
def test_run_takes_a_script_and_nothing_else(client: Client, body: dict[str, object]) -> None:
    assert client.post("/run", json=body).status_code == 400


def test_filters_hold_for_every_way_of_paging(client: Client) -> None:
    client.post("/run", json={"source_code": "return 'fine'"})
    failed = [client.post("/run", json={"source_code": "error('x')"}).json()["error"]["run"] for _ in range(2)]
    client.post("/run", json={"source_code": "return 'fine'"})
    listed = client.get("/runs", params={"ok": "false", "kind": "runtime", "limit": 2}).json()["runs"]
    assert [run["id"] for run in listed] == failed[::-1]
    skipped = client.get("/runs", params={"ok": "false", "kind": "runtime", "limit": 1, "offset": 1}).json()["runs"]
    assert [run["id"] for run in skipped] == failed[:1]


@pytest.mark.parametrize("query", ["limit=-1", "limit=x", "limit=501", "offset=9999999999999"])
def test_wrong_pages(client: Client, query: str) -> None:
    assert client.get(f"/runs?{query}").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/runs/none", 404), ("GET", "/x", 404), ("PUT", "/run", 405)]
)
def test_wrong_addresses(client: Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["code"]


def test_half_a_surrogate_pair_is_answered_as_json_writes_it(client: Client) -> None:
    """JSON can name it, UTF-8 cannot: a client that sends it can read what it sent."""
    json_body = {"content-type": "application/json"}
    answer = client.post("/run", content=rb'{"source_code": "-- \ud800\nreturn 1"}', headers=json_body)
    assert answer.json()["result"] == 1
    assert client.get(f"/runs/{answer.json()['run']}").json()["source"] == "-- \ud800\nreturn 1"
    refused = client.post("/tools/add", content=rb'{"a": 1, "\ud800": 1}', headers=json_body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")
