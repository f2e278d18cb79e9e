"""What the question of trust shows of a configuration that somebody else may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moonbox.config import Config
from moonbox.project.trust import powers

if TYPE_CHECKING:
    from pathlib import Path

API = "[openapi.a]\nbase_url = 'https://a.example'\n"
SENT = "send requests to https://a.example (the OpenAPI specification a)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{API}spec = 'a.json'", (SENT,)),
        (
            f"{API}spec = 'https://me:word@evil.example/a.json'",
            ("read https://evil.example/a.json (the OpenAPI specification a)", SENT),
        ),
        (f"{API}spec = '../a.json'", ("read ../a.json (the OpenAPI specification a)", SENT)),
        (
            f"{API}spec = 'a.json'\nauth = {{ bearer = '${{AWS_KEY}}' }}\nheaders = {{ X = '${{A:-b}} $${{C}}' }}",
            (f"{SENT}, with the variables AWS_KEY, A",),
        ),
        (
            "[mcp.servers.a]\ncommand = 'run'\nargs = ['me']\nenv = { TOKEN = '${AWS_KEY}' }",
            ("start the program `run me` (the MCP server a), with the variables AWS_KEY",),
        ),
        (
            "[mcp.servers.a]\nurl = 'https://a.example'\nheaders = { Authorization = 'Bearer ${AWS_KEY}' }",
            ("connect to https://a.example (the MCP server a), with the variables AWS_KEY",),
        ),
        (
            "[llm]\nprovider = 'openai'\nmodel = 'm'\nurl = 'https://a.example'\nkey_env = 'AWS_KEY'",
            ("send prompts of scripts to https://a.example (the model m), with the variables AWS_KEY",),
        ),
        (
            "[knowledge.embeddings]\nprovider = 'openai'\nmodel = 'm'\nurl = 'https://a.example'\nkey_env = 'AWS_KEY'",
            ("send texts of the knowledge base to https://a.example, with the variables AWS_KEY",),
        ),
        (
            "[sql.a]\nurl = 'duckdb://'\nfolders = ['/home', '~/.ssh']",
            ("read the database duckdb:// (the SQL source a)", "read the files in /home, ~/.ssh (the SQL source a)"),
        ),
        (
            "[sql.a]\nurl = 'sqlite:////home/me/.config/browser/cookies.db'",
            ("read the database sqlite:////home/me/.config/browser/cookies.db (the SQL source a)",),
        ),
        (
            "[sql.a]\nurl = 'postgresql://me:p@ss@db.example/shop'",
            ("read the database postgresql://db.example/shop (the SQL source a)",),
        ),
        (
            "[knowledge.sources.a]\nconnector = 'filesystem'\npath = '/home/me/.ssh'",
            ("read the source a (filesystem): /home/me/.ssh",),
        ),
        (
            "[knowledge.sources.a]\nconnector = 'web'\nurls = ['http://10.0.0.1/']\nsitemaps = ['http://b.example/']",
            ("read the source a (web): http://10.0.0.1/, http://b.example/",),
        ),
        ("[audit]\nmax_runs = 1", ("delete old runs from your own audit trail (max_runs = 1)",)),
        (
            "[audit]\nmax_days = 0.1\nmax_bytes = 9",
            ("delete old runs from your own audit trail (max_bytes = 9, max_days = 0.1)",),
        ),
        ("[audit]\nmax_runs = 1\npath = 'trail.db'", ()),
        ("[audit]\nmax_runs = 0\nenabled = true", ()),
    ],
)
def test_every_place_and_variable_is_shown(tmp_path: Path, text: str, shown: tuple[str, ...]) -> None:
    assert powers(Config.parse(text, tmp_path / "moonbox.toml", environ={})) == shown
