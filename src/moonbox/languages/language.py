"""A language that scripts can be written in: what every other part of moonbox may know of it.

A language is one folder. Its module `language.py` fills in one `Language`; its words for models (`texts.toml`) and for
scripts (`docs.toml`, and `library.toml` for each function of its libraries) are plain files, which know nothing of
Python, so that a host in another language can read them.

Lua's engine runs Lua as it is. A language that is compiled to Lua brings its compiler and its runtime as Lua files,
which both run in the worker; see `explanations.py`. A language with an engine of its own brings an engine with the
methods of `LuaVM`, and its own `explain`; nothing else here depends on what runs a script.
"""

from __future__ import annotations

import json
import keyword
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.languages.engine import DEFAULT_ENGINE
from moonbox.languages.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from moonbox.errors import ScriptError
    from moonbox.findings import Finding
    from moonbox.languages.program import Program, Vocabulary

RESERVED_WORDS = frozenset(
    {
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if"),
        *("in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"),
    }
)


class Unknown:
    """A value that only the run knows, in arguments that are looked at before it."""

    def __repr__(self) -> str:
        return "…"


UNKNOWN = Unknown()
REST = Unknown()
"""As a key: there may be other keys too."""


def is_identifier(text: str) -> bool:
    """Whether a script can write `tools.<text>`."""
    return text.isascii() and text.isidentifier() and text not in RESERVED_WORDS


def _plain_or_bracketed(name: str) -> str:
    return name if is_identifier(name) else f"[{json.dumps(name, ensure_ascii=False)}]"


class Notation(Struct, frozen=True):
    """How types of JSON Schemas are written for a model: their words and forms; `{}` stands for the type inside."""

    words: Mapping[str, str] = {}
    """What types and constants are called; those that are not named have the names of JSON Schema."""
    array: str = "{}[]"
    mapping: str = "{[string]: {}}"
    either: str = "|"
    quoted: bool = False
    """Whether keys of objects are written as text, and parameters as Python does; else identifiers of Lua are written
    as they are, others as `["a b"]`."""
    optional: str = "{name}?: {type}"
    """A parameter that may be left out; `{default}` is its value then, `...` where that is not known."""

    def word(self, name: str) -> str:
        return self.words.get(name, name)

    def constant(self, value: Any) -> str:
        """A value as it is written, on one line."""
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return self.word(text)

    def key(self, name: str) -> str:
        """The key of a field."""
        return self.constant(name) if self.quoted else _plain_or_bracketed(name)

    def parameter(self, name: str) -> str:
        """The name of a parameter: with a `_` behind it where it is a word of the language."""
        if self.quoted and name.isidentifier():
            return f"{name}_" if keyword.iskeyword(name) else name
        return _plain_or_bracketed(name)

    def around(self, form: str) -> tuple[str, str]:
        """What stands before and behind the type inside."""
        before, _, after = form.rpartition("{}")
        return before, after


SHORT = Notation()
"""How types of JSON Schemas are written in messages, and for languages without a form of their own."""


