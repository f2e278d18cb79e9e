"""A value that a runtime error speaks of: what Lua complains of, and how the script wrote it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from moonbox.languages import program as p
from moonbox.languages.lua.syntax.parser import expressions_end

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.listing import Listing

Named: TypeAlias = p.Name | p.Field | p.Index | p.Method
_NAMED = (p.Name, p.Field, p.Index, p.Method)
_COMPLAINT = re.compile(
    r"attempt to (?P<action>call|index|perform arithmetic on|perform bitwise operation on|concatenate|get length of)"
    r" an? (?P<type>[^()\n]{1,80}?) value"
    r"(?: \((?:(?P<loop>for iterator)|(?P<role>global|local|method|field|upvalue|constant)"
    r" '(?P<name>[^'\n]{1,80})')\))?"
)
_ROLES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("global", "local", "upvalue"), (p.Name,)),
    "method": (p.Method,),
    "field": (p.Field, p.Index),
}


class Complaint(Struct, frozen=True):
    """What Lua says about a value that cannot do what was asked of it; without an action where it says other things."""

    action: str = ""
    type: str = ""
    role: str = ""
    name: str = ""

    @classmethod
    def read(cls, message: str) -> Complaint:
        match = _COMPLAINT.fullmatch(message)
        if match is None:
            return cls()
        return cls(match["action"], match["type"], match["loop"] or match["role"] or "", match["name"] or "")


class ScriptValue(Struct, frozen=True):
    """A variable, a field, an element or a method of the script."""

    listing: Listing
    node: Named

    @property
    def index(self) -> int:
        """The word that names it; of an element, the first word of its key."""
        node = self.node
        if not isinstance(node, p.Index):
            return node.at if isinstance(node, p.Name) else node.key
        key = node.key
        while type(key) is p.Operation:
            key = key.left
        first = key.at
        while self.listing.tokens[first - 1].text == "(":
            first -= 1
        return first

    @property
    def name(self) -> str:
        """Its last name; "" where only the run knows it, and "?" is what Lua calls it."""
        return "" if isinstance(self.node, p.Index) else self.node.name

    @property
    def text(self) -> str:
        """The value as the script writes it, such as `order.items[1]`."""
        return self.listing.text(self.node.at, self.node.key + 1 if type(self.node) is p.Method else self.node.stop)

    @property
    def receiver(self) -> str:
        """What stands before the last dot, colon or bracket."""
        return "" if type(self.node) is p.Name else self.listing.text(self.node.at, self.index - 1)

    @property
    def root(self) -> str:
        return p.root(self.node)

    @property
    def word_before(self) -> str:
        return self.listing.tokens[self.node.at - 1].text if self.node.at else ""

    @property
    def user(self) -> p.Node | None:
        """What uses the value: a call, a field of it, an operation, an assignment, …"""
        return next(self.listing.around(self.node), None)

    @property
    def call(self) -> p.FunctionCall | p.Method | None:
        """The call of this value."""
        user = self.user
        if type(self.node) is p.Method:
            return self.node
        return user if type(user) is p.FunctionCall and user.function is self.node else None

    @property
    def part(self) -> ScriptValue | None:
        """The field, element or method that is read from this value."""
        user = self.user
        return ScriptValue(self.listing, user) if isinstance(user, _NAMED[1:]) and user.value is self.node else None

    @property
    def is_assigned(self) -> bool:
        user = self.user
        return type(user) is p.Assign and self.node in user.targets

    def arguments(self) -> list[str]:
        """The texts of the call's arguments; empty when it is not a call or they are not known."""
        call, tokens = self.call, self.listing.tokens
        if call is None:
            return []
        at = self.index + 1 if call is self.node else self.node.stop
        while tokens[at].text == ")":
            at += 1
        if tokens[at].text != "(":
            return [self.listing.text(at, call.stop)]
        texts: list[str] = []
        while at < call.stop - 1 and (stop := expressions_end(self.listing.read, at + 1, only_one=True)) is not None:
            texts.append(self.listing.text(at + 1, stop))
            at = stop
        return texts

    def fits(self, complaint: Complaint) -> bool:
        """Whether Lua can mean this value."""
        if type(self.node) not in _ROLES[complaint.role] or not self.is_called(complaint.name):
            return False
        match complaint.action:
            case "call":
                return self.call is not None
            case "index":
                return self.part is not None
        return not self.is_assigned

    def is_called(self, name: str) -> bool:
        """Whether Lua's messages have that name for it: "?" is what stands in brackets."""
        return self.name == name if name != "?" else self.listing.tokens[self.index - 1].text == "["


