"""The sections [openapi.<name>] and [sql.<name>]: namespaces of tools, agreements, and what is wrong with them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from moonbox import Toolbox
from moonbox.config import Config
from moonbox.errors import ConfigError
from moonbox.project.assembly import assemble
from moonbox.project.diagnosis import diagnose
from moonbox.project.trust import powers, trust_hash

if TYPE_CHECKING:
    from pathlib import Path

SPEC = {
    "openapi": "3.1.0",
    "paths": {
        "/items": {"get": {"operationId": "items"}},
        "/broken": {"get": {"parameters": [{"$ref": "#/none"}]}},
    },
}
TEXT = """[openapi.shop]
spec = "shop.json"
base_url = "https://shop.example"
auth = { bearer = "${SHOP_TOKEN}" }

[sql.books]
url = "sqlite:///books.db"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.json").write_text(json.dumps(SPEC))
    with sqlite3.connect(tmp_path / "books.db") as db:
        db.execute("CREATE TABLE books (title TEXT)")
    db.close()
    (tmp_path / "moonbox.toml").write_text(TEXT)
    return tmp_path


def test_each_table_is_a_namespace(folder: Path) -> None:
    config = Config.load(folder / "moonbox.toml", environ={"SHOP_TOKEN": "tok-123456789"})
    with assemble(config) as project:
        assert project.sandbox.toolbox.paths() == ("shop.items", "books.query", "books.tables")
        assert project.sandbox.run("return tools.books.tables()").value == {"books": {"title": "TEXT"}}


def test_a_source_that_cannot_be_used_costs_its_own_tools(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "books.db").unlink()
    with assemble(Config.load(folder / "moonbox.toml", environ={})) as project:
        assert project.sandbox.toolbox.paths() == ("shop.unavailable", "books.query", "books.tables")
        run = project.sandbox.run("tools.shop.unavailable()")
        assert run.error is not None
        assert "SHOP_TOKEN is not set" in run.error.message
        first, second = caplog.messages
        assert first.startswith("[openapi.shop.auth] bearer: the environment variable SHOP_TOKEN is not set")
        assert second.startswith("[sql.books] the database cannot be used: the statement failed")
        run = project.sandbox.run("return tools.books.query('SELECT 1 AS n')")
        assert run.error is not None
        assert run.error.tool == "books.query"
        assert run.error.message == f"the statement failed: there is no file '{folder / 'books.db'}'"
        with contextlib.closing(sqlite3.connect(folder / "books.db")) as db:
            db.execute("CREATE TABLE books (title TEXT)")
        assert project.sandbox.run("return tools.books.tables()").value == {"books": {"title": "TEXT"}}


def test_they_need_an_agreement(folder: Path) -> None:
    config = Config.load(folder / "moonbox.toml", environ={})
    assert powers(config) == (
        "send requests to https://shop.example (the OpenAPI specification shop), with the variables SHOP_TOKEN",
        "read the database sqlite:///books.db (the SQL source books)",
    )
    changed = Config.parse(TEXT + "execute = true\n", folder / "moonbox.toml", environ={})
    assert trust_hash(changed) != trust_hash(config)
    assert powers(changed)[1].startswith("read and change the database")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[openapi.a]\nspc = "x"', r"\[openapi.a\] spec is missing"),
        ('[openapi.a]\nspec = "x"\nauth = { bearer = "y" }', r"\[openapi.a\] auth and headers require base_url"),
        ('[openapi."a b"]\nspec = "x"', "the name may have letters, digits and _ only"),
        ('[sql.a]\nurl = "sqlite:///x"\nmax_rows = 0', r"\[sql.a\] max_rows must be more than 0"),
    ],
)
def test_wrong_settings_are_errors(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assemble(Config.parse(text))


def test_the_doctor_names_operations_that_cannot_be_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-123456789")
    checks = {check.name: check.detail for check in diagnose(folder / "moonbox.toml").configuration}
    assert checks["[openapi.shop]"] == "GET /broken: the reference '#/none' leads nowhere"


def test_large_definitions_beside_the_code_tool_are_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "kit.py").write_text(
        "from moonbox import Tool\n"
        "tools = [Tool.from_schema(name=f't{n}', description='word ' * 300, parameters={'type': 'object'}, "
        "call=len, policy='direct') for n in range(20)] + [len]\n"
    )
    (tmp_path / "moonbox.toml").write_text('[tools]\npython = ["kit.py:tools"]\n')
    with assemble(Config.load(tmp_path / "moonbox.toml")):
        pass
    assert "the model gets the definitions of 20 direct tools, 31" in caplog.text


def test_a_database_whose_file_is_missing_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "moonbox.toml").write_text('[sql.shop]\nurl = "sqlite:///order.db"\n')
    with assemble(Config.load(tmp_path / "moonbox.toml")):
        pass
    assert f"there is no file '{tmp_path / 'order.db'}'" in caplog.text


def test_a_pattern_that_names_no_operation_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, '
        '"paths": {"/pets": {"get": {"operationId": "pets"}}}}'
    )
    toolbox = Toolbox.from_openapi("a.json", folder=tmp_path, base_url="http://127.0.0.1:9", include=["pets", "cats"])
    assert (toolbox.paths(), toolbox.problems) == (("pets",), ("include: 'cats' names no operation",))


def test_a_tool_of_a_source_that_cannot_be_used_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text('[openapi.pets]\nspec = "nix.yaml"\n')
    with assemble(Config.load(tmp_path / "moonbox.toml")) as project:
        error = project.sandbox.run("return tools.pets.list{}").error
    assert error is not None
    assert error.hint == "this source of tools cannot be used now; tools.pets.unavailable says why"
