"""SQL statements of scripts, checked before a database sees them: one statement, of a known kind, with known functions.

What runs is the text that the parser writes from what it has read, so that a database cannot read it differently.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from moonbox.errors import ArgumentError
from moonbox.wording import one_line

if TYPE_CHECKING:
    from moonbox.sources.databases import PostgresDatabase

CHANGES = "INSERT, UPDATE, DELETE, MERGE, CREATE, ALTER or DROP"
_LONGEST = 100_000
_FILE_READERS = frozenset({"READ_CSV", "READ_PARQUET", "READ_CSV_AUTO", "READ_JSON", "READ_JSON_AUTO", "PARQUET_SCAN"})
_REFUSED = frozenset({"REPEAT", "PAD", "SPACE", "NEXT_VALUE_FOR"}) | _FILE_READERS
"""Functions that the parser knows, but that make huge values, change something, or read files."""
_FILE = re.compile(r"[^/:][^:]*\.(csv|tsv|parquet|json|jsonl|ndjson)(\.gz)?", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\?(?![|&](?!\|))")
"""Not the operators `?|` and `?&` of PostgreSQL, but the first character of `?||`."""
_OBJECTS = (None, "TABLE", "VIEW", "INDEX")


class Statement(NamedTuple):
    """A statement that may run, and its values in the form that its database takes."""

    text: str
    values: Any
    streams: bool
    """Whether its rows can be read piece by piece."""


@functools.cache
def _known() -> frozenset[str]:
    """Functions that the parser does not know, and that are harmless. Every other one is refused."""
    return frozenset(Path(__file__).with_name("functions.txt").read_text("ascii").upper().split())


def check(
    sql: str,
    params: Any,
    dialect: str,
    *,
    functions: Collection[str],
    folders: Sequence[str],
    write: bool,
    allowed: tuple[Sequence[str], Sequence[str]] = ((), ()),
    catalog: PostgresDatabase | None = None,
) -> Statement:
    """Raises ArgumentError for every statement that is not known to be harmless, or with `write` to be a change.

    `allowed` are the patterns of tables that it may name, and of those that it may not. `catalog` knows a database that
    has functions of its owner, and calls functions by a dot.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel, SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # its warnings quote what a script wrote, as it is
    if len(sql) > _LONGEST or "\0" in sql:
        raise ArgumentError(f"the statement must have at most {_LONGEST:,} characters, and no zero byte")
    explain = re.match(r"\s*explain\s+(?:query\s+plan\s+)?", sql, re.IGNORECASE)
    try:
        body = sql[explain.end() :] if explain else sql
        trees = [tree for tree in sqlglot.parse(_numbered(body, dialect, params), dialect=dialect) if tree is not None]
        tree = _allowed(trees, exp, write=write)
        permitted = {name.upper() for name in functions}
        known = _known() | permitted
        for node in list(tree.walk()):
            _check_node(node, exp, known, dialect, folders, write)
        if any(allowed):
            for table in tree.find_all(exp.Table):
                _check_table(table, exp, *allowed)
        values = _values(tree, exp, params, dialect)
        text = tree.sql(dialect=dialect, comments=False, unsupported_level=ErrorLevel.RAISE)
        if catalog is not None:
            from moonbox.sources.calls import check_calls

            check_calls(tree, text, catalog, permitted)
    except (SqlglotError, RecursionError) as problem:
        words = re.sub(r"\x1b\[\d*m", "", str(problem))
        raise ArgumentError(f"the statement cannot be read as {dialect}: {one_line(words, 300)}") from None
    return Statement(f"{explain[0]}{text}" if explain else text, values, not explain and not write)


def _allowed(trees: list[Any], exp: Any, *, write: bool) -> Any:
    """The statement, if it is the only one, and of a kind that is allowed."""
    if len(trees) != 1:
        raise ArgumentError(f"give exactly one statement, not {len(trees)}")
    tree: Any = trees[0]
    changes = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Alter, exp.Drop)
    if not isinstance(tree, changes if write else exp.Query | exp.Values):
        wanted = CHANGES if write else "SELECT, WITH, VALUES or EXPLAIN"
        raise ArgumentError(f"only {wanted} is allowed here, not {tree.key.upper()}")
    if write and tree.args.get("kind") not in _OBJECTS:
        raise ArgumentError(f"only tables, views and indexes can be changed, not {tree.args['kind']}")
    return tree


