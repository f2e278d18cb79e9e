"""sqlite-vec, loaded into one connection."""

from __future__ import annotations

import ctypes
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.errors import MissingExtra
from moonbox.knowledge.errors import KnowledgeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["connect_with_vectors"]

_lock = threading.Lock()  # guards SQLite's process-wide list of extensions, not state of ours


def connect_with_vectors(connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """What `connect` opens, with the functions of sqlite-vec."""
    try:
        import sqlite_vec  # type: ignore[import-untyped]  # ships no types
    except ImportError:
        raise MissingExtra("sqlite-vec", "semantic", "semantic search") from None
    path = sqlite_vec.loadable_path()
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        db = connect()
        db.enable_load_extension(True)
        try:
            db.load_extension(path)
        except sqlite3.Error as error:
            db.close()
            raise KnowledgeError(f"sqlite-vec cannot be loaded: {error}") from error
        db.enable_load_extension(False)
        return db
    return _connect_through_the_library(path, connect)


def _connect_through_the_library(path: str, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """Many builds of Python leave `load_extension` out, while the SQLite library that they use still has it all."""
    try:
        import _sqlite3

        library = ctypes.CDLL(_sqlite3.__file__)  # finds the symbols of the library that it is linked with
        extension = ctypes.CDLL(next(str(file) for file in Path(path).parent.glob(Path(path).name + ".*")))
        start = ctypes.cast(extension.sqlite3_vec_init, ctypes.c_void_p)
        register, cancel = library.sqlite3_auto_extension, library.sqlite3_cancel_auto_extension
    except (ImportError, AttributeError, OSError, StopIteration) as error:
        raise KnowledgeError(
            "semantic search needs a Python whose sqlite3 module can load extensions; this one cannot "
            f"({error or type(error).__name__})"
        ) from error
    with _lock:
        register(start)
        try:
            db = connect()
        finally:
            cancel(start)
    try:
        db.execute("SELECT vec_version()")
    except sqlite3.Error as error:
        db.close()
        raise KnowledgeError(f"sqlite-vec cannot be loaded: {error}") from error
    return db