class Texts(Struct, frozen=True, kw_only=True):
    """The model's description of the code tool of one language, and texts about the values of its scripts.

    What languages word alike has a default.
    """

    name: str
    parameter: str = "source_code"
    parameter_description: str = "The script."
    description: str
    with_tools: str
    added_title: str
    """Before what was added beside tools."""
    types_title: str = "Types:"
    catalog_title: str = "Tools:"
    names_title: str
    """Before names of tools; `{call}` is how a script writes a call of one of them."""
    search_title: str
    lean: str
    """The whole description of the code tool where every tool is shown directly too."""
    lean_namespaces: str
    """How a script writes the tool of a namespace, there."""
    lean_results: str = "Results: {results}."
    """Before what tools return, there; `{results}` is filled in."""
    not_in_scripts: str = "Not in scripts: {names}."
    """Which of the tools beside the code tool scripts cannot call; `{names}` is filled in."""
    also_in_scripts: str
    """Which of the tools beside the code tool scripts call too; `{names}` is filled in."""
    system_prompt: str = "Scripts for `{name}` call the tools."
    system_prompt_without_tools: str = "Use `{name}` to compute."
    no_value: str
    """Of a run that returned nothing and printed nothing."""
    keep: str
    """How a value that was cut is kept for the next run; before one of the next three."""
    part_of_map: str
    """How one field of the kept value is returned; `{key}` is filled in."""
    part_of_list: str
    part_of_text: str
    kept: str
    """The name of a value that was kept because it is large; `{number}` is filled in."""
    helpers: str = ""
    """Functions for lists; in every description."""
    paging: str = ""
    """How all pages of a tool are fetched, where there are tools."""
    groups: str = ""
    """How a tool of a namespace is called, where there are such."""
    failures_return: str = ""
    """Where a result that is nothing but a failure is data."""
    failures_raise: str = ""
    """Where it is raised."""
    failures_except: str = "Except: {names}."
    """The tools for which the other holds; `{names}` is filled in."""
    limits: str = "- At most {what} a script."
    """What one script may spend; `{what}` is filled in."""
    call: str = "{name}"
    """How a script writes a call of a tool."""
    tool: str = "{name}"
    """How a script writes a tool."""
    separator: str = "."
    """Between a namespace and a tool's name."""
    types: Notation = SHORT
    """How signatures of tools write types."""
    reserved: str = ""
    """Words that cannot name a tool: it gets a `_` behind its name."""
    taken: str = ""
    """Names that mean something else, so that a tool of such a name is written behind `tools`."""

    def identifiers(self, alias: str) -> str:
        """The alias without words that cannot name a tool."""
        reserved = self.reserved.split()
        return ".".join(f"{part}_" if part in reserved else part for part in alias.split("."))

    def written(self, alias: str) -> str:
        """A tool's name as scripts write it behind `tools`, or alone where there is no such table."""
        name = self.identifiers(alias)
        name = f"tools.{name}" if name.partition(".")[0] in self.taken.split() else name
        return name.replace(".", self.separator)


class EngineError(Struct, frozen=True):
    """What an engine reports of a run that failed."""

    kind: str
    """ "syntax", "runtime", "tool" or "stop"."""
    message: str = ""
    """In the engine's own words; Lua puts the chunk and line in front: `script:3: attempt to …`."""
    limit: str = ""
    """Of a stop: "time", "calls", "cancelled", "operations", "memory", "output", "string", "array", "depth",
    "source" or ""."""
    frames: tuple[tuple[str, int, str], ...] = ()
    """(chunk, line, function), innermost first."""
    extra: Mapping[str, Any] = {}
    """What else was reported, which is not trusted: `data`, `names`, and by the language's own runtime such as `line`,
    `column` and `hint`."""

    @property
    def data(self) -> Any:
        """The fields of a tool's error; of a table that the script raised, its data."""
        data = self.extra.get("data")
        return data[0] if isinstance(data, list) and data else None

    @property
    def names(self) -> Collection[str]:
        """Globals that exist, where the message speaks of a nil value."""
        names = self.extra.get("names")
        return tuple(map(str, names)) if isinstance(names, list) else ()


class Lexis(Struct, frozen=True):
    """How literals are found in a text that may be a script; audit/literals.py has what languages share."""

    tokens: str
    """Patterns of strings, of comments, and of what begins those whose end they do not know."""
    word_blocks: bool = False
    """Whether words begin and end blocks, so that `:` may call a method."""
    block_values: bool = False
    """Whether blocks have values."""
    lines_end: bool = False
    """Whether the end of a line ends a value."""


