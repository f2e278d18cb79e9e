"""moonbox.toml: where it is found, one reader, and the settings of each section.

file.py        the file: found, read, its variables expanded
reader.py      a table as a settings model, and what is wrong with it
sections.py    [sandbox], [limits], [audit], [journal], [tools], [codemode], [knowledge], [serve]
mcp.py         [mcp.servers.<name>]
sources.py     [openapi.<name>], [sql.<name>]

The models hold plain data. The packages above make their own objects of them.
"""

from __future__ import annotations

from moonbox.config.file import FILE_NAME, SECTIONS, Config, find

__all__ = ["FILE_NAME", "SECTIONS", "Config", "find"]
