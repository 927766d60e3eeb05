"""nova-manage on single servers: from the same databases, the peer's and ours end with the same code and record.

Needs PEER_PYTHON (a Python with the peer in it); databases are SQLite.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.needs import check
from tests.unit.cmd.cloud import Cloud
from tests.unit.cmd.conftest import cloud, made

from kilonova.base import ids
from kilonova.contract import objects
from kilonova.contract.context import admin
from kilonova.db import query
from kilonova.db.api import instance_mappings
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.cell.tables import BLOCK_DEVICE_MAPPING
from kilonova.db.objects import request_spec

PEER = os.environ.get("PEER_PYTHON")
check("peer", module=True)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

__all__ = ["cloud", "made"]

ANSWERED = {"show": 0, "get_machine_type": 0, "list_unset_machine_type": 3}
"""Actions with an output for programs, and the exit code that comes with it; other words are each one's own."""

NOWHERE = "99999999-9999-4999-8999-999999999999"
VOLUME = "22222222-2222-4222-8222-222222222222"
CONNECTION = {"driver_volume_type": "local", "data": {"device_path": "/dev/x", "n": 1}, "serial": VOLUME}


class Pair:
    """A cloud, and a copy of it that is the peer's."""

    def __init__(
        self,
        ours: Cloud,
        peer: Callable[..., tuple[int, str]],
        folder: pathlib.Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.ours = ours
        self.peer = peer
        self.folder = folder
        self.capsys = capsys

    def server(self, properties: dict[str, str] | None = None, **values: Any) -> str:
        kept = {f"image_{name}": value for name, value in (properties or {}).items()} | {"other": "kept"}
        new = {"project_id": "p", "user_id": "u", "vm_state": "stopped", "system_metadata": kept, **values}
        uuid = str(self.ours.cell.run(instances.instance_create, new)["uuid"])
        cell = next(iter(self.ours.cells().values()))
        mapping = {"instance_uuid": uuid, "project_id": "p", "user_id": "u", "cell_id": cell["id"]}
        self.ours.api.run(instance_mappings.instance_mapping_create, mapping)
        spec = objects.RequestSpec(
            instance_uuid=uuid,
            image=objects.ImageMeta(properties=objects.ImageMetaProps()),
            num_instances=1,
            availability_zone=None,
            pci_requests=objects.InstancePCIRequests(requests=[]),
        )
        self.ours.api.run(request_spec.create, admin(), spec)
        return uuid

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code, the same of both, and the output of ours; servers and nodes are the same afterwards."""
        theirs = self._copy()
        code, shown = self.peer("--config-file", str(theirs.conf), *words)
        self.capsys.readouterr()
        ours = self.ours.run(*words)
        out = self.capsys.readouterr().out
        assert ours == code, (words, shown, out)
        assert _state(self.ours) == _state(theirs), words
        theirs.api.dispose()
        theirs.cell.dispose()
        if code == ANSWERED.get(words[1]):
            same = json.loads if "--json" in words else _words
            assert same(out) == same(shown), words
        return ours, out

    def _copy(self) -> Cloud:
        self.folder.mkdir(exist_ok=True)
        for name in ("api.db", "cell.db"):
            # Not a copy of the file: connections that are open keep some of it in a log beside it.
            source, target = sqlite3.connect(self.ours.folder / name), sqlite3.connect(self.folder / name)
            with contextlib.closing(source), contextlib.closing(target):
                source.backup(target)
        theirs = Cloud(self.folder)
        cells = f"UPDATE cell_mappings SET database_connection = 'sqlite:///{self.folder}/cell.db'"
        with theirs.api.write() as tx:
            tx.exec_driver_sql(cells)
        theirs.api.dispose()
        return theirs


@pytest.fixture(scope="module")
def peer() -> Iterator[Callable[..., tuple[int, str]]]:
    """Exit code and output of the peer's nova-manage."""
    script = pathlib.Path(__file__).with_name("peer_manage.py")
    with subprocess.Popen([str(PEER), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdin
        assert made.stdout
        asked, answered = made.stdin, made.stdout

        def run(*words: str) -> tuple[int, str]:
            print(json.dumps(words), file=asked, flush=True)
            code, shown = json.loads(answered.readline())
            return code, shown

        yield run


def _words(text: str) -> list[str]:
    """What a table says, without its lines; times as both write them."""
    return re.findall(r"[^\s|+]+", re.sub(r"-{3,}", "", text))


def _state(cloud: Cloud) -> Any:
    """What the actions may change: servers, their system metadata, nodes, images of request specs."""
    rows = cloud.cell.query(instances.instance_list, {}, (("uuid", "asc"),), None, None, ("system_metadata",))
    specs = {}
    for row in rows:
        spec = cloud.api.query(request_spec.get_by_instance_uuid, admin(), row["uuid"])
        properties = spec.image.properties
        specs[row["uuid"]] = {n: getattr(properties, n) for n in properties.fields if properties.obj_attr_is_set(n)}
    nodes = cloud.cell.query(compute_nodes.compute_node_list)
    return (
        [(row["uuid"], row["host"], row["locked"], row["system_metadata"]) for row in rows],
        [(node["uuid"], node["host"], node["service_id"]) for node in nodes],
        specs,
    )


@pytest.fixture
def pair(
    cloud: Cloud,
    peer: Callable[..., tuple[int, str]],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> Pair:
    cloud.create_cell()
    return Pair(cloud, peer, tmp_path / "theirs", capsys)


def test_machine_types(pair: Pair) -> None:
    plain, q35, active = pair.server(), pair.server({"hw_machine_type": "pc-q35-5.2"}), pair.server(vm_state="active")
    assert pair.run("libvirt", "get_machine_type", q35)[0] == 0
    assert pair.run("libvirt", "get_machine_type", plain)[0] == 3
    assert pair.run("libvirt", "get_machine_type", NOWHERE)[0] == 2
    assert pair.run("libvirt", "list_unset_machine_type")[0] == 3
    update = ("libvirt", "update_machine_type")
    assert pair.run(*update, plain, "virt-6.2")[0] == 0
    assert pair.run(*update, q35, "pc-q35-4.2")[0] == 4
    assert pair.run(*update, q35, "nonsense")[0] == 5
    assert pair.run(*update, active, "q35")[0] == 3
    assert pair.run(*update, "--force", active, "q35")[0] == 0
    assert pair.run("libvirt", "list_unset_machine_type")[0] == 0


def test_image_properties(pair: Pair) -> None:
    stopped, active = pair.server({"hw_disk_bus": "virtio"}), pair.server(vm_state="active")
    assert pair.run("image_property", "show", stopped, "hw_disk_bus")[0] == 0
    assert pair.run("image_property", "show", stopped, "hw_cdrom_bus")[0] == 3
    change = ("image_property", "set", stopped, "--property")
    assert pair.run(*change, "hw_disk_bus=scsi", "--property", "hw_cdrom_bus=sata")[0] == 0
    assert pair.run(*change, "hw_disk_bus")[0] == 4
    assert pair.run(*change, "hw_no_such_thing=1")[0] == 5
    assert pair.run(*change, "hw_disk_bus=abacus")[0] == 6
    assert pair.run("image_property", "set", active, "--property", "hw_disk_bus=scsi")[0] == 3
    assert pair.run("image_property", "set", NOWHERE, "--property", "hw_disk_bus=scsi")[0] == 2


def test_volume_attachment(pair: Pair, tmp_path: pathlib.Path) -> None:
    uuid = pair.server(host="h")
    values = {
        "instance_uuid": uuid,
        "volume_id": VOLUME,
        "uuid": ids.new_uuid(),
        "source_type": "volume",
        "destination_type": "volume",
        "device_name": "/dev/vdb",
        "attachment_id": NOWHERE,
        "connection_info": json.dumps(CONNECTION),
        "boot_index": 0,
        "delete_on_termination": True,
    }
    pair.ours.cell.run(query.insert, BLOCK_DEVICE_MAPPING, values)
    show = ("volume_attachment", "show", uuid)
    for words in ((), ("--json",), ("--connection_info",), ("--connection_info", "--json")):
        assert pair.run(*show, VOLUME, *words)[0] == 0
    assert pair.run(*show, NOWHERE)[0] == 3
    connector = tmp_path / "connector"
    refresh = ("volume_attachment", "refresh", uuid, VOLUME, str(connector))
    assert pair.run(*refresh)[0] == 2
    connector.write_text("{")
    assert pair.run(*refresh)[0] == 3
    connector.write_text('{"host": "h"}')
    assert pair.run("volume_attachment", "refresh", NOWHERE, VOLUME, str(connector))[0] == 4
    assert pair.run("volume_attachment", "refresh", uuid, NOWHERE, str(connector))[0] == 6
    pair.ours.cell.run(instances.instance_update, uuid, {"vm_state": "active"})
    assert pair.run(*refresh)[0] == 5


def test_ironic_node(pair: Pair) -> None:
    for host, down in (("old", True), ("new", False), ("dead", True)):
        values = {"host": host, "binary": "nova-compute", "topic": "compute", "version": 74, "report_count": 0}
        pair.ours.cell.run(services.service_create, {**values, "forced_down": down, "disabled": False})
    pair.ours.node("old")
    node = pair.ours.cell.query(compute_nodes.compute_node_get_by_host, "old", "old")
    old = pair.ours.cell.query(services.service_get_by_host, "old", "nova-compute")
    pair.ours.cell.run(compute_nodes.compute_node_update, node["id"], {"service_id": old["id"]})
    pair.server(host="old", node="old", vm_state="active")
    move = ("db", "ironic_compute_node_move", "--ironic-node-uuid", node["uuid"], "--destination-host")
    assert pair.run(*move, "dead")[0] == 255
    assert pair.run(*move, "nobody")[0] == 255
    assert pair.run(*move, "new")[0] == 0
