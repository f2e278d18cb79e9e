"""Tools of databases: SQLite, DuckDB and a real PostgreSQL server."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import CodeMode, Limits, Sandbox, Toolbox
from moonbox.errors import UsageError
from tests.postgres import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["postgres"]
TABLE = "CREATE TABLE orders (id INTEGER, customer TEXT, total NUMERIC(20, 2), made DATE, data {bytes})"
ROWS = "INSERT INTO orders VALUES (1, 'Ann', 12.50, '2024-05-01', NULL), (2, 'Bob', 7.25, '2024-05-02', NULL)"


@pytest.fixture(scope="module", params=["sqlite", "duckdb", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with two orders."""
    folder = tmp_path_factory.mktemp("databases")
    statements = [TABLE.format(bytes="BYTEA" if request.param == "postgresql" else "BLOB"), ROWS]
    if request.param == "postgresql":
        import psycopg

        address: str = request.getfixturevalue("postgres")
        with psycopg.connect(address) as db:
            for statement in statements:
                db.execute(statement)
        return address
    if request.param == "sqlite":
        with sqlite3.connect(folder / "shop.db") as file:
            for statement in statements:
                file.execute(statement)
        file.close()
        return f"sqlite:///{folder}/shop.db"
    import duckdb

    with duckdb.connect(str(folder / "shop.duckdb")) as quack:
        for statement in statements:
            quack.execute(statement)
    return f"duckdb:///{folder}/shop.duckdb"


@pytest.fixture(scope="module")
def box(url: str) -> Iterator[Sandbox]:
    tools = Toolbox.from_sql(url, execute=True, max_rows=1000, timeout=5)
    with Sandbox(tools, limits=Limits(timeout=60, max_tool_calls=100), approve=lambda *_: True) as box:
        yield box


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("tools.query{sql = 'SELECT customer FROM orders WHERE id = ?', params = {2}}", [{"customer": "Bob"}]),
        ("tools.query{sql = 'SELECT id FROM orders WHERE customer = :who', params = {who = 'Ann'}}", [{"id": 1}]),
        ("tools.query('SELECT sum(total) AS s FROM orders')[1].s", 19.75),
        ("tools.query('SELECT made, data FROM orders ORDER BY id')[1]", {"made": "2024-05-01", "data": None}),
        ("tools.query('WITH o AS (SELECT * FROM orders) SELECT count(*) AS n FROM o -- all')[1].n", 2),
        ("tools.query('VALUES (1, 2)')", 1),
        ("#tools.query('EXPLAIN SELECT * FROM orders') > 0", True),
        ("tools.query('SELECT id, id FROM orders WHERE id = 1')", [{"id": 1, "id_2": 1}]),
        ("tools.query('SELECT 1 AS a_3, 2 AS a, 3 AS a')", [{"a_3": 1, "a": 2, "a_3_3": 3}]),
        ("tools.query('SELECT id FROM orders WHERE id > 5')", []),
        ("tools.query('SELECT id FROM orders WHERE id IN (?,?) ORDER BY id', {1, 2})", [{"id": 1}, {"id": 2}]),
        ("tools.tables().orders.customer", "TEXT"),
    ],
)
def test_queries(box: Sandbox, script: str, value: Any) -> None:
    run = box.run(f"return {script}")
    assert run.error is None
    if "VALUES" in script:
        assert len(run.value) == value
    elif "customer" in script and "tables" in script:
        assert run.value.upper() in ("TEXT", "VARCHAR")
    else:
        assert run.value == value


@pytest.mark.parametrize(
    ("sql", "params", "value"),
    [
        ("SELECT ?::INTEGER+?::INTEGER AS v", [1, 2], 3),
        ("SELECT ?||'x' AS v", ["a"], "ax"),
        ("SELECT '?' AS v WHERE ?::INTEGER = 1", [1], "?"),
        ("SELECT '{\"a\": 1}'::JSONB ? 'a' AS v", None, True),
        ("SELECT '{\"a\": 1}'::JSONB ?| ARRAY['a', 'b'] AS v WHERE 1 = ?", [1], True),
        ("SELECT 'NaN'::NUMERIC AS v", None, "NaN"),
        ("SELECT '-Infinity'::DOUBLE PRECISION AS v", None, "-inf"),
    ],
)
def test_values_of_postgresql_and_duckdb(box: Sandbox, url: str, sql: str, params: Any, value: Any) -> None:
    if url.startswith("sqlite") or (url.startswith("duckdb") and ("JSONB" in sql or "NUMERIC" in sql)):
        pytest.skip("not in the SQL of this database")
    run = box.run("return tools.query(sql, values)[1].v", inputs={"sql": sql, "values": params})
    assert run.error is None
    assert run.value == value


