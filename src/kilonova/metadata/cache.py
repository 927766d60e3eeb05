"""A bounded cache whose entries expire; guests ask for many documents in a row, all from the same record."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from kilonova.base import clock

T = TypeVar("T")

MOST = 10_000


class Cache(Generic[T]):
    """Entries live `seconds` (0: nothing is kept); of too many the oldest go. Failures are not kept."""

    def __init__(self, seconds: float, most: int = MOST, now: Callable[[], float] = clock.monotonic) -> None:
        self._seconds = seconds
        self._most = most
        self._now = now
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[float, T]] = OrderedDict()

    def get(self, key: str, make: Callable[[], T]) -> T:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] > self._now():
                return entry[1]
        value = make()
        if self._seconds > 0:
            with self._lock:
                self._entries.pop(key, None)
                self._entries[key] = (self._now() + self._seconds, value)
                while len(self._entries) > self._most:
                    self._entries.popitem(last=False)
        return value

    def forget(self, key: str) -> None:
        with self._lock:
            self._entries.pop(key, None)
