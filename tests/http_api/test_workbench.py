"""Sessions, approvals, events and pages of runs over a real server, as any program may use them."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import httpx
import jsonschema_rs
import pytest
from starlette.routing import Route

from moonbox import Limits, Media, Sandbox, Tool, tool
from moonbox.audit.sinks import MemorySink
from moonbox.http import openapi
from moonbox.http.app import Service, create_app, routes
from moonbox.http.workbench import Workbench
from moonbox.mcp.upstreams.manager import Upstreams

from .conftest import add, risky, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@tool
def plan() -> Media:
    """A file."""
    return Media(b"a plan", "text/plain", "pläne.txt")


@pytest.fixture(scope="module")
def api() -> Iterator[httpx.Client]:
    bench, trail = Workbench(timeout=30), MemorySink()
    with Sandbox([add, risky, plan], limits=Limits(timeout=60), audit=bench.sink(trail), **bench.hooks) as box:

        def make(language: str) -> Sandbox:
            return Sandbox(box.toolbox, language=language, audit=bench.sink(trail), min_workers=0, **bench.hooks)

        bench.attach(box, trail=trail, make=make, languages=("lua", "python"), diagnose=lambda: {"ok": True})
        app = create_app(Service(box, trail=trail, workbench=bench))
        with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:
            try:
                yield client
            finally:
                bench.close()


def open_session(api: httpx.Client) -> str:
    answer = api.post("/sessions", json={"language": "lua"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@contextlib.contextmanager
def events(api: httpx.Client, session: str, after: int = 0) -> Iterator[Iterator[tuple[str, int, Any]]]:
    """Events as (name, number, data)."""
    with api.stream("GET", "/events", params={"session": session, "after": after}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        yield _parsed(stream.iter_lines())


def _parsed(lines: Iterator[str]) -> Iterator[tuple[str, int, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], int(fields.get("id", "0").rpartition(":")[2]), json.loads(fields["data"])
            fields = {}


def until(stream: Iterator[tuple[str, int, Any]], name: str) -> tuple[list[str], Any]:
    """Read on to an event of this name: the names that came, and its data."""
    names = []
    for event, _, data in stream:
        names.append(event)
        if event == name:
            return names, data
    raise AssertionError(f"the stream ended after {names}")


def test_a_run_is_told_as_it_happens(api: httpx.Client) -> None:
    id = open_session(api)
    started = api.post(f"/sessions/{id}/run", json={"source_code": "print('a') x = 1 return tools.add{a = 1, b = 2}"})
    assert (started.status_code, started.json()["state"]) == (202, "running")
    with events(api, id) as stream:
        names, done = until(stream, "done")
    assert [name for name in names if name != "run"] == ["started", "output", "call", "call", "done"]
    assert done["run"]["values"] == [3]
    assert done["report"]["economy"]["calls"] == 1
    assert len(done["report"]["timeline"]["calls"]) == 1
    assert api.get(f"/sessions/{id}/globals").json() == {"globals": {"x": "number"}}
    with events(api, id, after=4) as stream:
        assert next(stream)[0] == "done"


def test_a_script_says_how_far_it_is(api: httpx.Client) -> None:
    id = open_session(api)
    for step in (False, True):
        body = {"source_code": "for i = 1, 5000 do progress(i, 5000, 'rows') end", "step": step}
        assert api.post(f"/sessions/{id}/run", json=body).status_code == 202
        with events(api, id) as stream:
            _, last = until((each for each in stream if each[0] == "done" or each[2].get("done") == 5000), "progress")
            names, _ = until(stream, "done")
        assert last == {"done": 5000, "total": 5000, "text": "rows"}
        assert len(names) < 1000, "they do not displace other events"


def test_limits_and_their_mistakes(api: httpx.Client) -> None:
    id = open_session(api)
    for wrong in ({"timeout": -1}, {"nonsense": 1}, {"preset": "none"}, {"max_tool_calls": "many"}):
        answer = api.post(f"/sessions/{id}/run", json={"source_code": "return 1", "limits": wrong})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid"), wrong
    api.post(f"/sessions/{id}/run", json={"source_code": "while true do end", "limits": {"timeout": 0.2}})
    with events(api, id) as stream:
        _, done = until(stream, "done")
    assert (done["run"]["error"]["kind"], done["run"]["error"]["limit"]) == ("limit", "time")


def test_a_busy_session_refuses_and_can_be_stopped(api: httpx.Client) -> None:
    id = open_session(api)
    api.post(f"/sessions/{id}/run", json={"source_code": "while true do end"})
    again = api.post(f"/sessions/{id}/run", json={"source_code": "return 1"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
    assert api.post(f"/sessions/{id}/resume", json={}).status_code == 409
    assert api.post(f"/sessions/{id}/stop", json={}).json()["state"] == "idle"
    with events(api, id) as stream:
        _, done = until(stream, "done")
    assert done["run"]["error"]["kind"] == "cancelled"


def test_steps_are_answered_one_by_one(api: httpx.Client) -> None:
    id = open_session(api)
    script = "local a = tools.add{a = 1} local ok, e = pcall(tools.add, {a = 2}) return {a, ok, e.code}"
    api.post(f"/sessions/{id}/run", json={"source_code": script, "step": True})
    with events(api, id) as stream:
        _, pause = until(stream, "pause")
        [call] = pause["calls"]
        assert (call["tool"], call["arguments"]) == ("add", {"a": 1, "b": 1})
        wrong = api.post(f"/sessions/{id}/resume", json={"answers": [{"id": 99, "kind": "run"}]})
        assert wrong.status_code == 400
        api.post(f"/sessions/{id}/resume", json={"answers": [{"id": call["id"], "kind": "value", "value": 40}]})
        _, pause = until(stream, "pause")
        answer = {"id": pause["calls"][0]["id"], "kind": "error", "message": "no", "code": "mine"}
        api.post(f"/sessions/{id}/resume", json={"answers": [answer]})
        _, done = until(stream, "done")
    assert done["run"]["values"] == [[40, False, "mine"]]


def test_a_paused_run_is_stopped(api: httpx.Client) -> None:
    id = open_session(api)
    api.post(f"/sessions/{id}/run", json={"source_code": "return tools.add{a = 1}", "step": True})
    with events(api, id) as stream:
        until(stream, "pause")
        assert api.post(f"/sessions/{id}/stop", json={}).json()["state"] == "idle"
        _, done = until(stream, "done")
    assert done["run"]["error"]["kind"] == "cancelled"


def test_an_approval_is_asked_and_answered(api: httpx.Client) -> None:
    id = open_session(api)
    with events(api, id) as stream:
        api.post(f"/sessions/{id}/run", json={"source_code": "return tools.risky{}"})
        _, question = until(stream, "approval")
        assert (question["tool"], question["session"]) == ("risky", id)
        assert [each["id"] for each in api.get("/approvals").json()["pending"]] == [question["id"]]
        for wrong in ({}, {"decision": "maybe"}, {"decision": "edit"}, {"decision": "allow", "reason": 1}):
            assert api.post(f"/approvals/{question['id']}", json=wrong).status_code == 400
        assert api.post(f"/approvals/{question['id']}", json={"decision": "allow"}).status_code == 200
        _, done = until(stream, "done")
    assert done["run"]["values"] == ["done"]
    late = api.post(f"/approvals/{question['id']}", json={"decision": "deny"})
    assert (late.status_code, late.json()["error"]["code"]) == (404, "unknown_approval")


def test_the_check_is_asked_without_a_run(api: httpx.Client) -> None:
    answer = api.post("/check", json={"source_code": "local a = 1\nreturn tools.ad{a = a}"}).json()
    [finding] = answer["findings"]
    assert (finding["severity"], finding["line"]) == ("error", 2)
    assert api.post("/check", json={"source_code": 1}).status_code == 400


@pytest.mark.parametrize(
    ("source", "line", "message", "hint"),
    [
        ("#python\nx = = 1", 2, "Expected an expression", None),
        ("#python\nif y", 2, "Expected `:`, found newline", None),
        ("#python\nadd(a=1, b=2).x", 2, "object of type 'int' has no attribute 'x'", None),
        ("x = = 1", 1, "unexpected symbol near '='", None),
        (
            "for i = 1, 3 do\n  print(i)",
            2,
            "'end' expected (to close 'for' at line 1) near <eof>",
            "the for of line 1 is never closed: add end",
        ),
        ("if y", 1, "'then' expected near <eof>", "then is missing; write: if y then"),
        ("1 +", 1, "unexpected symbol near <eof>", None),
        ("const x = 1", 1, "syntax error near 'x'", "variables are declared with local; write: local x = 1"),
    ],
)
def test_the_check_says_why_a_script_does_not_compile(
    api: httpx.Client, source: str, line: int, message: str, hint: str | None
) -> None:
    before = len(api.get("/runs").json()["runs"])
    language = "python" if source.startswith("#python") else "lua"
    [finding] = api.post("/check", json={"source_code": source, "language": language}).json()["findings"]
    assert (finding["severity"], finding["line"], finding["message"]) == ("error", line, message)
    assert finding["hint"] == hint
    assert len(api.get("/runs").json()["runs"]) == before, "it is not recorded"


def test_the_check_runs_nothing(api: httpx.Client) -> None:
    lua = ("1 + 1", "return 1", "while true do end", "tools.risky()", "")
    python = ("1 + 1", "while True: pass", "risky()", "for x in [1]:\n    tools.risky()", "")
    for source, language in (*((each, "lua") for each in lua), *((each, "python") for each in python)):
        answer = api.post("/check", json={"source_code": source, "language": language}).json()
        assert [item for item in answer["findings"] if item["severity"] == "error"] == [], source
    assert api.get("/approvals").json()["pending"] == []


def test_sessions_end(api: httpx.Client) -> None:
    id = open_session(api)
    assert api.delete(f"/sessions/{id}").status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/run"), ("POST", "/stop"), ("GET", "/globals")):
        answer = api.request(method, f"/sessions/{id}{path}", json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_session")
    assert api.post("/sessions", json={"language": "cobol"}).status_code == 400
    assert api.post("/sessions").status_code == 415  # a form of another page cannot send this


def test_runs_are_paged_filtered_and_compared(api: httpx.Client) -> None:
    for number in range(5):
        api.post("/run", json={"source_code": f"return {number} -- marked"})
    page = api.get("/runs", params={"limit": 3, "q": "MARKED"}).json()
    rest = api.get("/runs", params={"limit": 3, "q": "MARKED", "before": page["next"]}).json()
    titles = [run["title"] for run in page["runs"] + rest["runs"]]
    assert titles == [f"return {number} -- marked" for number in (4, 3, 2, 1, 0)]
    assert rest["next"] is None
    assert api.get("/runs", params={"ok": "false", "q": "marked"}).json()["runs"] == []
    assert api.get("/runs", params={"ok": "perhaps"}).status_code == 400
    assert api.get("/runs", params={"before": "unknown"}).status_code == 404
    ids = [run["id"] for run in page["runs"]]
    assert api.get("/compare", params={"a": ids[0], "b": ids[1]}).json()["calls"] == []
    assert api.get("/compare", params={"a": ids[0]}).status_code == 400
    assert api.get("/compare", params={"a": ids[0], "b": "unknown"}).status_code == 404
    assert api.get(f"/runs/{ids[0]}/report").json()["model"]["text"] == "4"
    assert api.get(f"/runs/{ids[0]}/calls/1").json()["error"]["code"] == "unknown_call"


def test_media_are_fetched_by_their_address(api: httpx.Client) -> None:
    value = api.post("/run", json={"source_code": "show(tools.plan{}) return tools.plan{}"}).json()["values"][0]
    answer = api.get(f"/media/{value['media'].rpartition('/')[2]}")
    assert (answer.content, answer.headers["content-type"]) == (b"a plan", "application/octet-stream")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''pl%C3%A4ne.txt"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    session = open_session(api)
    with events(api, session) as stream:
        api.post(f"/sessions/{session}/run", json={"source_code": "kept = tools.plan{}"})
        done = next(data for name, _, data in stream if name == "done")
    assert done["run"]["media"] == [], "neither returned nor shown"
    call = api.get(f"/runs/{done['run']['id']}/calls/1").json()
    address = f"/media/{call['result']['media'].rpartition('/')[2]}"
    assert api.get(address).content == b"a plan"
    api.delete(f"/sessions/{session}")
    assert api.get(address).json()["error"]["code"] == "unknown_medium"


def test_tools_are_searched_and_what_is_missing_is_said(api: httpx.Client) -> None:
    assert api.get("/tools/search", params={"q": "add numbers"}).json()["tools"][0]["name"] == "add"
    assert api.get("/tools/search").status_code == 400
    assert api.get("/knowledge/search", params={"q": "x"}).status_code == 404
    assert api.get("/doctor").json() == {"ok": True}


@pytest.mark.parametrize(("with_workbench", "with_servers"), [(False, False), (True, False), (True, True)])
def test_the_openapi_document_has_every_route(with_workbench: bool, with_servers: bool) -> None:
    with Sandbox([add], min_workers=0) as box, Upstreams([]) as servers:
        bench = Workbench() if with_workbench else None
        service = Service(box, workbench=bench, servers=servers if with_servers else None)
        served = {
            (route.path.replace(":int", ""), method)
            for route in routes(service)
            if isinstance(route, Route)
            for method in route.methods or ()
            if method != "HEAD" and route.path != "/tools/{name:path}"
        }
        document = openapi.document(service.tools(), workbench=with_workbench, servers=with_servers)
    described = {(path, method.upper()) for path, item in document["paths"].items() for method in item}
    assert described == served | {("/tools/add", "POST")}
    operations = [item["operationId"] for path in document["paths"].values() for item in path.values()]
    assert len(set(operations)) == len(operations)


@pytest.mark.parametrize("name", ["a b", "a{b}", "x:int", "a/b", "ü"])
def test_the_openapi_document_has_tools_of_any_name(name: str) -> None:
    """Servers name their tools as they like; no name may break the document, or be read as part of a path."""
    described = Tool.from_schema(name=name, description="", parameters={"type": "object"}, call=lambda _: "found")
    with Sandbox([described], min_workers=0) as box:
        service = Service(box)
        paths = openapi.document(service.tools())["paths"]
        ((path, item),) = ((path, item) for path, item in paths.items() if item.get("post", {}).get("summary") == name)
        assert [each["name"] for each in item["post"]["parameters"]] == ["background"]  # none of the path
        with serving(create_app(service)) as url:
            assert httpx.post(url + path, json={}).json()["result"] == "found"


def test_answers_are_as_the_openapi_document_says(api: httpx.Client) -> None:
    document = api.get("/openapi.json").json()
    session, run = open_session(api), api.post("/run", json={"source_code": "return tools.add{a = 1}"}).json()["run"]
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("get", "/health", {}),
        ("get", "/tools/search", {"params": {"q": "add"}}),
        ("get", "/runs", {"params": {"ok": "true", "limit": 5}}),
        ("get", f"/runs/{run}/report", {}),
        ("get", f"/runs/{run}/calls/1", {}),
        ("get", "/compare", {"params": {"a": run, "b": run}}),
        ("get", f"/sessions/{session}", {}),
        ("get", f"/sessions/{session}/globals", {}),
        ("post", f"/sessions/{session}/stop", {"json": {}}),
        ("post", "/check", {"json": {"source_code": "return 1"}}),
        ("get", "/approvals", {}),
        ("post", "/approvals/nope", {"json": {"decision": "deny"}}),
        ("get", "/knowledge/search", {"params": {"q": "x"}}),
        ("get", "/doctor", {}),
        ("delete", f"/sessions/{session}", {}),
    ]
    for method, path, options in asked:
        answer = api.request(method, path, **options)
        pattern = path.replace(run, "{id}").replace(session, "{id}").replace("/calls/1", "/calls/{index}")
        described = document["paths"][pattern.replace("/nope", "/{id}")][method]["responses"][str(answer.status_code)]
        if "content" not in described:
            continue
        schema = described["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"]["Error"]
        jsonschema_rs.validate(schema, answer.json())
