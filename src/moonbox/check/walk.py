"""The walk over a script: visits each statement once, in the order of the source, and collects findings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from moonbox.check import calls, operators, reads, slips
from moonbox.check import values as v
from moonbox.findings import Finding
from moonbox.languages import program as p
from moonbox.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from moonbox.check.tools import ScriptTools
    from moonbox.languages.language import Language
    from moonbox.schema.tree import Kinds

_MOST_FINDINGS = 20
_MOST_TESTED = 1_000
_OUTERMOST = 2  # scopes that are open outside of all blocks
_SCALARS = {str: v.STRING, bool: v.BOOLEAN, int: v.NUMBER, float: v.NUMBER}
_TESTABLE = frozenset({p.Name, p.Field})


class TooMuch(Exception):
    """There are as many findings as are reported."""


class Walk:
    """One look at one script."""

    def __init__(
        self,
        program: p.Program,
        language: Language,
        view: ScriptTools,
        *,
        names: frozenset[str],
        open_names: bool,
    ) -> None:
        assert language.vocabulary is not None
        self.program = program
        self.outline = program.outline
        self.loops = 0
        self.scopes: list[dict[str, v.Variable]] = [{}]
        """Those that are open here, innermost last."""
        self.variables: dict[str, v.Variable] = {}
        """What each name means here, of those that the script has set before: a local, or a global."""
        self.language, self.view, self.text = language, view, program.text
        self.words = language.vocabulary()
        self.names = names
        """Globals that exist beside those of the language: what the host added, and what earlier scripts set."""
        self.open_names = open_names
        """There may be more of them."""
        self.findings: dict[tuple[int, str], Finding] = {}
        self.without_value: dict[int, str] = {}
        """Calls of functions that return nothing, by identity, and what they call."""
        self.lenient = 0
        """Above 0 where an error is caught, or a field only tried: what is found there is a note."""
        self.quietly = False
        self._tested: set[str] = set()
        self._probed: set[str] = set()
        self._returned: list[list[v.Value]] = []
        self._within: list[str] = []
        """The script's own functions, by name, that are being checked."""

    @cached_property
    def tools_are_functions(self) -> bool:
        return self.language.texts.separator == "::"  # asked when it matters: the texts are slow to load

    # What was found

    def error(self, at: int, message: str, hint: str | None = None, **more: str) -> None:
        """Something that cannot work; where errors are caught, a note."""
        is_caught = self.lenient or any(name in self._caught for name in self._within)
        self._report("note" if is_caught else "error", at, message, hint, **more)

    @cached_property
    def _caught(self) -> frozenset[str]:
        return v.caught_functions(self.outline.body)

    def note(self, at: int, message: str, hint: str | None = None, **more: str) -> None:
        """Something that is likely a mistake."""
        self._report("note", at, message, hint, **more)

    def about(self, data: v.Value, node: p.Node, at: int, message: str, hint: str | None = None) -> None:
        """Something about the value that `node` reads: certain where the tool has promised the result's schema."""
        is_learned = isinstance(data, v.Data) and data.learned
        is_certain = not is_learned and self.text(node) not in self._probed  # type: ignore[arg-type]  # an expression
        (self.error if is_certain else self.note)(at, message, hint)

    def about_result(self, data: v.Data, node: p.Expression, at: int, what: str, hint: str | None = None) -> None:
        """Something about the part of a tool's result that `node` reads."""
        self.about(data, node, at, f"{reads.described(self, data, node)} {what}", hint)

    def fact(self, at: int, which: str, /, *, certain: bool = True, **texts: str) -> None:
        """One of the facts that the explanations of errors know too."""
        fact = self.words.fact(which, **texts)
        (self.error if certain else self.note)(at, fact.message, fact.hint)

    def _report(self, severity: Any, at: int, message: str, hint: str | None, **more: str) -> None:
        if self.quietly:
            return
        line, column = self.program.place(at)
        self.findings.setdefault((line, message), Finding(severity, message, line, column, hint, **more))
        if len(self.findings) >= _MOST_FINDINGS:
            raise TooMuch

    # Variables

    def _leave(self) -> None:
        """The end of the innermost scope: its names mean what they meant before."""
        for name, variable in self.scopes.pop().items():
            if variable.hides is None:
                del self.variables[name]
            else:
                self.variables[name] = variable.hides
            if variable.replaces and not variable.is_read:  # `local total = total + x` in a loop
                self.fact(variable.at, "new_variable", name=name)

    def declare(self, name: str, value: v.Value, at: int, *, replaces: bool = False) -> v.Variable:
        """A new local variable."""
        assigned = self.outline.assigned.get(name, 0)
        known = None if assigned else value
        if name in self.outline.filled:
            known = v.Made(replace(value.record, exact=False)) if isinstance(value, v.Made) and not assigned else None
        scope = self.scopes[-1]
        outer = scope[name].hides if name in scope else self.variables.get(name)
        variable = v.Variable(known, at, self.loops, replaces, declared=value, hides=outer)
        scope[name] = self.variables[name] = variable
        return variable

    def assign(self, target: p.Name, value: v.Value) -> None:
        once = self.outline.assigned.get(target.name) == 1 and target.name not in self.outline.filled
        variable = self.variables.get(target.name)
        if variable is None:
            self.variables[target.name] = v.Variable(value if once else None, target.at, self.loops)
        elif once and variable.value is None and (variable.is_empty or variable.declared == value):
            variable.value = value

    def is_replaced(self, name: str, value: p.Expression) -> bool:
        """`local total = total + x` in a loop, where `total` is a local outside of it."""
        outer = self.variables.get(name) if self.loops and name not in self.scopes[-1] else None
        return outer is not None and outer.depth < self.loops and type(value) is p.Operation and _mentions(value, name)

    def fill(self, target: p.Expression, keys: Kinds, value: v.Value, *, appends: bool) -> None:
        """A table gets an element. Where that happens in one place only, its elements are known from there on."""
        variable = self.variables.get(target.name) if type(target) is p.Name else None
        if variable is None or not isinstance(variable.value, v.Made) or variable.value.record.entries:
            return
        if self.outline.filled.get(target.name) == 1:  # type: ignore[union-attr]  # a Name
            numbered = keys is not None and keys <= v.NUMBERS
            variable.value = (
                v.Results((), value, appends) if numbered else v.Mapped(value) if keys == v.TEXT else variable.value
            )

    def hand_over(self, node: p.Expression) -> None:
        """A table is given to a function, which may do anything to it."""
        variable = self.variables.get(node.name) if type(node) is p.Name else None
        if variable is not None and isinstance(variable.value, v.Made | v.Mapped | v.Results):
            variable.value = None

    # Statements

    def block(self, node: p.Block) -> None:
        """Statements in a scope of their own."""
        self.scopes.append({})
        for statement in node.statements:
            _HANDLERS[type(statement)](self, statement)
        if self.loops and self.language.first_index == 1:
            slips.filled_from_zero(self, node)
        self._leave()

    def _guarded(self, node: p.Guarded) -> None:
        self.lenient += 1
        self.block(node.body)
        self.lenient -= 1

    def _declare(self, node: p.Declare) -> None:
        names, written = node.names, node.values
        is_function = len(written) == 1 and type(written[0]) is p.Function
        if is_function:
            self._within += names
        values = [slips.used(self, value) for value in written]
        if is_function:
            del self._within[-len(names) :]
        if len(names) > 1 and len(written) == 1:
            slips.declaration(self, node)
        replaces = len(names) == 1 and bool(written) and self.is_replaced(names[0], written[0])
        for index, name in enumerate(names):
            first = written[index] if index < len(written) else None
            variable = self.declare(name, values[index] if first is not None else None, node.at, replaces=replaces)
            if type(first) is p.Constant:
                variable.starts_at = first.value
            variable.is_empty = not written or v.is_empty(first)

    def _assign(self, node: p.Assign) -> None:
        values = [slips.used(self, value) for value in node.values]
        for index, target in enumerate(node.targets):
            value = values[index] if index < len(values) else None
            if type(target) is p.Name:
                is_certain = len(self.scopes) == _OUTERMOST or target.name not in self.names
                self.assign(target, value if is_certain else None)  # else an earlier script's value may stay
                self._join(target.name, node.values[index] if index < len(node.values) else None)
            elif type(target) is p.Field:
                self.value(target.value)
            elif type(target) is p.Index:
                self.value(target.value)
                keys = v.kinds_of(self.value(target.key))
                if type(target.key) is p.Constant:
                    self.hand_over(target.value)  # an element that need not be like the others
                else:
                    self.fill(target.value, keys, value, appends=v.is_next(target))

    def _join(self, name: str, value: p.Expression | None) -> None:
        """`text = text .. more`."""
        if type(value) is p.Operation and value.operator == ".." and type(value.left) is p.Name:
            variable = self.variables.get(name)
            if variable is not None:
                variable.is_joined |= value.left.name == name

    def _define(self, node: p.Define) -> None:
        target = node.target
        if type(target) is p.Name and node.is_local:
            self.declare(target.name, None, node.at)
        self._within.append(target.name if type(target) is p.Name else "")
        result = self.function(node.function)
        self._within.pop()
        if type(target) is p.Name:
            if node.is_local:
                self.declare(target.name, v.ScriptFunction(result), node.at)
            else:
                self.assign(target, v.ScriptFunction(result))

    def _evaluate(self, node: p.Evaluate) -> None:
        self.value(node.value)

    def _return(self, node: p.Return) -> None:
        values = [slips.used(self, value) for value in node.values]
        if self._returned:
            self._returned[-1].append(values[0] if len(values) == 1 else None)

    def _branches(self, node: p.Branches) -> None:
        for condition, body in node.branches:
            if condition is not None:
                self.test(condition)
                slips.condition(self, condition, self.value(condition))
            self.block(body)

    def _loop(self, node: p.Loop) -> None:
        self.loops += 1
        if node.condition is not None:
            slips.condition(self, node.condition, self.value(node.condition))
        self.block(node.body)
        self.loops -= 1

    def _count(self, node: p.Count) -> None:
        slips.count_from_zero(self, node)
        for bound in node.bounds:
            self.value(bound)
        self._rounds({node.name: v.Scalar("number", f"'{node.name}' counts")}, node.at, node.body)

    def _each(self, node: p.Each) -> None:
        given = reads.iteration(self, node)
        names = dict(zip(node.names, [*given, *[None] * len(node.names)], strict=False))
        self._rounds(names, node.at, node.body)

    def _rounds(self, names: dict[str, v.Value], at: int, body: p.Block) -> None:
        self.loops += 1
        self.scopes.append({})
        for name, value in names.items():
            self.declare(name, value, at)
        self.block(body)
        self._leave()
        self.loops -= 1

    # Values

    def value(self, node: p.Expression | p.Statement) -> v.Value:
        return _HANDLERS[type(node)](self, node)

    def function(self, node: p.Function, given: tuple[v.Value, ...] = ()) -> v.Value:
        """Look at a function that is called with these values; what it returns."""
        outer, self.loops = self.loops, 0
        self.scopes.append({})
        for index, name in enumerate(node.parameters):
            self.declare(name, given[index] if index < len(given) else None, node.at)
        self._returned.append([])
        self.block(node.body)
        results = self._returned.pop()
        self._leave()
        self.loops = outer
        first = results[0] if results else None
        return first if all(result == first for result in results) else None

    def name(self, node: p.Name, *, indexed: bool = False) -> v.Value:
        """What a variable is; of one that nothing sets, a finding."""
        name = node.name
        variable = self.variables.get(name)
        if variable is not None:
            variable.is_read = True
            return variable.value
        if name in self.outline.assigned:
            return None
        if name == "tools":
            return self.view.root
        if name in self.words.globals:
            return v.Library(name)
        if self.is_unset(name):
            word = self.words.constant(name)
            advice = self.words.advice(name, False, ()) if indexed else None
            if word is not None:
                language = self.language.name.capitalize()
                fact = self.words.fact("alternative_constant", language=language, word=word, name=name)
                self.error(node.at, f"'{name}' is not defined", str(fact))
            elif advice is not None:
                self.error(node.at, f"there is no '{name}'", advice)
            else:
                self.unset(node)
        return None

    def unset(self, node: p.Name) -> None:
        """A global that is read and set nowhere."""
        if self.lenient or self.quietly or node.name == "_":
            return
        known = {*self.names, *self.words.globals, *self.outline.assigned}.union(*self.scopes)
        hint = did_you_mean([f"'{item}'" for item in nearest(node.name, known)])
        self.note(node.at, f"'{node.name}' is not set anywhere: it is {self.words.nothing}", hint)

    def quiet(self, node: p.Expression) -> v.Value:
        """What a name or a chain of fields is, without a finding; None for anything else."""
        path = p.path(node)
        if not path:
            return None
        if len(path) == 1 and self.tools_are_functions and self.is_unset(path[0]):
            return self.view.named(path[0])
        outer, self.quietly = self.quietly, True
        value = self.name(p.Name(node.at, path[0]))
        self.quietly = outer
        for name in path[1:]:
            if isinstance(value, v.ToolSpace):
                value = self.view.member(value, name)
            elif isinstance(value, v.Library) and name in self.words.libraries.get(value.name, ()):
                value = v.Library(f"{value.name}.{name}")
            else:
                return None
        return value

    def test(self, node: p.Expression | p.Statement | None) -> None:
        """The script asks whether a global or a tool exists: it may use it from here on."""
        if type(node) in _TESTABLE and len(self._tested) < _MOST_TESTED:
            self._tested.add(".".join(p.path(node)))  # type: ignore[arg-type]  # a name or a field

    def probe(self, node: p.Expression) -> None:
        """The script asks for the type of a value: from here on it may be another than the tool has promised."""
        if len(self._probed) < _MOST_TESTED and (text := self.text(node)) != "…":
            self._probed.add(text)

    def is_tested(self, node: p.Expression) -> bool:
        path = p.path(node)
        return bool(path) and ".".join(path) in self._tested

    def is_unset(self, name: str) -> bool:
        """Whether nothing gives a global of that name a value."""
        return not (
            self.open_names
            or name in self.variables
            or name in self.words.globals
            or name in self.outline.assigned
            or name in self.names
            or name in self._tested
        )

    def _constant(self, node: p.Constant) -> v.Value:
        if type(node.value) is str and self.words.only_truth_values:
            slips.text(self, node)
        return _SCALARS.get(type(node.value))

    def _function(self, node: p.Function) -> v.Value:
        return v.ScriptFunction(self.function(node))

    def _record(self, node: p.Record) -> v.Value:
        for _, item in node.entries:
            self.value(item)
        return v.Made(node)

    def _other(self, node: p.Other) -> v.Value:
        values = [self.value(part) for part in node.parts]
        if node.what == "not" and node.parts:
            slips.condition(self, node.parts[0], values[0])
            slips.negation(self, node.at, node.parts[0], values[0])
        return v.STRING if node.what == "text" else v.BOOLEAN if node.what == "not" else None


def _mentions(value: p.Expression, name: str) -> bool:
    if type(value) is p.Operation:
        return _mentions(value.left, name) or _mentions(value.right, name)
    return type(value) is p.Name and value.name == name


_HANDLERS: dict[type, Callable[[Walk, Any], v.Value]] = {
    p.Name: Walk.name,
    p.Constant: Walk._constant,
    p.Field: reads.field,
    p.Index: reads.item,
    p.Length: reads.length,
    p.FunctionCall: calls.call,
    p.Method: calls.method,
    p.Record: Walk._record,
    p.Function: Walk._function,
    p.Operation: operators.operation,
    p.Other: Walk._other,
    p.Block: Walk.block,
    p.Guarded: Walk._guarded,
    p.Declare: Walk._declare,
    p.Assign: Walk._assign,
    p.Define: Walk._define,
    p.Evaluate: Walk._evaluate,
    p.Return: Walk._return,
    p.Branches: Walk._branches,
    p.Loop: Walk._loop,
    p.Count: Walk._count,
    p.Each: Walk._each,
}
