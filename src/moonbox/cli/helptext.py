"""Help for people: what an option takes in one word, without the names of Python types."""

from __future__ import annotations

from typing import Any

__all__ = ["HELP_NAMES", "tidy", "tidy_options"]

HELP_NAMES = ["--help", "-h"]
_WORDS = {"str": "TEXT", "int": "N", "float": "N", "list[str]": "TEXT", "path": "PATH"}


def tidy(command: Any) -> Any:
    """The command, and those below it, with readable help."""
    tidy_options(command.params)
    # The option --help is made for a context and then kept.
    about = command.get_help_option(command.context_class(command, help_option_names=HELP_NAMES))
    if about is not None:
        tidy_options([about])
    for child in getattr(command, "commands", {}).values():
        tidy(child)
    return command


def tidy_options(params: list[Any]) -> None:
    for param in params:
        if param.param_type_name == "argument":
            _tidy_argument(param)
        elif param.metavar is None:
            param.metavar = "" if getattr(param, "is_flag", False) else _WORDS.get(param.bare_type())


def _tidy_argument(argument: Any) -> None:
    """Its name says what it is; brackets and dots are put around it where it is used."""
    vars(argument)["display_type_rich"] = lambda ctx: None
    if argument.metavar is not None:
        argument.metavar = argument.metavar.replace("...", "").strip("[]")
