"""Records: what is kept of servers from one start to the next, in files that only the user can read."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from moonbox.audit.chain import json_object


def record_name(*key: Any) -> str:
    """The name of the record of whatever the key describes."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


class Records:
    """A folder of records, each a file of at most `max_bytes`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes

    def read(self, name: str) -> dict[str, Any]:
        """The record; empty if there is none that can be used."""
        path = self._path(name)
        try:
            return json_object(path.read_bytes()) if path.stat().st_size <= self._max_bytes else {}
        except OSError:
            return {}

    def write(self, name: str, data: dict[str, Any]) -> None:
        """Replace the record at once; one that is too long is not kept."""
        text = json.dumps(data).encode()
        if len(text) > self._max_bytes:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.folder)  # made with mode 0600
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        Path(temporary).replace(self._path(name))

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"
