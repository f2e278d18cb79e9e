"""The reference of host functions, from the functions' own documentation."""

from __future__ import annotations

from gen.table import GENERATED
from moonbox.scripts.hostapi.api import HostApi
from moonbox.scripts.hostapi.grants import Grants

INTRO = f"""{GENERATED}

# Host functions

What [tool scripts](../tool-scripts.md) and connector scripts find beside the language. A function that needs a grant
raises `not_granted` without it, with the line of configuration that would allow it. In a script, `docs["http.get"]`
gives the same text.
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
