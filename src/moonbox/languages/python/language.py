"""Python's entry in the registry of languages: Monty, in a process of its own, runs the scripts."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from threading import Lock

from moonbox.languages.language import Language, Lexis, on_first_use


def _completeness() -> Callable[[str], bool]:
    from codeop import compile_command
    from warnings import catch_warnings, simplefilter

    def is_complete(text: str) -> bool:
        if text.rpartition("\n")[2].lstrip(" ") and text.rpartition("\n")[2].startswith(" "):
            return False  # the block may go on: an empty line ends it
        with catch_warnings():
            simplefilter("ignore")
            try:
                return compile_command(text + "\n" * ("\n" not in text.strip()), symbol="exec") is not None
            except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
                return True  # more lines will not help

    return is_complete


def _binary() -> str:
    """Monty itself. One thread at a time looks for it: `sysconfig`, which tells where, is not safe for several.

    The module that finds it is loaded without its package, which takes a third of a first run to import.
    """
    from importlib.util import find_spec, module_from_spec, spec_from_file_location
    from pathlib import Path

    package = find_spec("pydantic_monty")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'pydantic_monty'", name="pydantic_monty")
    spec = spec_from_file_location("pydantic_monty._binary", Path(package.origin).with_name("_binary.py"))
    assert spec is not None and spec.loader is not None
    with _LOOKING:
        spec.loader.exec_module(module := module_from_spec(spec))
        return str(Path(module.find_monty_binary()).resolve())


_LOOKING = Lock()


PYTHON = Language(
    name="python",
    suffix=".py",
    comment="#",
    lexer="python",
    lexis=Lexis(
        r"""(?P<begin> [bBfFrRuU]{0,2}(?:\"\"\"|\'\'\')) | (?P<comment> \#[^\n]*+)
        | (?P<string> [bBfFrRuU]{0,2}(?:"(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'?))""",
        lines_end=True,
    ),
    first_index=0,
    nothing="None",
    engine="python.vm:MontyVM",
    packages=("pydantic_monty", "typing_extensions"),
    extra="python",
    binary=_binary,
    explain=on_first_use("python.explain", "explain"),
    completeness=_completeness,
    keywords=frozenset(keyword.kwlist),
    parameter_aliases=frozenset({"python", "python_code", "py"}),
    ordered=True,
    look=on_first_use("python.check", "look"),
    reader="moonbox.languages.python.reading",
    vocabulary=on_first_use("python.check", "vocabulary"),
    describe=on_first_use("python.stubs", "describe"),
)
