"""Servers of two cells are each seen once, whatever they are sorted by."""

from __future__ import annotations

from pathlib import Path

from tests.unit.db.conftest import copied
from tests.unit.db.orders import check_every_order


def test_r19_each_server_is_seen_once_in_every_order(templates: Path, tmp_path: Path) -> None:
    cells = []
    for name in ("zero", "one"):
        (tmp_path / name).mkdir()
        cells.append(copied(templates, tmp_path / name)[1])
    check_every_order(cells)
    for cell in cells:
        cell.dispose()
