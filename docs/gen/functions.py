"""The reference of host functions, from the functions' own documentation."""

from __future__ import annotations

from gen.table import GENERATED
from moonbox.scripts.hostapi.api import HostApi
from moonbox.scripts.hostapi.grants import Grants

INTRO = f"""{GENERATED}

# Host functions

[Tool scripts](../tool-scripts.md) and connector scripts can call these functions. Without its grant, a function raises
`not_granted`, and the message has the line of configuration to add. In a script, `docs["http.get"]` returns the same
text.
"""


def page() -> str:
    parts = [INTRO.strip()]
    grants = Grants(http=("api.example.com",), env=("KEY",), read=("data",), write=("out",))
    with HostApi(grants) as api:
        group = ""
        for name, function in api.functions.items():
            if name.partition(".")[0] != group:
                group = name.partition(".")[0]
                parts.append(f"## {group}")
            needs = " or ".join(f"`{key}`" for key in function.needs)
            title = f"### {name}" + (f"\n\nNeeds the grant {needs}." if needs else "")
            parts.append(f"{title}\n\n```text\n{function.doc}\n```")
    return "\n\n".join(parts) + "\n"
