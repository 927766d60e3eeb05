"""Transactions that a database takes back."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.db.engine import Database


def lose_next_commit(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next transaction is lost when it is committed, as a Galera node may say then."""
    real, lost = database.write, []

    @contextlib.contextmanager
    def write() -> Iterator[Any]:
        with real() as tx:
            yield tx
            if not lost:
                lost.append(True)
                raise sa.exc.OperationalError("COMMIT", None, sqlite3.OperationalError("database is locked"))

    monkeypatch.setattr(database, "write", write)
