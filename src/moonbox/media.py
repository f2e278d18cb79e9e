"""Media: images, audio and files that tools return and take. Scripts see a small handle, never the bytes.

A handle is plain data: `{media = "moonbox://media/…", type = "image/png", size = 1234, name = "a.png", hash = "…"}`.
Its address cannot be guessed, and means something only in the Repl that was given the medium.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from moonbox.closing import during
from moonbox.errors import ConversionError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

PREFIX = "moonbox://media/"
MAX_BYTES = 64 * 1024 * 1024
"""What one Repl keeps; one medium may take a quarter of it."""
_MAX_COUNT = 1000
_MOST_FOUND = 20
_MOST_SEARCHED = 20_000
_TYPE = r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*"
_NAME = r"[^\w. ()-]"
_UNKNOWN = "this medium is unknown here: it was never given to this Repl, or has been dropped to make room"
_SCHEMA = {
    "type": "object",
    "description": "An image, audio clip or file, as a tool returned it.",
    "properties": {
        "media": {"type": "string"},
        "type": {"type": "string"},
        "size": {"type": "integer"},
        "name": {"type": "string"},
        "hash": {"type": "string"},
    },
    "required": ["media"],
}


class Media:
    """An image, an audio clip or a file: its bytes, its MIME type and its name.

    A tool returns one, alone or within other data, or takes one as a parameter. Without a `type`, the name's ending or
    the first bytes decide.
    """

    __slots__ = ("address", "data", "name", "type")

    def __init__(self, data: bytes, type: str = "", name: str = "") -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise UsageError(f"Media takes bytes, not {data.__class__.__name__}")
        import mimetypes  # here and below: most runs have no media, and these are slow to load
        from secrets import token_urlsafe

        self.data = bytes(data)
        """Its bytes."""
        self.type = (type or mimetypes.guess_type(name)[0] or _guessed(self.data)).lower()
        """Its MIME type."""
        if not re.fullmatch(_TYPE, self.type):
            raise UsageError(f"{type!r} is not a MIME type such as image/png")
        self.name = re.sub(_NAME, "_", name.replace("\\", "/").rpartition("/")[2]).strip(". ")[:100] or _named(
            self.type
        )
        """The name of a file: without folders, and safe to write."""
        self.address = PREFIX + token_urlsafe(16)
        """How handles name it."""

    @classmethod
    def from_file(cls, path: str | Path, type: str = "") -> Media:
        """A file's contents."""
        from pathlib import Path

        return cls(Path(path).read_bytes(), type, Path(path).name)

    @classmethod
    def from_base64(cls, text: str, type: str = "", name: str = "") -> Media:
        """From the text form in which protocols send bytes; UsageError where it is none."""
        from base64 import b64decode

        try:
            return cls(b64decode(text, validate=True), type, name)
        except ValueError:
            raise UsageError("the data is not base64") from None

    @classmethod
    def from_picture(cls, picture: Any) -> Media:
        """A PIL image or a matplotlib figure, as PNG."""
        from io import BytesIO

        buffer = BytesIO()
        if hasattr(picture, "savefig"):
            picture.savefig(buffer, format="png")
        else:
            picture.save(buffer, format="PNG")
        return cls(buffer.getvalue(), "image/png")

    @property
    def kind(self) -> str:
        """What it is for a model: image, audio or file."""
        main = self.type.partition("/")[0]
        return main if main in ("image", "audio") else "file"

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def base64(self) -> str:
        from base64 import b64encode

        return b64encode(self.data).decode("ascii")

    @property
    def data_uri(self) -> str:
        return f"data:{self.type};base64,{self.base64}"

    def save(self, folder: str | Path) -> Path:
        """Write it into a folder under its name, or a numbered one: no file is ever replaced."""
        from pathlib import Path

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        stem, dot, ending = self.name.rpartition(".")
        stem, ending = (stem, dot + ending) if stem else (self.name, "")
        for number in range(1, 10_000):
            path = folder / (self.name if number == 1 else f"{stem}-{number}{ending}")
            try:
                with path.open("xb") as file:
                    file.write(self.data)
            except FileExistsError:
                continue
            return path
        raise FileExistsError(f"{folder} has too many files named {self.name}")

    def __repr__(self) -> str:
        return f"<Media {self.name}: {self.type}, {self.size:,} bytes>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Media):
            return NotImplemented
        return (self.data, self.type, self.name) == (other.data, other.type, other.name)

    def __hash__(self) -> int:
        return hash((self.data, self.type, self.name))

    def handle(self) -> dict[str, Any]:
        """What scripts and records have of it."""
        from hashlib import sha256

        digest = sha256(self.data).hexdigest()[:16]
        return {"media": self.address, "type": self.type, "size": self.size, "name": self.name, "hash": digest}

    def __moonbox_lower__(self) -> dict[str, Any]:
        """As it crosses to a script: kept for the Repl that is given it."""
        store = ACTIVE_STORE.get()
        if store is not None:
            store.keep(self)
        return self.handle()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(cls._validated)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(_SCHEMA)

    @classmethod
    def _validated(cls, value: Any) -> Media:
        if isinstance(value, Media):
            return value
        store = ACTIVE_STORE.get()
        medium = store.get(value) if store is not None else None
        if medium is None:
            raise ValueError(_UNKNOWN)
        return medium


