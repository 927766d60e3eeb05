"""Locks by key in bounded memory: keys share a fixed number of locks."""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Iterable, Iterator


class Stripes:
    """Work on the same key takes turns. Different keys seldom meet: only when they share a lock."""

    def __init__(self, count: int = 64) -> None:
        self._locks = [threading.Lock() for _ in range(count)]

    @contextlib.contextmanager
    def held(self, keys: Iterable[str]) -> Iterator[None]:
        """The locks of all the keys, always taken in the same order: callers cannot block each other for ever."""
        numbers = sorted({zlib.crc32(key.encode()) % len(self._locks) for key in keys})
        with contextlib.ExitStack() as stack:
            for number in numbers:
                stack.enter_context(self._locks[number])
            yield
