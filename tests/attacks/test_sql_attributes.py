"""Functions of PostgreSQL that a query must not call, as a superuser and as an ordinary role.

By a dot, `a.f` for `f(a)`, or because a function of the database's owner has a name that is harmless elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, Toolbox
from tests.long import LONG
from tests.postgres import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

psycopg = pytest.importorskip("psycopg")
__all__ = ["postgres"]
REFUSED = "after a dot is the name of a function or type; as a column it must be known: give it another name with AS"
FORMS = [
    "SELECT f.{} FROM unnest(ARRAY['/etc/passwd'::text]) AS f",
    'SELECT f."{}" FROM unnest(ARRAY[1]) AS f',
    "SELECT ('/etc/passwd'::text).{}",
    "SELECT (ARRAY['/etc/passwd'::text])[1].{}",
    "SELECT 1 FROM things AS f WHERE f.{} IS NULL",
    "SELECT f.{} FROM things, unnest(ARRAY['x']) AS f",
    "SELECT count(*) FROM things f GROUP BY f.{}",
    "SELECT (f).{} FROM things f",
    "SELECT public.things.{} FROM things",
    "SELECT (SELECT things.{} FROM unnest(ARRAY['x']) AS things) FROM things",
    "SELECT 1 AS v FROM things a JOIN unnest(ARRAY['x']) f ON f.{} = a.id::text",
    "SELECT max(1) OVER (ORDER BY f.{}) FROM unnest(ARRAY['x']) AS f",
    "WITH f AS (SELECT '/etc/passwd'::text AS a) SELECT f.{} FROM f",
    "SELECT f.* FROM (SELECT g.{} FROM unnest(ARRAY['x']) AS g) AS f",
    "SELECT (r.a).{} FROM (SELECT '/etc/passwd'::text AS a) AS r",
    "SELECT f . {} FROM unnest(ARRAY['x']) AS f",
    "SELECT f./* */{} FROM unnest(ARRAY['x']) AS f",
    "VALUES ((SELECT f.{} FROM unnest(ARRAY['x']) AS f))",
    "SELECT (CAST(NULL AS things)).{}",
]
OWNED = ["search", "total", "shuffle", "Lower", "encrypt", "to_file"]
"""Names that the parser or our list knows, and that no function of PostgreSQL has."""
CALLS = [
    "SELECT {}('x', 'y')",
    "SELECT 1 FROM things WHERE length({}('x', 'y')) > {}('a', 'b')::int",
    "SELECT * FROM {}('x', 'y')",
    "SELECT count(*) FROM things ORDER BY max({} /* */ ('x', 'y'))",
    "WITH a AS (SELECT {}('x', 'y') AS v) SELECT v FROM a",
]
NAMES = ["pg_read_file", "PG_LS_DIR", "pg_terminate_backend", "lo_import", "current_setting", "pg_sleep", "danger"]


@pytest.fixture(scope="module", params=["superuser", "ordinary"])
def address(request: pytest.FixtureRequest, postgres: str) -> str:
    with psycopg.connect(postgres) as db:
        db.execute("CREATE TABLE IF NOT EXISTS things (id INTEGER, name TEXT, count INTEGER)")
        db.execute("TRUNCATE things")
        db.execute("INSERT INTO things VALUES (1, 'one', 7)")
        db.execute(
            "CREATE OR REPLACE FUNCTION danger(text) RETURNS text LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''danger was called''; END'"
        )
        for name in OWNED:
            db.execute(
                f'CREATE OR REPLACE FUNCTION "{name}"(text, text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS '
                "'BEGIN RAISE EXCEPTION ''danger was called''; END'"
            )
        if request.param == "ordinary":
            db.execute("DROP OWNED BY reader") if _has_reader(db) else db.execute("CREATE ROLE reader LOGIN")
            db.execute("GRANT SELECT ON things TO reader")
    return postgres if request.param == "superuser" else postgres.replace("moonbox@", "reader@")


@pytest.fixture(scope="module")
def box(address: str) -> Iterator[Sandbox]:
    limits = Limits(timeout=120, max_tool_calls=10_000)
    with Sandbox(Toolbox.from_sql(address, timeout=20), limits=limits) as box:
        yield box


def _has_reader(db: Any) -> bool:
    return bool(db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchall())


@pytest.mark.parametrize("form", FORMS)
def test_a_dot_calls_no_function(box: Sandbox, form: str) -> None:
    for name in NAMES:
        run = box.run("return tools.query(sql)", inputs={"sql": form.format(name)})
        assert run.error is not None, run.value
        assert run.error.code == "invalid"
        if name.islower() or '"' not in form:
            assert run.error.message == f"the name '{name.lower()}' {REFUSED}"


@pytest.mark.parametrize("form", CALLS)
@pytest.mark.parametrize("name", OWNED)
def test_a_function_of_the_owner_is_not_called_for_its_name(box: Sandbox, name: str, form: str) -> None:
    for written in (f'"{name}"', name) if name.islower() else (f'"{name}"',):
        run = box.run("return tools.query(sql)", inputs={"sql": form.replace("{}", written)})
        assert run.error is not None
        assert (run.error.code, "danger" in run.error.message) == ("invalid", False), run.error


def test_a_function_of_the_owner_that_the_settings_name_is_called(address: str) -> None:
    with Sandbox(Toolbox.from_sql(address, functions=["search"])) as box:
        run = box.run("return tools.query[[SELECT search('x', 'y') AS v]]")
        assert run.error is not None and "danger was called" in run.error.message
        assert box.run("return tools.query[[SELECT s.v FROM (SELECT 1) AS search(v), (SELECT 2) AS s(v)]]").ok


def test_every_function_of_one_argument(box: Sandbox, postgres: str) -> None:
    with psycopg.connect(postgres) as db:
        names = [name for (name,) in db.execute("SELECT DISTINCT proname::text FROM pg_proc WHERE pronargs = 1")]
    script = """local passed = {}
    for _, name in ipairs(names) do
      for _, form in ipairs(forms) do
        local ok, e = pcall(tools.query, (form:gsub('{}', function() return name end)))
        if ok or not e.message:find(refused, 1, true) then passed[#passed + 1] = name end
      end
    end
    return passed"""
    forms = ["SELECT f.\"{}\" FROM unnest(ARRAY['x'::text]) AS f", "SELECT ('x'::text).\"{}\""]
    assert len(names) > 500
    names = names[:: 1 if LONG else 20]
    run = box.run(script, inputs={"names": names, "forms": forms, "refused": REFUSED})
    assert run.error is None
    assert run.value == []


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT things.name, t.count FROM things JOIN things t ON t.name = things.name", {"name": "one", "count": 7}),
        ("SELECT public.things.name FROM public.things", {"name": "one"}),
        ("SELECT s.name FROM (SELECT * FROM things) AS s", {"name": "one"}),
        ("SELECT s.name FROM (SELECT t.* FROM things t) AS s", {"name": "one"}),
        ("WITH c AS (SELECT name, count(*) AS count FROM things GROUP BY name) SELECT c.count FROM c", {"count": 1}),
        ("SELECT v.text FROM (VALUES ('a')) AS v(text)", {"text": "a"}),
        ("SELECT f.date FROM unnest(ARRAY['a']) AS f(date)", {"date": "a"}),
        ("SELECT x.id FROM things x ORDER BY x.name", {"id": 1}),
        ("SELECT u.name FROM (SELECT name FROM things UNION ALL SELECT 'b') AS u LIMIT 1", {"name": "one"}),
    ],
)
def test_columns_that_have_the_name_of_a_function(box: Sandbox, sql: str, value: dict[str, object]) -> None:
    run = box.run("return tools.query(sql)[1]", inputs={"sql": sql})
    assert run.error is None
    assert run.value == value
