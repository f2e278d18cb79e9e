"""The assembly: each section of the configuration, and what is said about a wrong one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from moonbox import Limits
from moonbox.config import Config
from moonbox.errors import ConfigError
from moonbox.project.assembly import assemble
from tests.mcp import peers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_everything_comes_together(configured: Callable[..., Path], tmp_path: Path, home: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "find.lua").write_text(
        """
        tool = {description = "Finds notes.", parameters = {{name = "words", type = "string", required = true}}}
        function tool.execute(params, context)
          local titles = {}
          for i, hit in ipairs(context.search(params.words, {limit = 3})) do titles[i] = hit.title end
          return titles, context.sources()[1].name
        end
        """
    )
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bees.md").write_text("# Bees\n\nBees make honey.\n")
    path = configured(
        """
        [sandbox]
        lua_features = ["metatables"]
        [limits]
        preset = "quick"
        timeout = 20
        [audit]
        path = "trail.jsonl"
        redact = ["password"]
        [tools]
        folders = ["scripts"]
        [knowledge.sources.notes]
        connector = "filesystem"
        path = "notes"
        [codemode]
        keep_visible = ["double", "memory.read_graph"]
        [mcp.servers.memory]
        command = "<memory>"
        env = { MEMORY_FILE_PATH = "<file>" }
        """,
        file=tmp_path / "memory.jsonl",
    )

    def double(n: int) -> int:
        return 2 * n

    def login(password: str) -> bool:
        return True

    with assemble(Config.load(path), tools=[double, login]) as made:
        assert made.knowledge is not None
        made.knowledge.sync("notes")
        made.start(30)
        assert made.sandbox.limits == Limits.quick(timeout=20)
        assert sorted(tool.path for tool in made.mode.direct_tools) == [
            "double",
            "memory.delete_entities",
            "memory.delete_observations",
            "memory.delete_relations",
            "memory.read_graph",
        ]
        run = made.mode.repl().run(
            "setmetatable({}, {}) tools.login{password = 'hush'} "
            "return tools.find{words = 'honey'}, tools.search{query = 'bees'}[1].title, "
            "tools.memory.search_nodes{query = 'x'}.entities"
        )
        assert run.error is None, run.error
        assert run.values == (["Bees"], "Bees", [])
        assert made.builtin == ("search", "get", "sources")
        assert made.trail.get(run.id).value == ["Bees"]
    trail = (tmp_path / "trail.jsonl").read_text()
    assert "hush" not in trail
    assert '"tool":"login"' in trail


def test_the_trail_is_written_unless_switched_off(home: Path) -> None:
    with assemble() as made:
        run = made.sandbox.run("return 1")
        assert made.trail.get(run.id).value == 1
    assert (home / "audit.db").is_file()
    with assemble(Config(data={"audit": {"enabled": False}})) as made:
        assert made.trail is None


def test_servers_of_other_clients_are_added(tmp_path: Path, home: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"memory": {"command": peers.server("memory")}}}))
    with assemble(mcp_config=tmp_path / "mcp.json") as made:
        made.start(30)
        assert made.upstreams is not None
        assert made.upstreams.status("memory").state == "ready"
    twice = Config(data={"mcp": {"servers": {"memory": {"command": "x"}}}})
    with pytest.raises(ConfigError, match="an MCP server 'memory' is configured already; rename one"):
        assemble(twice, mcp_config=[tmp_path / "mcp.json"])


def test_a_script_file_that_changes_is_taken_up(tmp_path: Path, home: Path, configured: Callable[..., Path]) -> None:
    (tmp_path / "scripts").mkdir()
    path = configured('[tools]\nfolders = ["scripts"]\n')
    with assemble(Config.load(path)) as made:
        assert not made.refresh()
        (tmp_path / "scripts" / "one.lua").write_text("tool = {} function tool.execute() return 1 end")
        assert made.refresh()
        assert made.sandbox.call("one").value == 1
        assert [tool.path for tool in made.mode.hidden_tools] == ["one"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sandbox]\nisolaton = 1", "[sandbox] unknown key 'isolaton'; did you mean 'isolation'?"),
        ('[sandbox]\nlua_features = ["x"]', "[sandbox] lua_features: unknown feature 'x'"),
        ("[limits]\ntimout = 1", "[limits] unknown key 'timout'; did you mean 'timeout'?"),
        ("[limits]\ntimeout = -1", "[limits] timeout must be more than 0, not -1"),
        ('[limits]\npreset = "huge"', "[limits] unknown limits preset 'huge'"),
        ('[audit]\npath = "trail.txt"', "[audit] unknown audit sink"),
        ("[codemode]\nkeep = []", "[codemode] unknown key 'keep'; did you mean 'keep_visible'?"),
        ('[codemode]\nkeep_visible = ["x"]', "[codemode] keep_visible: unknown tool 'x'"),
        ("[tools]\nfolder = 1", "[tools] unknown key 'folder'; did you mean 'folders'?"),
        ('[mcp.servers.a]\ncomand = "x"', "[mcp.servers.a] unknown key 'comand'; did you mean 'command'?"),
        ('[knowledge]\npth = "x"', "[knowledge] unknown key 'pth'; did you mean 'path'?"),
    ],
)
def test_a_wrong_setting_is_named(text: str, message: str, configured: Callable[..., Path], home: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        assemble(Config.load(configured(text)))
    assert message in str(caught.value)


def test_two_tools_of_one_name_are_a_mistake_of_the_configuration(
    tmp_path: Path, configured: Callable[..., Path], home: Path
) -> None:
    (tmp_path / "search.lua").write_text("tool = {} function tool.execute() return 1 end")
    path = configured(
        '[tools.script.search]\npath = "search.lua"\n[knowledge.sources.a]\nconnector = "filesystem"\npath = "."\n'
    )
    with pytest.raises(ConfigError, match=r"moonbox\.toml: \[tools\] there are two tools named 'search'; rename one"):
        assemble(Config.load(path))