class MediaStore:
    """The media that one Repl was given; the oldest are dropped when they take too much."""

    _size = 0
    _added = 0

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self.kept: OrderedDict[str, Media] = OrderedDict()
        """By their addresses, the oldest first; only the store itself changes it."""

    def active(self) -> AbstractContextManager[None]:
        """Within the block, media that tools return are kept in this store, and handles are looked up in it."""
        return during(ACTIVE_STORE, self)

    def keep(self, medium: Media) -> None:
        """Take one in; ConversionError where it is too large."""
        if medium.size > self._max_bytes // 4:
            raise ConversionError(
                f"{medium.name} has {medium.size:,} bytes; one medium may have {self._max_bytes // 4:,}", limit="string"
            )
        with self._lock:
            if medium.address in self.kept:
                return
            self.kept[medium.address] = medium
            self._added += 1
            self._size += medium.size
            while self._size > self._max_bytes or len(self.kept) > _MAX_COUNT:
                _, old = self.kept.popitem(last=False)
                self._size -= old.size

    def since(self, added: int) -> tuple[int, list[Media]]:
        """How many were ever taken in, and those after the first `added` that are still there."""
        if added == self._added:
            return added, []
        with self._lock:
            return self._added, list(self.kept.values())[added - self._added :]

    def get(self, handle: Any) -> Media | None:
        """By its handle, or by the address in it."""
        address = handle.get("media") if isinstance(handle, dict) else handle
        return self.kept.get(address) if isinstance(address, str) else None

    def found_in(self, values: Iterable[Any]) -> tuple[Media, ...]:
        """The media whose handles are in these values, each once."""
        media: dict[str, Media] = {}
        waiting, searched = [*values][::-1], 0
        while waiting and len(media) < _MOST_FOUND and searched < _MOST_SEARCHED:
            item = waiting.pop()
            searched += 1
            if type(item) is dict:
                medium = self.get(item)
                if medium is not None:
                    media[medium.address] = medium
                else:
                    waiting += list(item.values())[:_MOST_SEARCHED][::-1]
            elif type(item) is list:
                waiting += item[:_MOST_SEARCHED][::-1]
        return tuple(media.values())


def is_handle(value: Any) -> bool:
    """Whether a value looks like the handle of a medium."""
    return type(value) is dict and isinstance(value.get("media"), str) and value["media"].startswith(PREFIX)


ACTIVE_STORE: ContextVar[MediaStore | None] = ContextVar("moonbox_media_store", default=None)
"""The store of the Repl for which values cross now; `MediaStore.active` sets it."""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


def _guessed(data: bytes) -> str:
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "application/octet-stream")
    return next((kind for start, kind in _SIGNATURES if data.startswith(start)), "application/octet-stream")


def _named(kind: str) -> str:
    import mimetypes

    main = kind.partition("/")[0]
    return (main if main in ("image", "audio", "video") else "file") + (
        mimetypes.guess_extension(kind) or {"audio/wav": ".wav", "audio/flac": ".flac"}.get(kind, "")
    )