def on_first_use(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is loaded when it is first called."""

    def call(*args: Any, **options: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"moonbox.languages.{module}"), name)(*args, **options)

    return call


class Language(Struct, frozen=True, kw_only=True):
    """One language."""

    name: str
    """Also that of its folder."""
    suffix: str
    comment: str
    """The sign that begins a comment which ends with its line."""
    lexer: str
    """The name of the Pygments lexer that colours it."""
    lexis: Lexis
    first_index: int
    """The number that it gives an array's first element."""
    explain: Callable[..., ScriptError]
    """(error, *, sources, tools, limits): what went wrong, where, and what to write instead; raises nothing.

    `sources` maps the chunks of a Repl's runs (`script`, `script#2`, …) to their text, as far as they are kept; the run
    that failed is the last of them. `tools` are the paths of the tools that the script can call."""
    completeness: Callable[[], Callable[[str], bool]]
    """Makes a function that is False where more lines can still make a script of the text."""
    nothing: str = "null"
    """How it writes that there is no value."""
    ordered: bool = False
    """Whether keys of mappings have an order, and 2.0 is another value than 2: a model reads both as they are."""
    keywords: frozenset[str] = frozenset()
    """Offered as completions at the prompt."""
    parameter_aliases: frozenset[str] = frozenset()
    """What models call the code tool's parameter when they forget its name, beside the usual words for code."""
    features: Mapping[str, tuple[str, ...]] = {}
    """Optional parts of the language, and the globals that each opens."""
    libraries: Callable[[Collection[str]], dict[str, list[str]]] = lambda features: {}
    """The members of its libraries when these features are open."""
    program: Callable[[str], Program | None] | None = None
    """Reads a script for the checker; None for a script that it cannot follow."""
    vocabulary: Callable[[], Vocabulary] | None = None
    """The words that the checker knows."""
    look: Callable[..., tuple[tuple[Finding, ...], frozenset[str] | None]] | None = None
    """(source, view, names, open_names, read): checks a script instead of `program`; the findings, and the globals that
    it sets, None where these are not known. `names` are globals that exist; with `open_names` there may be more. `read`
    is the chore "facts" of `reader`, or None."""
    reader: str = ""
    """The module that reads scripts for `look`, in a process of its own: see worker/chores.py."""
    runtime: Callable[[], str] | None = None
    """The Lua chunk with its compiler to Lua and its runtime; None where the engine runs the language as it is."""
    engine: str = DEFAULT_ENGINE
    """What runs its scripts: the module and class of an Engine, below `moonbox.languages`."""
    packages: tuple[str, ...] = ("lupa",)
    """Packages that the engine imports, beside moonbox and the standard library."""
    extra: str = ""
    """The extra of moonbox that installs them, where they are not always there."""
    binary: Callable[[], str] | None = None
    """The file of a program that the engine starts in a process beside the worker."""
    describe: Callable[[Any], dict[str, Any]] | None = None
    """(toolbox): what else its workers need to know about the tools."""

    def engine_for_workers(self) -> dict[str, Any]:
        """What a zygote loads for it."""
        binary = None if self.binary is None else self.binary()
        return {"name": self.engine, "packages": self.packages, "program": binary}

    @property
    def texts(self) -> Texts:
        """Texts for models about scripts in this language."""
        return _texts(self.name)

    @property
    def docs(self) -> Mapping[str, str]:
        """What scripts read through `docs`, for everything that each of them finds."""
        return _docs(self.name, "docs")

    @property
    def library_docs(self) -> Mapping[str, str]:
        """The same for each function of its libraries."""
        return _docs(self.name, "library")

    def kept_name(self, number: int | None = None) -> str:
        """The global with what that run has left for later ones; without a number, with the newest of them."""
        name = self.texts.kept
        return name.format(number=number) if number is not None else name.format(number="").rstrip("_") or "_"

    def tool_name(self, alias: str) -> str:
        """A tool as scripts write it."""
        texts = self.texts
        return texts.tool.format(name=texts.written(alias))


@cache
def _texts(language: str) -> Texts:
    texts = _docs(language, "texts")
    return Texts(**{**texts, "types": Notation(**texts.get("types", {}))})


@cache
def _docs(language: str, name: str) -> dict[str, Any]:
    """The texts in a file of a language."""
    texts = table(f"{language}/{name}.toml")
    return {key: text.strip() if isinstance(text, str) else text for key, text in texts.items()}
