"""The reference of the Python API, from the docstrings and signatures of the public names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import griffe

from gen.table import GENERATED

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parents[2] / "src"
INTRO = f"""{GENERATED}

# Python API

This page lists every public name with its docstring. Names that begin with an underscore, and modules that are not on
this page, may change in any version.
"""
MODULES = {
    "moonbox": "The names that most programs use.",
    "moonbox.errors": "The exceptions, one class for each reaction of the caller.",
    "moonbox.knowledge": "The knowledge base: searchable documents from several sources.",
    "moonbox.audit.sinks": "Sinks, which store runs.",
    "moonbox.audit.redaction": "Redaction: removes values from records.",
    "moonbox.project": "Creates the objects that a configuration describes.",
    "moonbox.adapters.loop": "The base of the adapters for providers.",
    "moonbox.adapters.base": "The base of all adapters.",
    "moonbox.adapters.llm": "The tool `llm`.",
    "moonbox.adapters.openai": "OpenAI.",
    "moonbox.adapters.anthropic": "Anthropic.",
    "moonbox.adapters.google": "Google GenAI.",
    "moonbox.adapters.litellm": "LiteLLM.",
    "moonbox.adapters.local": "Local models.",
    "moonbox.adapters.fastmcp": "FastMCP.",
    "moonbox.adapters.langchain": "LangChain and LangGraph.",
    "moonbox.adapters.langchain_middleware": "LangChain's middleware.",
    "moonbox.adapters.llamaindex": "LlamaIndex.",
    "moonbox.adapters.openai_agents": "The OpenAI Agents SDK.",
    "moonbox.adapters.pydantic_ai": "Pydantic AI.",
    "moonbox.adapters.smolagents": "smolagents.",
}
_LONGEST = 110
_USUAL = {
    "to_dict": "Return it as JSON data.",
    "from_dict": "The inverse of `to_dict`.",
    "from_json": "The inverse of `to_json`.",
    "close": "Close it. A second call has no effect.",
    "aclose": "The async form of `close`.",
    "write": "Record a run.",
    "runs": "Return the recorded runs, the oldest first.",
    "get": "The run with that id, or with the only id that starts with it; raises UsageError for none or several.",
    "verify": "Whether every record fits the one before; `expect` is the hash of a record that must be there.",
}
"""For methods of every class that need no docstring of their own."""


_MADE_BY_OTHERS = {"Conversation", "Pause", "Repl"}
"""Classes that programs get and do not make: their arguments are no part of the interface."""


_MADE_WITH = {"Sandbox": "sandbox.options.SandboxOptions", "JsonLinesSink": "audit.files.FileTrail"}
"""Classes that take the fields, or the arguments, of another one."""


_BASES = ("Closing", "FileTrail", "RunReader", "_Record")
"""Base classes without an entry of their own."""


def page() -> str:
    package = griffe.load("moonbox", search_paths=[str(SOURCE)])
    parts = [INTRO.strip()]
    for module, about in MODULES.items():
        names = sorted(_public_names(package, module), key=str.lower)
        parts.append(f"## {module}\n\n{about}")
        for name in names:
            parts += _entry(f"{module}.{name}", _found(package, module, name))
    return "\n\n".join(parts) + "\n"


def _public_names(package: Any, module: str) -> list[str]:
    """The names in `__all__`, read without importing: frameworks need not be installed. Type variables are left out."""
    found = package if module == "moonbox" else package[module.removeprefix("moonbox.")]
    exported = [getattr(name, "name", name) for name in found.exports or ()]
    return [name for name in exported if name != "__version__" and not (name.endswith("T") and len(name) > 1)]


def _found(package: Any, module: str, name: str) -> Any:
    item = package[f"{module}.{name}".removeprefix("moonbox.")]
    return item.final_target if item.is_alias else item


def _entry(path: str, item: Any) -> Iterator[str]:
    yield f"### {path.rpartition('.')[2]}"
    if item.is_class:
        bases = ", ".join(str(base) for base in item.bases if str(base) not in ("Struct", *_BASES))
        init = item.members.get("__init__")
        fields = [member for member in _members(item) if member.is_attribute]
        is_made_here = init is not None and init.is_function and item.name not in _MADE_BY_OTHERS
        arguments = _arguments(init) if is_made_here else None
        if item.name in _MADE_WITH:
            arguments = _arguments(item.package[_MADE_WITH[item.name]].members["__init__"])
        if "Struct" in map(str, item.bases) and item.name not in _MADE_BY_OTHERS:
            arguments = _struct_arguments(item, fields)
        yield _code(f"class {path}" + (f"({bases})" if bases else ""), arguments)
        yield _doc(item)
        if fields:
            yield "\n".join(_field(field) for field in fields)
        for member in _members(item):
            overridden = bool(bases) and member.docstring is None  # described where the base class is
            if member.is_function and not (overridden and member.name not in _USUAL):
                yield f"#### {item.name}.{member.name}"
                yield _code(_head(member), _arguments(member), _returned(member))
                yield _doc(member)
    elif item.is_function:
        yield _code(_head(item), _arguments(item), _returned(item))
        yield _doc(item)
    else:
        yield _code(f"{path}: {item.annotation}" if item.annotation is not None else f"{path} = {item.value}")
        yield _doc(item)


def _members(item: Any) -> list[Any]:
    own = [member for name, member in item.members.items() if not name.startswith("_") and not member.is_alias]
    inherited = (member.final_target for member in item.inherited_members.values() if item.is_class)
    return own + [member for member in inherited if _of_a_base(member)]


def _of_a_base(member: Any) -> bool:
    """Whether a class of moonbox that has no entry of its own defines this method."""
    own = member.path.startswith("moonbox.") and member.parent.name in _BASES
    return own and member.is_function and not member.name.startswith("_")


def _head(function: Any) -> str:
    kind = "async def" if "async" in function.labels else "def"
    return f"{kind} {function.name}"


def _arguments(function: Any) -> list[str]:
    arguments, star = [], False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind.value
        if kind == "keyword-only" and not star:
            arguments.append("*")
        star = star or kind in ("keyword-only", "variadic positional")
        prefix = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        text = prefix + parameter.name
        if parameter.annotation is not None:
            text += f": {parameter.annotation}"
        if parameter.default is not None and not prefix:
            text += f" = {parameter.default}" if parameter.annotation is not None else f"={parameter.default}"
        arguments.append(text)
    return arguments


def _struct_arguments(item: Any, fields: list[Any]) -> list[str]:
    """The arguments of a msgspec.Struct: its fields."""
    arguments = ["*"] if "kw_only=True" in item.source.partition("):")[0] else []
    for field in fields:
        if "property" not in field.labels:
            arguments.append(
                f"{field.name}: {field.annotation}" + (f" = {field.value}" if field.value is not None else "")
            )
    return arguments


def _returned(function: Any) -> str:
    return f" -> {function.returns}" if function.returns is not None else ""


def _code(head: str, arguments: list[str] | None = None, end: str = "") -> str:
    text = head
    if arguments is not None:
        text = f"{head}({', '.join(arguments)}){end}"
        if len(text) > _LONGEST:
            text = f"{head}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){end}"
    return f"```text\n{text}\n```"


def _field(field: Any) -> str:
    kind = f": `{field.annotation}`" if field.annotation is not None else ""
    text = " ".join((field.docstring.value if field.docstring else "").split())
    return f"- **`{field.name}`**{kind}" + (f" – {text}" if text else "")


def _doc(item: Any) -> str:
    """The docstring; what is set in columns stays so."""
    text = item.docstring.value if item.docstring else _USUAL.get(item.name, "")
    blocks = [f"```text\n{block}\n```" if "   " in block else block for block in text.split("\n\n")]
    return "\n\n".join(blocks)
