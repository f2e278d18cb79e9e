"""Variables of the environment in moonbox.toml: one that is not set costs only what uses it, and none is shown."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, tool
from moonbox.audit.sinks import MemorySink
from moonbox.config import Config
from moonbox.config.variables import Variables
from moonbox.errors import ConfigError, ToolError
from moonbox.knowledge.records import EmbeddingError
from moonbox.project.assembly import assemble
from moonbox.project.sections import read_knowledge, read_secrets, read_servers
from tests.programs import program

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "tok-5f3a9c21e7"
UNSET = "the environment variable API_TOKEN is not set; set it, or give a default: ${API_TOKEN:-default}"

SERVER = '''
import os, sys
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("leaky")


@server.tool()
def environment() -> dict[str, str]:
    """All variables."""
    return dict(os.environ)


@server.tool()
def fail() -> str:
    """Fail loudly."""
    raise ToolError("the key " + os.environ["API_TOKEN"] + " was refused")


@server.prompt()
def ask() -> str:
    """A prompt."""
    return "use " + os.environ["API_TOKEN"]


sys.stderr.write("started with " + os.environ["API_TOKEN"] + "\\n")
sys.stderr.flush()
server.run("stdio")
'''

CONFIG = """
[tools.script.weather]
path = "weather.lua"
api_key = "${API_TOKEN}"
[tools.script.plain]
path = "plain.lua"
[knowledge]
path = "store.db"
[knowledge.sources.notes]
connector = "filesystem"
path = "notes"
[knowledge.sources.remote]
connector = "filesystem"
path = "notes"
include = ["${API_TOKEN}"]
[knowledge.embeddings]
provider = "openai"
url = "http://localhost:1/v1"
model = "${API_TOKEN}"
[mcp.servers.leaky]
command = "PYTHON"
args = ["server.py"]
env = { API_TOKEN = "${API_TOKEN}" }
[serve]
token = "${API_TOKEN}"
[audit]
path = "trail.jsonl"
"""

WEATHER = """
tool = {description = "Weather."}
function tool.execute(params, context)
  print("the key is " .. context.config.api_key)
  return {key = context.config.api_key, again = {context.config.api_key:upper()}}