@pytest.mark.parametrize(("params", "name"), [("{1}", ":who"), ("{}", ":who"), ("{other = 1}", ":who")])
def test_a_parameter_without_a_value(box: Sandbox, params: str, name: str) -> None:
    run = box.run(f"return tools.query('SELECT id FROM orders WHERE customer = :who', {params})")
    assert run.error is not None
    assert run.error.message == f"the parameter {name} has no value in params"


def test_virtual_tables_and_generated_columns_of_sqlite(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "notes.db") as db:
        db.execute("CREATE VIRTUAL TABLE notes USING fts5(body)")
        db.execute("INSERT INTO notes VALUES ('soup at noon'), ('nothing')")
        db.execute("CREATE TABLE prices (net INTEGER, gross INTEGER GENERATED ALWAYS AS (net * 2))")
        db.execute("CREATE TABLE wild (number REAL, text TEXT)")
        db.execute("INSERT INTO wild VALUES (9e999, CAST(x'636166e9' AS TEXT))")
    db.close()
    search = "SELECT highlight(notes, 0, '[', ']') AS v FROM notes WHERE notes MATCH 'soup' ORDER BY bm25(notes)"
    with Sandbox(Toolbox.from_sql(f"sqlite:///{tmp_path}/notes.db")) as box:
        assert box.run("return tools.query(sql)", inputs={"sql": search}).value == [{"v": "[soup] at noon"}]
        run = box.run("return tools.query([[SELECT value FROM json_each('[1, 2]') WHERE value > 1]])")
        assert run.value == [{"value": 2}]
        assert box.run("return tools.tables().prices").value == {"net": "INTEGER", "gross": "INTEGER"}
        assert box.run("return tools.query('SELECT * FROM wild')[1]").value == {"number": "inf", "text": b"caf\xe9"}


