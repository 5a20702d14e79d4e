"""What both `await` and `async with` can open."""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Generator, Generic, TypeVar

T = TypeVar("T", bound=Any)


class Opening(Generic[T]):
    """`await` gives the object. `async with` gives it, too, and closes it at the end of the block."""

    def __init__(self, open_it: Callable[[], Awaitable[T]]) -> None:
        self._open = open_it

    def __await__(self) -> Generator[Any, None, T]:
        return self._open().__await__()

    async def __aenter__(self) -> T:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        await self._opened.close()
