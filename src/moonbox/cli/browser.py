"""Opening addresses in a browser without showing them to the other users of the machine."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}">
<title>moonbox</title>
<a href="{0}">Continue to moonbox</a>
"""


@contextlib.contextmanager
def private_browser() -> Iterator[Callable[[str], None]]:
    """A function that opens an address in the browser, through a file that only this user can read.

    Every user can read the command line of a browser, and a key in the address with it. The file is deleted at the end.
    """
    with tempfile.TemporaryDirectory(prefix="moonbox-") as folder:  # only its owner can enter it

        def visit(address: str) -> None:
            import webbrowser

            file = Path(folder, "open.html")
            file.touch(0o600)
            file.write_text(_PAGE.format(escape(address)), encoding="utf-8")
            webbrowser.open(file.as_uri())

        yield visit
