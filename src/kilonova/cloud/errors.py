"""Failures that the person at the terminal can act on."""

from __future__ import annotations

from pathlib import Path


class CloudError(Exception):
    """A step could not be done. `log` is the file that says why."""

    def __init__(self, message: str, log: Path | None = None) -> None:
        super().__init__(message)
        self.log = log
