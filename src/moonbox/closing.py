"""What a `with` or `async with` block closes at its end."""

from __future__ import annotations

from typing import Self


class Closing:
    """Something with `close`, which a `with` or `async with` block calls at its end."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
