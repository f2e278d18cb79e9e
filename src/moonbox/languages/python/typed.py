"""Which findings of Monty's type checker are certain to fail: it also reports what only may fail."""

from __future__ import annotations

import ast
import re

from moonbox.languages.python.rewriting import parsed

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_CODES = frozenset({"unresolved-attribute", "unsupported-operator", "not-iterable", "call-non-callable"})
_TYPES = re.compile(r"(?:type|and) `([^`]*)`")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_UNKNOWN_KEY = re.compile(r'Unknown key "([^"]*)" for TypedDict')
_ASSIGNS = re.compile(r"Operator `(?:[-+*/%@&|^]|//|\*\*|<<|>>)=`")  # of one of several types that the target has
_RESULTS = re.compile(r"^class (\w+)\(TypedDict\)", re.MULTILINE)
_NUMBERS = frozenset({"int", "float", "bool"})
_PLAIN = _NUMBERS | {"str", "bytes", "list", "dict", "tuple", "set", "Literal"}


def certain_findings(
    findings: Iterable[Mapping[str, Any]], script: str, stubs: Iterable[str]
) -> list[Mapping[str, Any]]:
    """Those that name a value of one type alone, which the script cannot have changed.

    A type of several (`str | None`) fails only for some of them. None is what a script begins with. An object of the
    script's own class may get attributes at any time.
    """
    tree = parsed(script)
    if tree is None:
        return []
    known = _PLAIN | {name for stub in stubs for name in _RESULTS.findall(stub)}
    asks = any(isinstance(node, ast.Name) and node.id in ("hasattr", "getattr") for node in ast.walk(tree))
    mentioned = _mentioned_keys(tree)
    # Where `x[0].name` stands: a list of numbers may hold other things later.
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    elements = {(node.lineno, node.col_offset + 1) for node in nodes if isinstance(node.value, ast.Subscript)}

    def is_certain(finding: Mapping[str, Any]) -> bool:
        code, message, place = finding["code"], finding["message"], finding["location"]
        if code == "invalid-key":
            key = _UNKNOWN_KEY.match(message)
            return key is not None and key[1] not in mentioned
        types = _TYPES.findall(message)
        if code not in _CODES or not types or _ASSIGNS.match(message) or "in union" in message:
            return False
        is_element = (place["row"], place["column"]) in elements
        is_number = types[0] in _NUMBERS or types[0].startswith("Literal[")
        if code == "unresolved-attribute" and (asks or (is_element and is_number)):
            return False
        return all(_is_one_of(type_, known) for type_ in types)

    return [finding for finding in findings if is_certain(finding)]


def _is_one_of(type_: str, known: Iterable[str]) -> bool:
    """Whether it is a single type of these names."""
    if type_.startswith("Literal[") and "," in type_:
        return False
    while (outer := _BRACKETS.sub("", type_)) != type_:
        type_ = outer
    return type_ in known


def _mentioned_keys(tree: ast.Module) -> set[str | None]:
    """Texts that the script has elsewhere than in `x["key"]` that is read: it may set such a key, or ask for it."""
    nodes = list(ast.walk(tree))
    read = {id(node.slice) for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in read}
    return {text for text in texts if isinstance(text, str)} | {
        node.arg for node in nodes if isinstance(node, ast.keyword)
    }