class RuntimeFailure(Struct, frozen=True, dict=True):
    """Where a runtime error happened and what is known there."""

    listing: Listing
    """The script in whose line it happened."""
    line: int | None
    message: str
    tools: Collection[str]
    """Their paths, such as `add` and `github.create_issue`."""
    names: Collection[str] = ()
    """Globals that exist, as far as the engine reported them."""
    earlier: Sequence[Listing] = ()
    """Scripts of earlier runs."""
    functions: tuple[str, ...] = ()
    """The functions that were under way, innermost first."""

    @cached_property
    def complaint(self) -> Complaint:
        """What Lua says; nothing where no value on the line fits, as in a message that the script wrote itself."""
        complaint = Complaint.read(self.message)
        is_known = self.line is not None and self.listing.outline is not None and complaint.role in _ROLES
        return Complaint() if is_known and complaint.type != "null" and not self._meant(complaint) else complaint

    @cached_property
    def value(self) -> ScriptValue | None:
        """The value that the complaint is about; None unless exactly one fits."""
        values = self._meant(self.complaint) if self.complaint.role in _ROLES else []
        return values[0] if len({value.text for value in values}) == 1 else None

    def _meant(self, complaint: Complaint) -> list[ScriptValue]:
        return [value for value in self.values if value.fits(complaint)]

    @cached_property
    def values(self) -> list[ScriptValue]:
        """What the line names, from left to right."""
        named = [ScriptValue(self.listing, node) for node in self.listing.nodes if isinstance(node, _NAMED)]
        on_line = [value for value in named if self.listing.place(value.index)[0] == self.line]
        return sorted(on_line, key=lambda value: value.index)

    @cached_property
    def operations(self) -> list[p.Operation]:
        """Those whose operator stands on the line."""
        return [node for node in self.listing.all(p.Operation) if self.listing.place(node.at)[0] == self.line]

    def calls_of(self, name: str) -> list[ScriptValue]:
        """Functions of that name, whatever they belong to, that the line calls."""
        return [value for value in self.values if value.name == name and value.call is not None]

    def call_of(self, name: str) -> ScriptValue | None:
        """The only such function."""
        calls = self.calls_of(name)
        return calls[0] if len(calls) == 1 else None

    def fields_of(self, name: str) -> list[ScriptValue]:
        """Fields (and methods) of that name on the line."""
        return [value for value in self.values if type(value.node) is not p.Name and value.is_called(name)]

    def declared_at(self, name: str) -> int | None:
        """The line where the script declares a local or a parameter of that name."""
        return next((line for line, _ in declarations(self.listing, name)), None)


def declared_names(node: p.Node) -> tuple[str, ...]:
    """The locals that a statement declares, or the parameters of a function."""
    match node:
        case p.Function():
            return node.parameters
        case p.Declare() | p.Each():
            return node.names
        case p.Count():
            return (node.name,)
        case p.Define(target=p.Name(name=name), is_local=True):
            return (name,)
    return ()


def declarations(listing: Listing, name: str) -> Iterator[tuple[int, p.Node]]:
    """Where a script declares a local or a parameter of that name: the line, and the statement or function."""
    for node in listing.nodes:
        if name in declared_names(node):
            yield listing.place(node.at)[0], node  # type: ignore[attr-defined]  # these have one


def last_name(node: p.Node) -> str:
    """The last name of a value, or of the function that a call calls; "" where there is none."""
    value = node.function if isinstance(node, p.FunctionCall) else node
    return value.name if isinstance(value, p.Name | p.Field | p.Method) else ""