end
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "weather.lua").write_text(WEATHER)
    (tmp_path / "plain.lua").write_text('tool = {description = "One."}\nfunction tool.execute() return 1 end\n')
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Bees\n\nThey make honey.\n")
    (tmp_path / "moonbox.toml").write_text(CONFIG.replace("PYTHON", sys.executable))
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("API_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_variable_that_is_not_set_costs_only_what_uses_it(project: Path) -> None:
    config = Config.load(project / "moonbox.toml")
    assert [problem.partition(":")[0] for problem in config.unset] == [
        "[tools.script.weather] api_key",
        "[knowledge.sources.remote] include[0]",
        "[knowledge.embeddings] model",
        "[mcp.servers.leaky.env] API_TOKEN",
        "[serve] token",
    ]
    with assemble(config) as parts:
        parts.start(10)
        found = "select(2, pcall(tools.search, {query = 'honey'}))"  # there is none, as nothing was synchronised yet
        run = parts.sandbox.run(f"return tools.plain(), {found}.code")
        assert run.values == (1, "not_found"), run.error
        assert parts.scripts is not None
        broken = {script.settings.name: script.problem for script in parts.scripts.scripts}
        assert broken == {"plain": None, "weather": f"[tools.script.weather] api_key: {UNSET}"}
        run = parts.sandbox.run("return tools.leaky.unavailable{}")
        assert run.error is not None
        assert run.error.message.endswith(UNSET)
        assert "the environment variable API_TOKEN is not set" in parts.mode.definitions("mcp")[0]["description"]
        assert parts.upstreams is not None
        [status] = parts.upstreams.statuses()
        assert (status.state, status.reason) == ("failed", f"[mcp.servers.leaky.env] API_TOKEN: {UNSET}")
        knowledge = parts.knowledge
        assert knowledge is not None
        assert knowledge.sync("notes").error is None
        assert knowledge.sync("remote").error == f"[knowledge.sources.remote] include[0]: {UNSET}"
        assert [hit.title for hit in knowledge.search("honey")] == ["Bees"]
        with pytest.raises(EmbeddingError, match=r"\[knowledge.embeddings\] model"):
            knowledge.search("honey", mode="semantic")
    embedder = read_knowledge(config).embedder()
    assert embedder is not None
    with pytest.raises(EmbeddingError, match="API_TOKEN is not set"):
        _ = embedder.name  # so that a sync without it keeps the vectors


def test_without_the_path_of_the_knowledge_base_only_its_tools_fail(project: Path) -> None:
    (project / "moonbox.toml").write_text('[knowledge]\npath = "${API_TOKEN}/k.db"\n')
    problem = f"[knowledge] path: {UNSET}"
    done = moonbox("run", "-e", "1+1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
    done = moonbox("run", "-e", "return select(2, pcall(tools.search, {query = 'x'})).message")
    assert (done.returncode, done.stdout) == (0, f"{problem}\n")
    for command in (["sync"], ["search", "x"], ["get", "a:b"], ["sources"], ["stats"]):
        done = moonbox(*command)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: moonbox.toml: {problem}\n"), command
    checks = json.loads(moonbox("doctor", "--json").stdout)["configuration"]
    assert [check["detail"] for check in checks if not check["active"]] == [problem]


def test_a_section_that_needs_it_says_so(project: Path) -> None:
    from moonbox.config.sections import ServeSettings

    with pytest.raises(ConfigError) as caught:
        Config.load(project / "moonbox.toml").read(ServeSettings, "serve")
    assert str(caught.value) == f"moonbox.toml: [serve] token: {UNSET}"
    with pytest.raises(ConfigError, match=r"^moonbox.toml: \[limits\] preset: the environment variable"):
        from moonbox.config.sections import read_limits

        read_limits(Config.parse('[limits]\npreset = "${NONE}"', project / "moonbox.toml", environ={}))


def moonbox(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        program("-m", "moonbox", *args),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environ},
    )


def test_commands_work_without_it(project: Path) -> None:
    done = moonbox("trust")
    assert (done.returncode, done.stderr) == (0, "")
    done = moonbox("run", "-e", "return tools.plain()")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    done = moonbox("mcp", "list", "--json")
    [status] = json.loads(done.stdout)
    assert (status["state"], UNSET in status["reason"]) == ("failed", True)
    done = moonbox("mcp", "test", "leaky")
    assert (done.returncode, UNSET in done.stderr) == (2, True)
    checks = json.loads(moonbox("doctor", "--json").stdout)["configuration"]
    problems = [check["detail"] for check in checks if not check["active"]]
    assert problems == list(Config.load(project / "moonbox.toml").unset)


def test_a_value_is_nowhere_to_be_seen(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("API_TOKEN", TOKEN)
    config = Config.load(project / "moonbox.toml")
    with caplog.at_level(logging.DEBUG, "moonbox"), assemble(config) as parts:
        parts.start(20)
        run = parts.sandbox.run(
            """
            local seen = {tools.weather(), tools.leaky.environment{}.API_TOKEN}
            local ok, problem = pcall(tools.leaky.fail, {})
            print(problem.message)
            return seen
            """
        )
        assert run.error is None
        assert run.value == [
            {"key": "[secret API_TOKEN]", "again": ["[secret API_TOKEN]"]},
            "[secret API_TOKEN]",
        ]
        assert "the key [secret API_TOKEN] was refused" in run.output
        run = parts.sandbox.call("leaky.environment", {})
        assert TOKEN not in repr(run)
        assert TOKEN not in parts.sandbox.run(f"print('{TOKEN}') return tools.plain()").values
        assert parts.upstreams is not None
        assert TOKEN not in json.dumps([status.to_dict() for status in parts.upstreams.statuses()])
    assert TOKEN not in (project / "trail.jsonl").read_text()
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(config)


def test_commands_hide_it(project: Path) -> None:
    assert moonbox("trust").returncode == 0
    done = moonbox("mcp", "call", "leaky.environment", API_TOKEN=TOKEN)
    assert json.loads(done.stdout)["API_TOKEN"] == "[secret API_TOKEN]"
    done = moonbox("tool", "test", "weather", API_TOKEN=TOKEN)
    assert "[secret API_TOKEN]" in done.stdout
    assert TOKEN not in done.stdout + done.stderr


def test_a_server_that_fails_does_not_tell_it(project: Path) -> None:
    (project / "server.py").write_text("import os, sys\nsys.exit('no luck with ' + os.environ['API_TOKEN'])\n")
    assert moonbox("trust").returncode == 0
    for command in (("mcp", "test", "leaky"), ("mcp", "doctor", "--wait", "5"), ("mcp", "list", "--wait", "5")):
        done = moonbox(*command, API_TOKEN=TOKEN)
        assert TOKEN not in done.stdout + done.stderr, command
        assert "leaky" in done.stdout + done.stderr, command


def test_messages_about_a_setting_hide_it(project: Path) -> None:
    config = Config.parse(
        '[mcp.servers.x]\nurl = "${API_TOKEN}"', project / "moonbox.toml", environ={"API_TOKEN": TOKEN}
    )
    with pytest.raises(ConfigError) as caught:
        read_servers(config)
    assert str(caught.value) == (
        "moonbox.toml: [mcp.servers.x] url must begin with http:// or https://, not '[secret API_TOKEN]'"
    )


@pytest.mark.parametrize("secret", ['a"quoted"token', "a\x01quoted\ttoken"])
def test_log_lines_hide_it(secret: str) -> None:
    from moonbox.cli.serve import LogFormatter
    from moonbox.secrets import SecretRedactor

    for formatter in (LogFormatter("text"), LogFormatter("json")):
        formatter.hide = SecretRedactor({"API_TOKEN": secret})
        record = logging.LogRecord("x", 20, "f", 1, "it said %s", (secret,), None)
        record.fields = {"key": secret}
        line = formatter.format(record)
        assert line.count("[secret API_TOKEN]") == 2
        assert "quoted" not in line


def test_servers_of_other_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mcp.json"
    servers: dict[str, Any] = {"a": {"command": "x", "env": {"K": "${A_TOKEN}"}}, "b": {"command": "y"}}
    file.write_text(json.dumps({"mcpServers": servers}))
    monkeypatch.delenv("A_TOKEN", raising=False)
    settings = read_servers(Config(), file)
    assert [(one.name, bool(one.problem)) for one in settings] == [("a", True), ("b", False)]
    assert settings[0].problem.startswith("[mcp.servers.a.env] K: the environment variable A_TOKEN is not set")
    monkeypatch.setenv("A_TOKEN", TOKEN)
    assert read_secrets(Config(), file) == {"A_TOKEN": TOKEN}


@pytest.mark.parametrize(
    ("name", "value", "place", "secret"),
    [
        ("API_TOKEN", "abcdefgh", ("env", "X"), True),
        ("API_TOKEN", "abc", ("env", "X"), False),
        ("MODE", "production", ("env", "MODE"), False),
        ("PIN", "12345678", ("env", "PIN"), False),
        ("VALUE", "a1b2c3d4e5", ("env", "X"), True),
        ("VALUE", "averylongsinglewordpassphrase", ("env", "X"), True),
        ("WHERE", "/", ("env", "X"), False),
        ("WHERE", "/tmp/", ("args", 0), False),
        ("WHERE", "tok/5f3a9c", ("path",), False),
        ("BASE", "https://api.example.com/v1", ("env", "X"), False),
        ("BASE", "https://me:pass@api.example.com/v1", ("env", "X"), True),
        ("BASE", "https://api.example.com/v1?key=abc", ("url",), True),
        ("HOST_NAME", "api.example.com", ("url",), False),
        ("DATABASE_DSN", "postgres://db.internal/x", ("env", "X"), True),
    ],
)
def test_what_counts_as_secret(name: str, value: str, place: tuple[str | int, ...], secret: bool) -> None:
    variables = Variables({name: value})
    assert variables.expand(f"${{{name}}}", place) == value
    assert variables.secrets == ({name: value} if secret else {})


def test_secrets_in_python() -> None:
    @tool
    def fetch() -> dict[str, str]:
        """Fetch."""
        return {"authorization": f"Bearer {TOKEN}"}

    @tool
    def fail() -> None:
        """Fail."""
        raise ToolError(f"{TOKEN} expired", code=f"bad {TOKEN}", data={"token": TOKEN})

    sink = MemorySink()
    with Sandbox(tools=[fetch, fail], secrets={"KEY": TOKEN}, audit=sink) as box:
        assert box.run("return tools.fetch()").value == {"authorization": "Bearer [secret KEY]"}
        run = box.run("local ok, e = pcall(tools.fail) return e.message, e.code, e.data")
        assert run.values == ("[secret KEY] expired", "bad [secret KEY]", {"token": "[secret KEY]"})
        box.run(f"return '{TOKEN}'")
    written = "".join(run.to_json() for run in sink.runs())
    assert TOKEN not in written
    assert "[redacted]" in written