def _check_node(node: Any, exp: Any, known: frozenset[str], dialect: str, folders: Sequence[str], write: bool) -> None:
    if isinstance(node, exp.DML | exp.DDL) and not isinstance(node, exp.Query) and not write:
        raise ArgumentError(f"a query cannot contain {node.key.upper()}")
    if isinstance(node, exp.Command | exp.Into | exp.Lock | exp.Copy | exp.Pragma | exp.Attach | exp.Set):
        raise ArgumentError(f"{node.key.upper()} is not allowed")
    if isinstance(node, exp.Func):
        own = isinstance(node, exp.Anonymous | exp.AnonymousAggFunc)
        name = (node.name if own else node.sql_name()).upper()
        is_file = name in _FILE_READERS
        if is_file and not folders:
            raise ArgumentError(f"the function {one_line(name, 80)} reads files, and no folder is granted")
        placed = isinstance(node.parent, exp.Dot)  # in a schema, whose functions are unknown
        if placed or (not is_file and name not in known and (own or name in _REFUSED)):
            raise ArgumentError(f"the function {one_line(name, 80)} is not allowed")
        for text in node.find_all(exp.Literal) if is_file else ():
            text.set("this", _whole(text.this, folders))
    if folders and isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        node.this.set("this", _whole(node.name, folders))
    place = f"{node.db}.{node.name}".lower() if isinstance(node, exp.Table) and dialect == "postgres" else ""
    if place.startswith(("pg_catalog.", ".pg_")):
        raise ArgumentError("tables of pg_catalog are not allowed; information_schema is")


def _check_table(table: Any, exp: Any, include: Sequence[str], exclude: Sequence[str]) -> None:
    """Raise ArgumentError for a table that the settings leave out. The names of earlier parts of WITH are no tables."""
    name = ".".join(part.name for part in table.parts if isinstance(part, exp.Identifier)).lower()
    if not name or is_file(name) or is_included(name, include, exclude):
        return
    if not table.db and _is_named_by_with(table):
        return
    raise ArgumentError(f"the table {one_line(name, 80)} is not offered here")


def _is_named_by_with(table: Any) -> bool:
    """Whether a name is that of a query of WITH, from where it stands."""
    chain = [table]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    for place, node in enumerate(chain):
        clause = node.args.get("with_")
        if clause is None:
            continue
        own = chain[place - 2] if clause is chain[place - 1] else None  # it is inside of this query of the clause
        for query in clause.expressions:
            if query is own and not clause.args.get("recursive"):
                break
            if _exact(query.args["alias"].this) == _exact(table.this):
                return True
    return False


def _exact(identifier: Any) -> str:
    return str(identifier.this if identifier.args.get("quoted") else identifier.this.lower())


def is_included(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a table is offered. Patterns are names of tables, also with their schema, or `schema.*`."""
    schema, _, table = name.lower().rpartition(".")
    names = {name.lower(), f"{schema or 'public'}.{table}", f"{schema or 'main'}.{table}"}
    names |= {table} if schema in ("", "public", "main") else set()
    said = [[pattern.lower() for pattern in patterns] for patterns in (include, exclude)]
    matches = [any(fnmatchcase(one, pattern) for one in names for pattern in patterns) for patterns in said]
    return (not include or matches[0]) and not matches[1]


def is_file(name: str) -> bool:
    """Whether it is the name of a file that DuckDB reads."""
    return _FILE.fullmatch(name) is not None


def _whole(name: str, folders: Sequence[str]) -> str:
    """A file that is named relative to a granted folder, by its whole path; the database checks where it is."""
    if not is_file(name):
        return name
    found = (f"{folder}/{name}" for folder in folders if Path(folder, name).exists())
    return next(found, f"{folders[0]}/{name}")


def _numbered(sql: str, dialect: str, params: Any) -> str:
    """With a list of values, `?` becomes `$1`, `$2` and so on, in the order of the text.

    PostgreSQL has no other form, and the parser takes `?::` for an operator. Without a list, `?` is an operator too.
    """
    if dialect == "sqlite" or not params or isinstance(params, dict):
        return sql
    from sqlglot.dialects.dialect import Dialect

    pieces, done, number = [], 0, 0
    for token in Dialect.get_or_raise(dialect).tokenize(sql):
        if _PLACEHOLDER.match(sql, token.start):
            number += 1
            pieces += [sql[done : token.start], f" ${number} "]  # `$1,$` would begin a quoted text
            done = token.start + 1
    return "".join([*pieces, sql[done:]])


def _values(tree: Any, exp: Any, params: Any, dialect: str) -> Any:
    """The values of `?` as a list, those of `:name` as a mapping; PostgreSQL has a list of both kinds."""
    names: list[str] = []
    for node in list(tree.find_all(exp.Placeholder)):
        in_list = bool(params) and (node.name == "?" or node.name.isdecimal())
        if node.name not in params if isinstance(params, dict) else not in_list:
            name = "?" if node.name == "?" else f":{node.name}"
            raise ArgumentError(f"the parameter {one_line(name, 80)} has no value in params")
        names += [] if node.name in names else [node.name]
        if dialect == "postgres":
            node.replace(exp.Parameter(this=exp.Literal.number(names.index(node.name) + 1)))
    if not isinstance(params, dict):
        return list(params or ())
    return [params[name] for name in names] if dialect == "postgres" else {name: params[name] for name in names}
