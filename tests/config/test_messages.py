"""What wrong settings are answered with: each line names its section once, in our words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from moonbox.config import SECTIONS, Config
from moonbox.errors import ConfigError
from moonbox.project.sections import READERS

if TYPE_CHECKING:
    from pathlib import Path

OPENAPI = '[openapi.shop]\nspec = "shop.json"\nbase_url = "https://shop.example"\n'
SERVER = '[mcp.servers.time]\ncommand = "time"\n'
SCRIPT = '[tools.script.greet]\npath = "greet.lua"\n'
FILES = '[knowledge.sources.files]\nconnector = "filesystem"\npath = "."\n'
LLM = '[llm]\nprovider = "openai"\nmodel = "m"\n'
WRONG = {
    "audit": ["path = 1", 'enabled = "yes"', "max_days = -1", "max_day = 1"],
    "cluster": ["node_timeout = 0", "sleep_after = 1", 'adress = "auto"'],
    "codemode": ['mode = "foo"', "catalog_tokens = 0", 'keep_visible = "a"', 'description = ["a"]'],
    "journal": ['path = "a"\nurl = "postgresql://b"', 'url = "mysql://b"', 'durability = "foo"', "wait = true"],
    "knowledge": [
        "foo = 1",
        f'{FILES}foo = "a"',
        f'{FILES}include = "*.md"',
        '[knowledge.sources.a]\nconnector = "foo"',
        '[knowledge.sources.a]\nconnector = "web"\nurls = ["foo"]',
        '[knowledge.sources.a]\nconnector = "lua"\npath = "a.lua"\ntimeout = 0',
        '[knowledge.embeddings]\nprovider = "foo"',
    ],
    "limits": ["timeout = 0", 'preset = "foo"', 'max_memory = "a"', "max_memroy = 1"],
    "llm": [
        'provider = "foo"',
        'provider = "openai"',
        f"{LLM}max_cost = 1.0",
        f"{LLM}price = [1]",
        f"{LLM}price = [1, 2, 3]",
        f'{LLM}price = "a"',
    ],
    "mcp": [
        "servers = 1",
        f'{SERVER}url = "http://time.example"',
        f'{SERVER}policy = "foo"',
        f'{SERVER}prefix = "a b"',
        f"{SERVER}retry = {{times = 0}}",
        f'{SERVER}retry = {{on = ["foo"]}}',
        f'{SERVER}[mcp.servers.time.tools.now]\npolicy = "foo"',
        '[mcp.servers.a]\nurl = "ftp://a"',
        '[mcp.servers.a]\nurl = "https://a.example"\noauth = {grant = "foo"}',
        '[mcp.servers.a]\nurl = "https://a.example"\noauth = {client_secret = "foo"}',
    ],
    "openapi": [
        "shop = 1",
        f"{OPENAPI}[openapi.shop.auth]",
        f"{OPENAPI}[openapi.shop.auth]\nbearer = 1",
        f'{OPENAPI}[openapi.shop.auth]\nbearre = "a"',
        f'{OPENAPI}[openapi.shop.auth]\nbearer = "a"\nbasic = "b:c"',
        f'{OPENAPI}[openapi.shop.auth]\napi_key = "a"',
        f'{OPENAPI}[openapi.shop.auth]\nclient_id = "a"',
        f'{OPENAPI}[openapi.shop.retry]\non = ["foo"]',
        f'{OPENAPI}policy = {{"GET /a" = "foo"}}',
        f"{OPENAPI}headers = {{a = 1}}",
        '[openapi.shop]\nspec = "shop.json"\nauth = {bearer = "a"}',
        '[openapi."a b"]\nspec = "shop.json"',
    ],
    "sandbox": ['language = "foo"', 'isolation = "foo"', 'lua_features = ["foo"]', "min_workers = -1", 'scripts = "a"'],
    "serve": ["port = 70000", 'origins = ["foo"]', 'token = "short"', "max_calls = 0", 'oauth = {issuer = "foo"}'],
    "sql": [
        '[sql.a]\nurl = "duckdb://"\nmax_rows = 0',
        '[sql.a]\nurl = "duckdb://"\nfolders = "b"',
        "[sql.a]\nurl = 1",
        "[sql.a]\nfoo = 1",
    ],
    "tools": [
        "model_saves = true",
        'folders = "a"',
        'foo = "a"',
        f"{SCRIPT}timeout = 0",
        f'{SCRIPT}http = ["https://a.example"]',
        f'{SCRIPT}secrets = {{KEY = {{places = ["foo"]}}}}',
        f'{SCRIPT}direct = "a"',
        '[tools.script.greet]\npath = ""',
    ],
}


@pytest.mark.parametrize(("section", "written"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_each_line_names_its_section_once(section: str, written: str, tmp_path: Path) -> None:
    text = written if written.startswith("[") else f"[{section}]\n{written}"
    config = Config.parse(text, tmp_path / "moonbox.toml")
    with pytest.raises(ConfigError) as caught:
        READERS[section](config)
    lines = str(caught.value).splitlines()
    for line in lines:
        assert line.count("moonbox.toml: ") == 1 and "Value error" not in line and "pydantic" not in line
        (named,) = re.findall(rf"\[{section}(?:\.[^\]]+)?\]", line)
        message = line.partition(f"{named} ")[2]
        assert not message.startswith("[") and not message.startswith(f"{named.strip('[]').rpartition('.')[2]} ")


def test_every_section_has_wrong_settings_here() -> None:
    assert tuple(WRONG) == SECTIONS


def test_an_array_that_is_too_short_is_named_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"^\[llm\] price must have another value after the first 1$"):
        READERS["llm"](Config.parse(f"{LLM}price = [1]"))
