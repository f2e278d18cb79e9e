"""Hints for syntax errors: what those who know another language meant to write."""

from __future__ import annotations

import re

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
_BEFORE = {
    "and": "write && for and",
    "or": "write || for or",
    "not": "write ! for not",
    "elif": "write else if",
    "elsif": "write else if",
    "unless": "write if !condition { ... }",
    "then": "write if condition { ... }",
    "def": "define a function with fn name(a, b) { ... }",
    "function": "define a function with fn name(a, b) { ... }, an anonymous one with |a, b| a + b",
    "func": "define a function with fn name(a, b) { ... }",
    "local": "declare a variable with let",
    "int": "there are no types in declarations: write let x = 1",
    "foreach": "write for item in list { ... }",
    "lambda": "write an anonymous function as |x| x + 1",
    "mut": "every variable can be changed: write let x = 1",
    "class": "there are no classes: make an object map with #{name: value}",
    "struct": "there are no structs: make an object map with #{name: value}",
    "raise": "write throw value",
    "except": "write try { ... } catch (e) { ... }",
    "typeof": "write type_of(x)",
    "delete": 'write map.remove("key")',
    "del": 'write map.remove("key")',
}
# A part of the message, the tokens up to the error, and what to write.
_RULES = (
    ("", r'\bf "[^"]*"$', "put values into text with backticks: `total: ${x}`"),
    ("parameters of", r":$", "parameters have no types: write fn f(a, b) { ... }"),
    ("parameters of", r"=$", "parameters have no default values"),
    ("terminate", r"\b(let|const) \w+ :$", "there are no types in declarations: write let x = 1"),
    ("", r'\{ ("[^"]*"|\w+) :$', "an object map is written #{name: value}"),
    ("to follow the property", "", "an object map is written #{name: value}"),
    ("iteration variable", "", "write for i in 0..n { ... }, or for (item, index) in list { ... }"),
    ("", r"[)|] =>$", "an anonymous function is written |x| x + 1"),
    ("Unexpected 'fn'", "", "an anonymous function is written |x| x + 1"),
    ("terminate", r"\blet .* ,$", "declare one variable in each let"),
    ("terminate", r"\bif$", "a choice between values is written if condition { a } else { b }"),
    ("terminate", r"\bas$", "there are no casts: write x.to_int(), x.to_float() or x.to_string()"),
    ("name of a variable", r"\blet [\[({]$", "take the parts one by one: let a = list[0];"),
    ("Invalid character: '", "", 'text is written in double quotes, "abc"; single quotes hold one character'),
    ("Unexpected '&'", "", "there are no references: write the name alone"),
    ("index expression", r":$", "a part of a list or text is taken with a range: list.extract(1..3), text[1..3]"),
    ("", r"\[ .*\bfor$", "there are no comprehensions: write list.map(|x| ...) or list.filter(|x| ...)"),
    ("", r"\.\.\.$|\.\.\. \w+$", "there is no spread: arrays and maps are joined with +"),
    ("Unexpected '='", r"(\|\||\?\?|&&) =$", "write x = x ?? y"),
    ("Unexpected ')'", r"\( \)$", "the empty value is written () without a space between"),
    ("Unexpected 'try'", "", "try has no value: declare the variable before it and assign to it inside"),
    ("Expecting parameters", "", "a function is written fn name(a, b) { ... }, without types"),
    ("Expecting body statement block", "", "a function is written fn name(a, b) { ... }, without types"),
    ("start a statement block", "", "the body of if, for, while, try and fn is a block: { ... }"),
    ("Variable name is not proper", "", "names start with a letter"),
)


def hint_for(message: str, near: list[str]) -> str | None:
    """What to write instead, judged by the message and the tokens before it."""
    for word, hint in _RESERVED.items():
        if f"'{word}' is a reserved" in message or f"operator: '{word}'" in message:
            return hint
    for word in reversed(near):
        if word in _BEFORE:
            return _BEFORE[word]
    tokens = " ".join(token[:40] for token in near)
    for part, pattern, hint in _RULES:
        if part in message and re.search(pattern, tokens):
            return hint
    return None
