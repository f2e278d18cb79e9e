"""The words of Rhai, and hints for its errors: its functions, and what other languages write; see vocabulary.toml."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING

from moonbox.languages.explanations import explain_translated
from moonbox.languages.facts import by_word, filled
from moonbox.languages.program import Vocabulary
from moonbox.languages.tables import table
from moonbox.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from moonbox.errors import ScriptError
    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

_NOT_FOUND = re.compile(r"Function not found: ([A-Za-z_]\w{0,60}) \(?")
_ON_NOTHING = re.compile(r"Function not found: ([-+*/%<>=!]{1,3}) \((?:\(\)|\(\), .{1,40}|.{1,40}, \(\))\)")
_NOT_NOTHING = "a missing value is (), which is not false: write x == ()"
_WITH_NOTHING = "one of the values is missing, (): give it a default, as in (x ?? 0) + 1"
_NO_VARIABLE = re.compile(r"Variable not found: ([A-Za-z_]\w{0,60})\b")
_DECLARED = re.compile(r"\b(?:let|const|fn)\s{1,20}([A-Za-z_]\w{0,60})")
_ASSIGNED = re.compile(r"[A-Za-z_]\w{0,60}\s*=(?!=)[^;\n]{1,80}")
_MACRO = re.compile(r"'([A-Za-z_]\w{0,60})!' cannot run")
_RESERVED = re.compile(r"'([A-Za-z_]\w{0,60})' is a reserved keyword")
_KEY_BEFORE = re.compile(r"(?:#\{|,)\s*\Z")
_FARTHEST = 20_000  # characters of a script that are searched for names
_RECURSION = "a function calls itself too often: add a case that returns without another call, or use a loop"


@cache
def rhai_words() -> dict[str, dict[str, str]]:
    """What `vocabulary.toml` holds."""
    return by_word(table("rhai/vocabulary.toml"))


def _advice(name: str, called: bool, arguments: tuple[str, ...] = ()) -> str | None:
    """What to write for a function or a name of another language."""
    return rhai_words()["foreign_functions" if called else "foreign_names"].get(name)


def _method_advice(name: str, receiver: str, arguments: tuple[str, ...]) -> str | None:
    """What to write for a method of another language."""
    form = rhai_words()["foreign_methods"].get(name)
    known = [argument if argument != "…" else "" for argument in (*arguments, "", "")]  # "…" is a closure
    closure = known[1] or ("|total, x| …" if len(arguments) > 1 else "|total, x| total + x")
    return form and filled(form, {"self": receiver, "0": known[0] or "x", "closure": closure})


@cache
def rhai_vocabulary() -> Vocabulary:
    """The words of Rhai as scripts find them here."""
    words = rhai_words()
    functions = frozenset(" ".join(words["functions"].values()).split())
    return Vocabulary(
        language="rhai",
        globals=functions,
        constant=words["constants"].get,
        advice=_advice,
        method_advice=_method_advice,
        string_methods=functions,
        any_methods=functions,
        methods={name: kind for kind, names in words["list_methods"].items() for name in names.split()},
        only_truth_values=True,
        nothing="unknown, and reading it is an error",
    )


def explain(error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits) -> ScriptError:
    explained = explain_translated(error, sources=sources, limits=limits)
    source = list(sources.values())[-1] if sources else ""
    hint = rhai_hint(explained, source, limits)
    return explained if hint is None else explained.with_(hint=hint)


def rhai_hint(error: ScriptError, source: str, limits: Limits) -> str | None:
    """A better hint than the error has; None where there is none."""
    if error.kind == "limit":
        return _limit(error, limits)
    lines, number = source.splitlines(), error.line or 0
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    if match := _RESERVED.search(error.message):
        return _as_key(match[1], line, error.column or 1)
    if match := _MACRO.search(error.message):
        form = _advice(match[1], called=True)
        return f"there are no macros; {form}" if form else f"there are no macros: write {match[1]}(…)"
    if error.hint is None and (match := _ON_NOTHING.search(error.message)):
        return _NOT_NOTHING if match[1] == "!" else _WITH_NOTHING
    if error.hint is None and (match := _NOT_FOUND.search(error.message)):
        return _method_advice(match[1], "list", ()) or _advice(match[1], called=True)
    if error.hint is None and (match := _NO_VARIABLE.search(error.message)):
        if advice := _advice(match[1], called=False):
            return advice
        if assignment := _ASSIGNED.match(line, (error.column or 1) - 1):  # `x = 1` without `let`
            return f"a variable is declared before it is assigned; write: let {assignment[0].rstrip()};"
        return did_you_mean(nearest(match[1], set(_DECLARED.findall(source[:_FARTHEST])) - {match[1]}))
    return None


def _as_key(word: str, line: str, column: int) -> str | None:
    """`#{match: 1}` and `map.match`."""
    before, behind = line[: column - 1], line[column - 1 + len(word) :].lstrip()
    if before.rstrip().endswith("."):
        return f'a reserved word as a name is written in quotes: map["{word}"]'
    if behind.startswith(":") and (_KEY_BEFORE.search(before) or not before.strip()):
        return f'a reserved word as a name is written in quotes: #{{"{word}": …}}'
    return None


def _limit(error: ScriptError, limits: Limits) -> str | None:
    if error.limit == "depth" and error.message.startswith("Stack overflow"):
        return _RECURSION
    field = {"time": "timeout", "calls": "max_tool_calls"}.get(error.limit or "", f"max_{error.limit}")
    if error.limit in ("depth", "source") or error.hint is None or field in error.message + error.hint:
        return None
    hint = "keep fewer elements: work on parts, and keep only what is needed" if error.limit == "array" else error.hint
    return f"{field} is {getattr(limits, field)}: {hint}"
