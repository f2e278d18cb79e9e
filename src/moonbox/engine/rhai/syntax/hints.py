"""Hints for syntax errors: what those who know another language meant to write."""

from __future__ import annotations

__all__ = ["hint_for"]

_RESERVED = {
    "null": "Rhai has no null: the empty value is ()",
    "nil": "Rhai has no nil: the empty value is ()",
    "void": "Rhai has no void: the empty value is ()",
    "var": "declare a variable with let",
    "match": "write switch x { 1 => ..., _ => ... }",
    "case": "write switch x { 1 => ..., _ => ... }",
    "default": "the default case of a switch is _ => ...",
    "new": "there are no classes: make an object map with #{name: value}",
    "async": "a tool call waits for its result by itself; parallel([|| a(1), || b(2)]) runs calls together",
    "await": "a tool call waits for its result by itself; parallel([|| a(1), || b(2)]) runs calls together",
    "this": "this is bound in functions that are called as a method, x.f()",
    "++": "write x += 1",
    "--": "write x -= 1",
    "?": "write if condition { a } else { b }; for a default value a ?? b",
    "@": "there are no decorators or annotations",
    "$": "put values into text with backticks: `total: ${x}`",
    "#": "an object map is written #{name: value}; a comment starts with //",
    "~": "there is no bitwise not: write x ^ -1",
    "|>": "nest the calls: g(f(x))",
}
_AFTER_NAME = {
    "and": "write && for and",
    "or": "write || for or",
    "not": "write ! for not",
    "elif": "write else if",
    "elsif": "write else if",
    "then": "write if condition { ... }",
    "def": "define a function with fn name(a, b) { ... }",
    "function": "define a function with fn name(a, b) { ... }, an anonymous one with |a, b| a + b",
    "func": "define a function with fn name(a, b) { ... }",
    "local": "declare a variable with let",
    "int": "there are no types in declarations: write let x = 1",
    "foreach": "write for item in list { ... }",
    "lambda": "write an anonymous function as |x| x + 1",
    "mut": "every variable can be changed: write let x = 1",
    "f": "put values into text with backticks: `total: ${x}`",
}


def hint_for(message: str, near: list[str]) -> str | None:
    """What to write instead, judged by the message and the tokens before it."""
    for word, hint in _RESERVED.items():
        if f"'{word}' is a reserved" in message or f"operator: '{word}'" in message:
            return hint
    for word in reversed(near):
        if word in _AFTER_NAME:
            return _AFTER_NAME[word]
    if "to separate the parameters of" in message and near and near[-1] == ":":
        return "parameters have no types: write fn f(a, b) { ... }"
    if message.startswith("Expecting parameters") or "Expecting body statement block" in message:
        return "a function is written fn name(a, b) { ... }, without types"
    if message == "Unexpected ')'" and near[-1:] == [")"]:
        return "the empty value is written () without a space between"
    if "Variable name is not proper" in message:
        return "names start with a letter"
    return None
