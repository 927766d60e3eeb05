"""What the peer's API and operators change through objects: our conductor answers as the peer's own objects do.

Set PEER_PYTHON to an interpreter that has the peer, TEST_TRANSPORT_URL to a message broker.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.needs import needs
from tests.unit.db.conftest import templates  # noqa: F401 - fixture

from kilonova import conf as options
from kilonova.base import ids
from kilonova.conductor.objects.service import ObjectService
from kilonova.db.cells import Cells
from kilonova.wire.rpc.bus import Bus

PEER = os.environ.get("PEER_PYTHON")
BROKER = os.environ.get("TEST_TRANSPORT_URL")
SCRIPT = str(pathlib.Path(__file__).with_name("peer_control.py"))
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(900),
    needs("peer", "transport-url"),
]


def said(*arguments: str) -> dict[str, Any]:
    ran = subprocess.run([str(PEER), SCRIPT, *arguments], capture_output=True, text=True, timeout=900)
    found = dict(json.loads(line) for line in ran.stdout.splitlines())
    assert "end" in found, ran.stderr[-3000:]
    return found


def databases(templates: pathlib.Path, to: pathlib.Path) -> tuple[str, str]:  # noqa: F811
    to.mkdir()
    for name in ("api", "cell"):
        shutil.copy(templates / f"{name}.db", to / f"{name}.db")
    return f"sqlite:///{to}/api.db", f"sqlite:///{to}/cell.db"


@pytest.fixture
def ours(templates: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[tuple[str, str]]:  # noqa: F811
    api, cell = databases(templates, tmp_path / "ours")
    conf = options.load([])
    conf.set_override("connection", api, group="api_database")
    conf.set_override("connection", cell, group="database")
    bus = Bus(conf, BROKER)
    conf.set_override("control_exchange", f"test-{ids.new_uuid()}")
    cells = Cells(conf)
    conductor = bus.serve("conductor", "c1", [ObjectService(cells, conf)])
    conductor.start()
    yield str(conf.control_exchange), cell
    conductor.stop()
    conductor.wait(5)
    bus.close()
    cells.dispose()


def test_our_conductor_answers_as_the_peers_own_objects(
    ours: tuple[str, str],
    templates: pathlib.Path,  # noqa: F811
    tmp_path: pathlib.Path,
) -> None:
    by_peer = said("database", *databases(templates, tmp_path / "peers"))
    by_us = said("bus", str(BROKER), *ours)
    assert by_us.keys() == by_peer.keys()
    assert {step: (by_us[step], by_peer[step]) for step in by_us if by_us[step] != by_peer[step]} == {}
