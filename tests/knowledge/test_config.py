"""The section [knowledge] of the configuration."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from moonbox.errors import ConfigError
from moonbox.knowledge import KnowledgeBase, KnowledgeConfig
from moonbox.knowledge.config import builtin_connectors
from moonbox.knowledge.connectors.filesystem import Filesystem
from moonbox.knowledge.connectors.git import Git
from moonbox.knowledge.connectors.web import Web
from moonbox.knowledge.embedding import LocalEmbedder, OpenAIEmbedder

from .conftest import Listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.knowledge import Connector

BASE = Path("/project")
WHOLE = tomllib.loads("""
path = "data/kb.db"

[embeddings]
provider = "openai"
url = "http://localhost:11434/v1"
model = "nomic-embed-text"
key_env = "KEY"
timeout = 5

[sources.handbook]
connector = "filesystem"
path = "docs"
include = ["*.md", "*.txt"]
follow_symlinks = true

[sources.code]
connector = "git"
path = "/srv/repo"
ref = "main"

[sources.site]
connector = "web"
urls = ["https://example.org/"]
""")


def read(data: Any) -> KnowledgeConfig:
    return KnowledgeConfig.from_dict(data, BASE)


def test_the_whole_section() -> None:
    config = read(WHOLE)
    assert config.path == Path("/project/data/kb.db")
    assert config.sources["handbook"] == Filesystem(
        path=Path("/project/docs"), include=("*.md", "*.txt"), follow_symlinks=True
    )
    assert config.sources["code"] == Git(path=Path("/srv/repo"), ref="main")
    assert isinstance(config.sources["site"], Web)
    embedder = config.embedder()
    assert isinstance(embedder, OpenAIEmbedder)
    assert (embedder.name, embedder.options.timeout) == ("nomic-embed-text", 5)


def test_an_empty_section() -> None:
    config = read({})
    assert config.path == Path("/project/.moonbox/knowledge.db")
    assert (dict(config.sources), config.embedder()) == ({}, None)
    assert isinstance(read({"embeddings": {"provider": "local"}}).embedder(), LocalEmbedder)


def source(**table: Any) -> dict[str, Any]:
    return {"sources": {"docs": table}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "[knowledge] must be a table, not []"),
        ({"paht": "x"}, "[knowledge] unknown key 'paht'; did you mean 'path'?"),
        ({"zzz": "x"}, "[knowledge] unknown key 'zzz'; known keys: path, embeddings, sources"),
        ({"path": 7}, "[knowledge] path must be a string, not 7"),
        ({"sources": []}, "[knowledge] sources must be a table, not []"),
        ({"sources": {"docs": "x"}}, "[knowledge.sources] docs must be a table, not 'x'"),
        (
            {"sources": {"a:b": {}}},
            "[knowledge] the source name 'a:b' is invalid: use 1 to 64 letters, digits, - and _, beginning with",
        ),
        (source(path="x"), "[knowledge.sources.docs] connector is missing; choose one of: filesystem, git, web"),
        (
            source(connector="filesytem"),
            "[knowledge.sources.docs] unknown connector 'filesytem'; did you mean 'filesystem'?",
        ),
        (source(connector=["x"]), "[knowledge.sources.docs] connector must be a string, not ['x']"),
        (source(connector="git"), "[knowledge.sources.docs] path is missing"),
        (
            source(connector="filesystem", path="x", inclde=[]),
            "[knowledge.sources.docs] unknown key 'inclde'; did you mean 'include'?",
        ),
        (
            source(connector="filesystem", path="x", include="*.md"),
            '[knowledge.sources.docs] include must be an array: write include = ["*.md"]',
        ),
        (
            source(connector="filesystem", path="x", include=["ok", 7]),
            "[knowledge.sources.docs] include[1] must be a string, not 7",
        ),
        (
            source(connector="filesystem", path="x", max_file_size="1 MB", hidden="yes"),
            (
                "[knowledge.sources.docs] hidden must be true or false, not 'yes'\n"
                "[knowledge.sources.docs] max_file_size must be a whole number, not '1 MB'"
            ),
        ),
        (
            source(connector="filesystem", path="x", max_file_size=0),
            "[knowledge.sources.docs] max_file_size must be more than 0, not 0",
        ),
        (
            source(connector="git", path="x", exclude=["/abs"]),
            "[knowledge.sources.docs] a glob must be a path inside the source, not '/abs'",
        ),
        (
            source(connector="git", path="x", url="https://x.org/{commit}/{pth}"),
            "[knowledge.sources.docs] url: unknown placeholder '{pth}'; did you mean '{path}'?",
        ),
        (
            source(connector="filesystem", path="x", url="https://x.org/{commit}"),
            "[knowledge.sources.docs] url: unknown placeholder '{commit}'; known placeholders: {path}",
        ),
        (source(connector="web"), "[knowledge.sources.docs] a web source needs urls or sitemaps"),
        (
            source(connector="web", urls=["x"], fetch="y"),
            "[knowledge.sources.docs] unknown key 'fetch'; known keys: ",
        ),
        ({"embeddings": 1}, "[knowledge] embeddings must be a table, not 1"),
        ({"embeddings": {}}, "[knowledge.embeddings] provider is missing; choose one of: openai, local"),
        (
            {"embeddings": {"provider": "x"}},
            "[knowledge.embeddings] unknown provider 'x'; known providers: openai, local",
        ),
        (
            {"embeddings": {"provider": "local", "model": "x"}},
            "[knowledge.embeddings] unknown key 'model'; known keys: provider",
        ),
        ({"embeddings": {"provider": "openai", "url": "http://x"}}, "[knowledge.embeddings] model is missing"),
    ],
)
def test_what_is_wrong_is_said(data: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(data)
    assert str(caught.value).startswith(message)


def test_the_schema_agrees_with_the_reading() -> None:
    schema = KnowledgeConfig.schema()
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid(WHOLE)
    assert validator.is_valid({})
    for wrong in (
        {"paht": "x"},
        source(connector="file"),
        source(connector="git"),
        source(connector="filesystem", path="x", inclde=[]),
        source(connector="filesystem", path="x", hidden="yes"),
        {"sources": {"a:b": {"connector": "git", "path": "x"}}},
        {"embeddings": {"provider": "local", "model": "x"}},
    ):
        assert not validator.is_valid(wrong), wrong
    tables = schema["properties"]["sources"]["additionalProperties"]["oneOf"]
    for table in tables:
        for name, field in table["properties"].items():
            assert name == "connector" or field["description"], name


def test_other_kinds_of_sources_enter_by_the_same_door(tmp_path: Path) -> None:
    class Kind:
        def build(self, options: Mapping[str, Any], base_dir: Path, where: str) -> Connector:
            if "script" not in options:
                raise ConfigError(f"{where}.script is missing")
            return Listed({"source_id": "1", "body": f"from {base_dir.name}/{options['script']}"})

        def schema(self) -> dict[str, Any]:
            return {"type": "object", "properties": {"script": {"type": "string"}}, "required": ["script"]}

    connectors = {**builtin_connectors(), "lua": Kind()}
    data = {"path": "kb.db", **source(connector="lua", script="wiki.lua")}
    config = KnowledgeConfig.from_dict(data, tmp_path, connectors=connectors)
    with KnowledgeBase.from_config(config) as base:
        assert base.sync("docs").added == 1
        assert base.get("docs:1").body == f"from {tmp_path.name}/wiki.lua"
    with pytest.raises(ConfigError, match=r"^knowledge.sources.docs.script is missing$"):
        KnowledgeConfig.from_dict(source(connector="lua"), tmp_path, connectors=connectors)
    assert jsonschema_rs.validator_for(KnowledgeConfig.schema(connectors)).is_valid(data)
