"""The words for models: what a language's `texts.toml` holds."""

from __future__ import annotations

from moonbox.dataclass import dataclass

__all__ = ["Texts"]


@dataclass(frozen=True, slots=True)
class Texts:
    """What a model is told about the code tool of one language, and about the values of its scripts."""

    name: str
    parameter: str
    parameter_description: str
    fence: str
    description: str
    with_tools: str
    catalog_title: str
    names_title: str
    search_title: str
    lean: str
    """The whole description of the code tool where every tool is shown directly too."""
    lean_namespaces: str
    """How a script writes the tool of a namespace, there."""
    lean_results: str
    """Before what tools return, there; `{results}` is filled in."""
    not_in_scripts: str
    """Which of the tools beside the code tool scripts cannot call; `{names}` is filled in."""
    also_in_scripts: str
    """Which of the tools beside the code tool scripts call too; `{names}` is filled in."""
    system_prompt: str
    system_prompt_without_tools: str
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
    limits: str = ""
    """What one script may spend; `{what}` is filled in."""
    call: str = "{name}"
    """How a script writes a call of a tool."""
    tool: str = "{name}"
    """How a script writes a tool."""
    separator: str = "."
    """Between a namespace and a tool's name."""

    def written(self, alias: str) -> str:
        """A tool's name as scripts write it behind `tools`, or alone where there is no such table."""
        return alias.replace(".", self.separator)
