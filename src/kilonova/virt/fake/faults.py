"""Injected failures and delays of the fake driver: which call fails how, set by tests or read from a JSON file.

The file holds a list of rules, for example
`[{"method": "spawn", "host": "h1", "calls": [1, 3], "exception": "ComputeResourcesUnavailable", "message": "no"}]`.
It is read again when it changes, so that a running process can be told.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import json
import pathlib
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kilonova.contract import exceptions


@dataclasses.dataclass(frozen=True, eq=False)
class Fault:
    """Fails the calls of `method` (on `host`, for `instance`) that are counted in `calls`; unset matches all."""

    method: str
    error: Callable[[], Exception]
    host: str | None = None
    instance: str | None = None
    calls: Collection[int] | None = None
    """1 is the first call of the method that host and instance let through."""
    after: bool = False
    """Raise after the work was done instead of before."""

    def matches(self, method: str, host: str, instance: str | None) -> bool:
        return self.method == method and self.host in (None, host) and self.instance in (None, instance)


class Faults:
    """The rules in force. Thread-safe."""

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._rules: list[Fault] = []
        self._from_file: list[Fault] = []
        self._counts: collections.Counter[Fault] = collections.Counter()
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._rules.append(fault)

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()
            self._counts.clear()

    def due(self, method: str, host: str, instance: str | None) -> Fault | None:
        """Count a call; the rule that says it fails, if one does."""
        with self._lock:
            self._reload()
            hit = None
            for fault in (*self._rules, *self._from_file):
                if fault.matches(method, host, instance):
                    self._counts[fault] += 1
                    if fault.calls is None or self._counts[fault] in fault.calls:
                        hit = hit or fault
            return hit

    def _reload(self) -> None:
        if self._path is None:
            return
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            self._from_file, self._stamp = [], None
            return
        stamp = (stat.st_mtime_ns, stat.st_size)
        if stamp != self._stamp:
            self._from_file = [parse(rule) for rule in json.loads(self._path.read_text())]
            self._stamp = stamp


def parse(rule: Mapping[str, Any]) -> Fault:
    """A rule of the file. Raises ValueError for a class that is no exception, KeyError without a method."""
    cls = error_class(rule.get("exception", "NovaException"))
    message = rule.get("message", f"injected failure of {rule['method']}")
    return Fault(
        method=rule["method"],
        error=lambda: cls(message),
        host=rule.get("host"),
        instance=rule.get("instance"),
        calls=tuple(rule["calls"]) if rule.get("calls") else None,
        after=bool(rule.get("after", False)),
    )


def error_class(name: str) -> type[Exception]:
    """An exception of the contract or one of Python's own."""
    found = getattr(exceptions, name, None) or getattr(builtins, name, None)
    if not (isinstance(found, type) and issubclass(found, Exception)):
        raise ValueError(f"{name} is no exception")
    return found
