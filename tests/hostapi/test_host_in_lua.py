"""Host functions as Lua scripts call them, in a real worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from moonbox.sandbox.sandbox import Sandbox
from tests.loopback_servers import Answer, Request, Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from moonbox.audit.records import Run
    from moonbox.scripts.hostapi import HostApi

    Serve = Callable[..., Server]
    MakeApi = Callable[..., HostApi]

SECRET = "sk-live-4f9aB7c2D1e8"


def run(api: HostApi, source: str) -> Run:
    with Sandbox() as box:
        for name, function in (api.functions | api.absent).items():
            box.define(name, function, doc=function.doc)
        return api.redact_run(box.run(source))


def test_a_script_uses_them_all(
    serve: Serve, make_api: MakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "moonbox.script")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/in.csv").write_text("city,n\nOslo,3\nRome,4\n")
    server = serve({"/": lambda request: Answer.json({"got": request.body.decode(), "none": None})})
    api = make_api({"http": [server.grant], "read": ["data"], "write": ["out"], "env": ["MODE"]}, environ={"MODE": "x"})
    done = run(
        api,
        f"""
        local total = 0
        for _, row in ipairs(csv.parse(fs.read("data/in.csv"))) do total = total + tonumber(row.n) end
        local answer = http.post("{server.url}/", {{json = {{total = total, list = array{{}}}}, headers = {{}}}})
        fs.write("out/bytes.bin", "\\255\\0" .. answer.json.got)
        log.info("done", {{total = total}})
        local found = regex.match([[(\\d+)]], answer.body)
        return answer.status, answer.json.none == null, env.get("MODE"), found.groups[1],
          base64.encode(crypto.sha256("", {{encoding = "raw"}})), time.format(0), url.encode{{a = 1}}, #crypto.uuid()
        """,
    )
    assert done.error is None
    digest = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    assert done.values == (200, True, "x", "7", digest, "1970-01-01T00:00:00Z", "a=1", 36)
    assert (tmp_path / "out/bytes.bin").read_bytes().startswith(b'\xff\x00{"')
    assert caplog.messages == ['done {"total": 7}']
    assert [call.tool for call in done.calls[:4]] == ["fs.read", "csv.parse", "http.post", "fs.write"]


def test_a_refusal_can_be_caught_and_names_its_line(make_api: MakeApi) -> None:
    done = run(make_api(), 'local ok, e = pcall(http.get, "https://a.example/") return ok, e.code, e.tool, e.message')
    assert done.values == (
        False,
        "not_granted",
        "http.get",
        'http access to a.example is not granted; add http = ["a.example"] under [tools.script.weather]',
    )
    assert [call.status for call in done.calls] == ["denied"]


def test_a_script_finds_no_way_to_its_secret(serve: Serve, make_api: MakeApi, caplog: pytest.LogCaptureFixture) -> None:
    def echo(request: Request) -> Answer:
        return Answer.json({"headers": request.headers}, status=418)

    server = serve({"/": echo, "/away": lambda request: Answer.redirect(f"ftp://{request.headers['x-key']}/")})
    api = make_api({"http": [server.grant], "secrets": ["KEY"], "write": ["out"]}, environ={"KEY": SECRET})
    done = run(
        api,
        f"""
        local key = secret("KEY")
        local answer = http.get("{server.url}/", {{headers = {{["X-Key"] = key, Authorization = {{"Bearer ", key}}}}}})
        print(key, tostring(key), answer.body, json.encode(answer.json))
        for k, v in pairs(key) do print(k, v) end
        log.error(answer.body, answer.json)
        fs.write("out/stolen", answer.body)
        local _, away = pcall(http.get, "{server.url}/away", {{headers = {{["X-Key"] = key}}}})
        local _, read = pcall(env.get, "KEY")
        print(away.message, read.message)
        return key, answer, away.message, #answer.json.headers["x-key"]
        """,
    )
    assert done.error is None
    assert server.requests[0].headers["x-key"] == SECRET
    assert done.values[-1] == len("[secret KEY]")
    for record in (done.to_json(), done.for_model(), caplog.text):
        assert SECRET not in record
        assert "[secret KEY]" in record
