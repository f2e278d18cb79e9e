"""The words for models, one file for each language; read by `load`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources

__all__ = ["Texts", "load"]


@dataclass(frozen=True, slots=True)
class Texts:
    """What a model is told about the code tool of one language."""

    name: str
    parameter: str
    parameter_description: str
    fence: str
    description: str
    with_tools: str
    catalog_title: str
    names_title: str
    search_title: str
    system_prompt: str
    system_prompt_without_tools: str
    limits: str = ""
    """What one script may spend; `{what}` is filled in."""
    call: str = "{name}"
    """How a script writes a call of a tool."""
    separator: str = "."
    """Between a namespace and a tool's name."""

    def written(self, alias: str) -> str:
        """A tool's name as scripts write it."""
        return alias.replace(".", self.separator)


def load(language: str) -> Texts:
    data = tomllib.loads(
        resources.files("moonbox.languages").joinpath(language, "texts.toml").read_text(encoding="utf-8")
    )
    return Texts(**{key: value.strip() for key, value in data.items()})