def test_the_tables_of_postgresql(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as db:
        db.execute("CREATE TYPE mood AS ENUM ('ok')")
        db.execute("CREATE TABLE people (moods mood[], name VARCHAR(9), gone INTEGER)")
        db.execute("ALTER TABLE people DROP gone")
        db.execute("CREATE MATERIALIZED VIEW names AS SELECT name FROM people")
    with Sandbox(Toolbox.from_sql(postgres)) as box:
        tables = box.run("return tools.tables()").value
    assert tables["people"] == {"moods": "mood[]", "name": "character varying(9)"}
    assert tables["names"] == {"name": "character varying(9)"}
    assert not [name for name in tables if "pg_" in name]


@pytest.mark.parametrize(
    ("sql", "params", "value"),
    [
        ("SELECT 'infinity'::timestamp AS v", None, "infinity"),
        ("SELECT '-infinity'::timestamptz AS v", None, "-infinity"),
        ("SELECT 'infinity'::date AS v", None, "infinity"),
        ("SELECT '0044-03-15 BC'::date AS v", None, "0044-03-15 BC"),
        ("SELECT '12026-01-01'::date AS v", None, "12026-01-01"),
        ("SELECT '24:00'::time AS v", None, "24:00:00"),
        ("SELECT ARRAY['infinity'::date, '2026-01-02'] AS v", None, ["infinity", "2026-01-02"]),
        ("SELECT '2026-01-02'::date AS v", None, "2026-01-02"),
        ("SELECT (?::jsonb)->>'a' AS v", [{"a": 1}], "1"),
        ("SELECT (:what::json)->>'a' AS v", {"what": {"a": [2]}}, "[2]"),
    ],
)
def test_values_that_only_postgresql_has(postgres: str, sql: str, params: Any, value: Any) -> None:
    with Sandbox(Toolbox.from_sql(postgres)) as box:
        run = box.run("return tools.query(sql, values)[1].v", inputs={"sql": sql, "values": params})
    assert run.error is None
    assert run.value == value


def test_errors_of_postgresql_do_not_show_our_cursor(postgres: str) -> None:
    with Sandbox(Toolbox.from_sql(postgres)) as box:
        run = box.run("return tools.query('SELECT 1 FROM missing_table')")
    assert run.error is not None
    assert run.error.message == ("the statement failed: the database says: \"relation 'missing_table' does not exist\"")


def test_a_source_goes_on_when_its_connection_was_ended(postgres: str) -> None:
    import psycopg

    with Sandbox(Toolbox.from_sql(postgres)) as box, psycopg.connect(postgres, autocommit=True) as owner:
        assert box.run("return tools.query('SELECT 1 AS v')").value == [{"v": 1}]
        owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert box.run("return tools.query('SELECT 2 AS v')").value == [{"v": 2}]


def test_only_the_tables_that_are_offered(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as db:
        for name in ("orders", "order_lines", "secrets"):
            db.execute(f"CREATE TABLE {name} (id INTEGER)")
            db.execute(f"INSERT INTO {name} VALUES (1)")
        db.execute("CREATE VIRTUAL TABLE notes USING fts5(body)")
    db.close()
    url = f"sqlite:///{tmp_path}/shop.db"
    with Sandbox(Toolbox.from_sql(url)) as box:
        assert sorted(box.run("return tools.tables()").value) == ["notes", "order_lines", "orders", "secrets"]
    settings: list[dict[str, Any]] = [{"include": ["order*"]}, {"exclude": ["secrets", "notes", "sqlite_*"]}]
    for options in settings:
        with Sandbox(Toolbox.from_sql(url, **options)) as box:
            assert sorted(box.run("return tools.tables()").value) == ["order_lines", "orders"]
            assert box.run("return tools.query('SELECT o.id FROM orders AS o')").value == [{"id": 1}]
            fine = "WITH secrets AS (SELECT 2 AS id) SELECT id FROM secrets"
            assert box.run("return tools.query(sql)", inputs={"sql": fine}).value == [{"id": 2}]
            for attack in (
                "SELECT * FROM secrets",
                "SELECT * FROM main.secrets",
                'SELECT * FROM "SECRETS"',
                "SELECT * FROM orders WHERE id IN (SELECT id FROM Secrets)",
                "SELECT * FROM secrets, (WITH secrets AS (SELECT 2 AS id) SELECT id FROM secrets) AS x",
                "WITH a AS (SELECT * FROM secrets), secrets AS (SELECT 1) SELECT * FROM a",
                "WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets",
                "SELECT sql FROM sqlite_master",
            ):
                run = box.run("return tools.query(sql)", inputs={"sql": attack})
                assert run.error is not None, attack
                assert run.error.message.endswith("is not offered here"), run.error.message


def test_the_tables_of_duckdb_without_a_file_are_the_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "sales.csv").write_text("id,total\n1,2.5\n")
    (tmp_path / "deep" / "names.json").write_text('[{"name": "Ann"}]')
    (tmp_path / "notes.txt").write_text("x")
    with Sandbox(Toolbox.from_sql("duckdb://", folders=[str(tmp_path)])) as box:
        assert box.run("return tools.tables()").value == {
            "sales.csv": {"id": "BIGINT", "total": "DOUBLE"},
            "deep/names.json": {"name": "VARCHAR"},
        }


def test_sqlite_in_wal_mode_is_read_while_it_is_written(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "wal.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE t (id INTEGER)")
    with Sandbox(Toolbox.from_sql(f"sqlite:///{tmp_path}/wal.db")) as box:
        for count in range(1, 4):
            db.execute("INSERT INTO t VALUES (1)")
            assert box.run("return tools.query('SELECT count(*) AS n FROM t')").value == [{"n": count}]
        db.close()  # removes the two files beside it
        assert box.run("return tools.query('SELECT count(*) AS n FROM t')").value == [{"n": 3}]


def test_the_host_loads_no_parser_and_no_engine(url: str) -> None:
    program = (
        "import sys; from moonbox import Sandbox, Toolbox; box = Toolbox.from_sql(sys.argv[1]); "
        "print(len(box), sorted({'sqlglot', 'duckdb', 'psycopg', 'yaml', 'pypdf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True)
    assert done.stdout == "2 []\n"


def test_times_with_a_zone_in_duckdb() -> None:
    pytest.importorskip("pytz")
    with Sandbox(Toolbox.from_sql("duckdb://")) as box:
        run = box.run("return tools.query([[SELECT TIMESTAMPTZ '2026-01-01 12:00:00+00' AS t, now() AS n]])[1].t")
    assert run.error is None
    assert run.value.startswith("2026-01-01T") or run.value.startswith("2025-12-31T")


def test_the_catalog_has_the_columns_of_the_tables(box: Sandbox) -> None:
    with CodeMode(box, approvals=True) as mode:
        catalog = mode.definitions("mcp")[0]["description"].lower()
    assert "- query(sql: string, params?: " in catalog
    assert '- tables() -> {orders?: {id?: "integer", customer?: "' in catalog


def test_a_change_needs_approval(url: str, box: Sandbox) -> None:
    script = "return tools.execute{sql = 'UPDATE orders SET customer = ? WHERE id = 1', params = {'Anne'}}"
    assert box.run(script).error is None
    assert box.run("return tools.query('SELECT customer AS c FROM orders WHERE id = 1')[1].c").value == "Anne"
    assert box.run(script.replace("Anne", "Ann")).error is None
    assert "execute" not in Toolbox.from_sql(url)
    for attack in ("CREATE FUNCTION f() RETURNS int AS 'x'", "SELECT 1", "DELETE FROM orders; DROP TABLE orders"):
        refused = box.run("tools.execute(sql)", inputs={"sql": attack})
        assert refused.error is not None
        assert refused.error.code == "invalid", attack
    with Sandbox(Toolbox.from_sql(url, execute=True), approve=lambda *_: False) as other:
        run = other.run(script)
    assert run.error is not None
    assert run.error.kind == "denied"


@pytest.mark.parametrize("bound", [{"max_rows": 1}, {"max_bytes": 10}], ids=["rows", "bytes"])
def test_results_are_bounded(url: str, bound: dict[str, Any]) -> None:
    with Sandbox(Toolbox.from_sql(url, **bound)) as box:
        run = box.run("return tools.query('SELECT * FROM orders')")
    assert run.error is not None
    assert run.error.code == "result_too_large"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_duckdb_reads_files_of_granted_folders(tmp_path: Path, suffix: str) -> None:
    import duckdb

    (tmp_path / "data").mkdir()
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT 1 AS id, 12.5 AS total) TO '{tmp_path}/data/sales.{suffix}'")
    with Sandbox(Toolbox.from_sql("duckdb://", folders=[str(tmp_path / "data")])) as box:
        run = box.run(f"return tools.query([[SELECT * FROM 'sales.{suffix}']])")
        assert run.error is None
        assert run.value == [{"id": 1, "total": 12.5}]
        run = box.run(f"return tools.query([[SELECT * FROM read_{suffix}('{tmp_path}/data/*.{suffix}')]])")
        assert run.value == [{"id": 1, "total": 12.5}]
        run = box.run(f"return tools.query([[SELECT 'sales.{suffix}' AS name FROM read_{suffix}('sales.{suffix}')]])")
        assert run.value == [{"name": f"sales.{suffix}"}]


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("mysql://x", {}, "the url of a database must be"),
        ("sqlite:///none.db", {}, "the database cannot be used"),
        ("sqlite:///none.db", {"folders": ["x"]}, "only DuckDB reads files"),
        ("sqlite:///none.db", {"max_rows": 0}, "max_rows must be more than 0"),
        ("postgresql://me:hush-hush@127.0.0.1:1/x", {}, "the database cannot be used"),
        ("postgresql://me:hush-hush@[::1/x", {}, "the url of a database must be"),
    ],
)
def test_bad_settings(url: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Toolbox.from_sql(url, **options)
    assert "hush-hush" not in str(caught.value)
