"""Writes go through `Database.run`, which repeats what lost to another transaction."""

from __future__ import annotations

from pathlib import Path

SOURCES = Path(__file__).parents[3] / "src" / "kilonova"

ONCE = {
    "db/engine.py": "is where `run` is made of it",
    "cloud/services/kilonova.py": "a new cloud's records, before any service runs",
}


def test_no_transaction_is_written_but_once() -> None:
    found = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.py")
        if ".write() as tx" in file.read_text() or "self.write() as" in file.read_text()
    }
    assert found == set(ONCE)


def test_no_transaction_is_read_but_once() -> None:
    found = {str(file.relative_to(SOURCES)) for file in SOURCES.rglob("*.py") if ".read() as tx" in file.read_text()}
    assert found == {"db/engine.py"}, "Database.query repeats what a lost connection took"
