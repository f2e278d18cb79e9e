"""What only PostgreSQL takes for a call: names after a dot, and names that are known elsewhere as harmless functions.

PostgreSQL takes `a.f`, where `a` has no column `f`, as a call `f(a)`. So a name that a function or a type has, too, is
refused unless all relations that have the name before the dot are known to have that column.

The parser knows the functions of many databases. One that PostgreSQL does not have may be one of the database's owner,
and do anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.dialects import Postgres
from sqlglot.tokenizer_core import TokenType

from moonbox.errors import ArgumentError
from moonbox.wording import one_line

if TYPE_CHECKING:
    from moonbox.sources.databases import PostgresDatabase

_DEEPEST = 20
_LONGEST_NAME = 63  # bytes; the rest of a name is cut off
_BEFORE_A_NAME = frozenset({"AS", "WITH", "RECURSIVE", "INTO"})
"""Words after which a name is that of a relation, and what is in parentheses behind it are its columns."""
_OF_CHANGES = frozenset({"excluded", "old", "new"})


def check_calls(tree: Any, text: str, catalog: PostgresDatabase, allowed: Collection[str]) -> None:
    """Raise ArgumentError where the text, which the parser wrote from the tree, may call a function that is unknown.

    `allowed` are names of functions of the owner that may be called, in capitals.
    """
    tokens = Postgres().tokenize(text)
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if following.token_type == TokenType.L_PAREN and not (before and before.text.upper() in _BEFORE_A_NAME):
            name = _of_token(token)
            if name in catalog.owned and name.upper() not in allowed:
                raise ArgumentError(f"the function {one_line(name, 80)} is not allowed")
    dotted = Counter(_of_token(name) for dot, name in pairwise(tokens) if dot.token_type == TokenType.DOT)
    if not dotted.keys() & (callables := catalog.callables):
        return
    known = _Relations(tree, catalog)
    for node in tree.walk():
        names = [node.args.get(part) for part in ("this", "table", "db", "catalog")]
        if isinstance(node, exp.Column):
            if _name(names[0]) in callables and names[1] is not None and known.is_column(node):
                dotted[_name(names[0])] -= 1
            dotted.subtract(_name(part) for part, before in pairwise(names[1:]) if before)
        elif isinstance(node, exp.Table) and isinstance(names[0], exp.Identifier):
            parts = [part for part in (names[0], names[2], names[3]) if part]
            dotted.subtract(map(_name, parts[:-1]))
        elif isinstance(node, exp.DataType):
            dotted.subtract(_name(dot.expression) for dot in node.find_all(exp.Dot))
    for name, count in dotted.items():
        if count > 0 and name in callables:
            words = "is the name of a function or type; as a column it must be known: give it another name with AS"
            raise ArgumentError(f"the name '{one_line(name, 80)}' after a dot {words}")


def _of_token(token: Any) -> str:
    return _cut(token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower())


def _name(node: Any) -> str:
    if not isinstance(node, exp.Identifier):
        return ""
    return _cut(node.this if node.args.get("quoted") else node.this.lower())


def _cut(name: str) -> str:
    return name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore")


class _Relations:
    """The relations of a statement by their names, wherever in it they are."""

    def __init__(self, tree: Any, catalog: PostgresDatabase) -> None:
        self._catalog = catalog
        self._named: dict[str, list[Any]] = {}
        self._queries: dict[str, list[Any]] = {}
        for node in tree.walk():
            if isinstance(node, exp.CTE):
                self._queries.setdefault(_alias(node), []).append(node)
            elif isinstance(node, exp.Table | exp.Subquery | exp.Lateral | exp.Unnest | exp.Values):
                self._named.setdefault(_alias(node), []).append(node)
            elif isinstance(node, exp.Insert | exp.Update | exp.Delete | exp.Merge):
                target = node.this.this if isinstance(node.this, exp.Schema) else node.this
                for name in _OF_CHANGES:
                    self._named.setdefault(name, []).append(target)

    def is_column(self, column: Any) -> bool:
        relations = self._named.get(_name(column.args["table"]), [])
        return bool(relations) and all(self._has(relation, _name(column.this), 0) for relation in relations)

    def _has(self, relation: Any, name: str, depth: int) -> bool:
        """Whether a relation certainly has a column of that name."""
        alias = relation.args.get("alias")
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if columns:
            return name in {_name(part.this if isinstance(part, exp.ColumnDef) else part) for part in columns}
        if depth > _DEEPEST:
            return False
        if isinstance(relation, exp.CTE | exp.Subquery | exp.Lateral):
            return self._gives(relation.this, name, depth + 1)
        if not isinstance(relation, exp.Table) or not isinstance(relation.this, exp.Identifier):
            return False
        schema, table = _name(relation.args.get("db")), _name(relation.this)
        queries = [] if schema else self._queries.get(table, [])
        columns = self._catalog.columns_of(schema, table)
        if not queries or columns:  # where both are there, either may be meant
            return name in columns and all(self._has(query, name, depth + 1) for query in queries)
        return all(self._has(query, name, depth + 1) for query in queries)

    def _gives(self, query: Any, name: str, depth: int) -> bool:
        """Whether a query certainly has a result column of that name."""
        while isinstance(query, exp.Subquery | exp.SetOperation):
            query = query.this
        if isinstance(query, exp.Insert | exp.Update | exp.Delete | exp.Merge):
            query = query.args.get("returning")
        if not isinstance(query, exp.Select | exp.Returning):
            return False
        for part in query.expressions:
            if isinstance(part, exp.Alias) and _name(part.args.get("alias")) == name:
                return True
            star = part.this if isinstance(part, exp.Column) else part
            if isinstance(star, exp.Star):
                owner = _name(part.args.get("table"))
                direct = [one for one in _direct(query) if not owner or _alias(one) == owner]
                if any(self._has(one, name, depth + 1) for one in direct):
                    return True
            elif isinstance(part, exp.Column) and _name(part.this) == name:
                return True
        return False


def _direct(query: Any) -> Iterable[Any]:
    """What stands in FROM and in JOIN of a query itself."""
    source = query.args.get("from_")
    return [part.this for part in ([source] if source else []) + list(query.args.get("joins") or [])]


def _alias(node: Any) -> str:
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.this is not None:
        return _name(alias.this)
    return _name(node.this) if isinstance(node, exp.Table) else ""
