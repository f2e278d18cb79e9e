"""The package's face."""

from __future__ import annotations

import subprocess
import sys

import moonbox.knowledge


def test_every_exported_name_is_there() -> None:
    for name in moonbox.knowledge.__all__:
        assert getattr(moonbox.knowledge, name) is not None
    assert dir(moonbox.knowledge) == sorted(moonbox.knowledge.__all__)
    assert not hasattr(moonbox.knowledge, "nothing")


def test_searching_loads_nothing_heavy() -> None:
    program = (
        "import sys; from moonbox.knowledge import KnowledgeBase; "
        "print([name for name in ('pydantic', 'httpx', 'rich', 'pypdf', 'sqlite_vec', 'numpy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
