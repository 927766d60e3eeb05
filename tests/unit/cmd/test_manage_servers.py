"""nova-manage on single servers: machine types, image properties, nodes that change their host."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.cmd.cloud import Cloud

from kilonova.base import ids
from kilonova.cmd.manage import machine_types
from kilonova.contract import objects
from kilonova.contract.context import admin
from kilonova.db.api import instance_mappings
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.objects import request_spec

NOWHERE = "99999999-9999-4999-8999-999999999999"


@pytest.fixture
def cell_uuid(cloud: Cloud) -> str:
    return cloud.create_cell()


def server(cloud: Cloud, properties: dict[str, str] | None = None, **values: Any) -> str:
    """A stopped server of the first cell, mapped."""
    recorded = {f"image_{name}": value for name, value in (properties or {}).items()} | {"other": "kept"}
    new = {"project_id": "p", "user_id": "u", "vm_state": "stopped", "system_metadata": recorded, **values}
    uuid = str(cloud.cell.run(instances.instance_create, new)["uuid"])
    cell = next(iter(cloud.cells().values()))
    mapping = {"instance_uuid": uuid, "project_id": "p", "user_id": "u", "cell_id": cell["id"]}
    cloud.api.run(instance_mappings.instance_mapping_create, mapping)
    return uuid


def recorded(cloud: Cloud, uuid: str) -> dict[str, str]:
    row = cloud.cell.query(instances.instance_get, uuid, ("system_metadata",))
    assert row is not None
    return dict(row["system_metadata"])


@pytest.mark.usefixtures("cell_uuid")
class TestMachineTypes:
    def test_get(self, cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
        uuid = server(cloud, {"hw_machine_type": "q35"})
        capsys.readouterr()
        assert cloud.run("libvirt", "get_machine_type", uuid) == 0
        assert capsys.readouterr().out == "q35\n"
        assert cloud.run("libvirt", "get_machine_type", server(cloud)) == 3
        assert cloud.run("libvirt", "get_machine_type", NOWHERE) == 2

    def test_deleted_server_is_not_found(self, cloud: Cloud) -> None:
        uuid = server(cloud, {"hw_machine_type": "q35"})
        cloud.cell.run(instances.instance_destroy, uuid)
        assert cloud.run("libvirt", "get_machine_type", uuid) == 2
        assert cloud.run("libvirt", "update_machine_type", uuid, "q35") == 2

    def test_server_that_is_in_no_cell_yet(self, cloud: Cloud) -> None:
        mapping = {"instance_uuid": NOWHERE, "project_id": "p", "user_id": "u", "cell_id": None}
        cloud.api.run(instance_mappings.instance_mapping_create, mapping)
        assert cloud.run("libvirt", "get_machine_type", NOWHERE) == 2

    def test_update_records_and_keeps_the_rest(self, cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
        uuid = server(cloud)
        assert cloud.run("libvirt", "update_machine_type", uuid, "pc-q35-5.2") == 0
        assert "before: none" in capsys.readouterr().out
        assert cloud.run("libvirt", "update_machine_type", uuid, "pc-q35-7.2") == 0
        assert recorded(cloud, uuid) == {"image_hw_machine_type": "pc-q35-7.2", "other": "kept"}

    @pytest.mark.parametrize(
        ("state", "present", "new", "code"),
        [
            ("active", None, "q35", 3),
            ("error", None, "q35", 3),
            ("shelved", None, "q35", 0),
            ("shelved_offloaded", None, "q35", 0),
            ("stopped", None, "nonsense", 5),
            ("stopped", "pc-q35-7.2", "pc-q35-5.2", 4),
            ("stopped", "q35", "pc-q35-5.2", 4),
            ("stopped", "pc", "q35", 4),
            ("active", "q35", "q35", 0),
        ],
    )
    def test_what_is_refused(self, cloud: Cloud, state: str, present: str | None, new: str, code: int) -> None:
        before = {"hw_machine_type": present} if present else {}
        uuid = server(cloud, before, vm_state=state)
        assert cloud.run("libvirt", "update_machine_type", uuid, new) == code
        assert recorded(cloud, uuid).get("image_hw_machine_type") == (new if code == 0 else present)

    def test_force(self, cloud: Cloud) -> None:
        uuid = server(cloud, {"hw_machine_type": "pc-q35-7.2"}, vm_state="active")
        assert cloud.run("libvirt", "update_machine_type", "--force", uuid, "special") == 0
        assert recorded(cloud, uuid)["image_hw_machine_type"] == "special"

    def test_list_unset(self, cloud: Cloud, cell_uuid: str, capsys: pytest.CaptureFixture[str]) -> None:
        server(cloud, {"hw_machine_type": "q35"})
        server(cloud, vm_state="building")
        assert cloud.run("libvirt", "list_unset_machine_type") == 0
        uuid = server(cloud)
        capsys.readouterr()
        assert cloud.run("libvirt", "list_unset_machine_type", "--cell-uuid", cell_uuid) == 3
        assert capsys.readouterr().out == f"{uuid}\n"
        assert cloud.run("libvirt", "list_unset_machine_type", "--cell-uuid", NOWHERE) == 2

    def test_cell_that_is_down_is_not_passed_over(self, cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
        words = ("--transport-url", "rabbit://z/", "--database_connection", "mysql+pymysql://u:p@127.0.0.1:1/n")
        assert cloud.run("cell_v2", "create_cell", "--name", "down", *words) == 0
        with cloud.conf.open("a") as file:
            file.write("[database]\ndb_max_retries = 0\n")
        assert cloud.run("libvirt", "list_unset_machine_type") == 1
        assert "does not answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("present", "new", "fine"),
    [
        ("pc-i440fx-2.11", "pc-i440fx-3.1", True),
        ("pc-i440fx-3.1", "pc-i440fx-2.11", False),
        ("pc-q35-rhel8.5.0", "pc-q35-rhel8.6.0", True),
        ("pc-q35-rhel8.6.0", "pc-q35-rhel8.5.0", False),
        ("pc-q35-rhel8.6.0", "pc-q35-8.6", False),
        ("pc-2.11", "pc-i440fx-2.11", False),
        ("virt-6.2", "virt-8.0", True),
        ("virt", "virt", True),
        ("special", "q35", True),
        ("s390-ccw-virtio-6.2", "s390-ccw-virtio", False),
    ],
)
def test_steps_between_machine_types(present: str, new: str, fine: bool) -> None:
    assert machine_types.is_step_forward(present, new) is fine


@pytest.mark.usefixtures("cell_uuid")
class TestImageProperties:
    def spec(self, cloud: Cloud, uuid: str) -> None:
        new = objects.RequestSpec(
            instance_uuid=uuid, image=objects.ImageMeta(properties=objects.ImageMetaProps()), num_instances=1
        )
        cloud.api.run(request_spec.create, admin(), new)

    def test_show(self, cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
        uuid = server(cloud, {"hw_disk_bus": "virtio"})
        capsys.readouterr()
        assert cloud.run("image_property", "show", uuid, "hw_disk_bus") == 0
        assert capsys.readouterr().out == "virtio\n"
        assert cloud.run("image_property", "show", uuid, "hw_cdrom_bus") == 3
        assert cloud.run("image_property", "show", NOWHERE, "hw_disk_bus") == 2

    def test_set_reaches_the_record_and_the_scheduler(self, cloud: Cloud) -> None:
        uuid = server(cloud, {"hw_disk_bus": "virtio", "min_disk": "1"}, image_ref=NOWHERE)
        self.spec(cloud, uuid)
        words = (
            "--property",
            "hw_disk_bus=scsi",
            "--property",
            "hw_cdrom_bus=sata",
            "--property",
            "trait:CUSTOM_A=required",
        )
        assert cloud.run("image_property", "set", uuid, *words) == 0
        assert recorded(cloud, uuid) == {
            "image_hw_disk_bus": "scsi",
            "image_hw_cdrom_bus": "sata",
            "image_trait:CUSTOM_A": "required",
            "image_min_disk": "1",
            "other": "kept",
        }
        image = cloud.api.query(request_spec.get_by_instance_uuid, admin(), uuid).image
        assert image.id == NOWHERE
        assert image.min_disk == 1
        assert image.properties.hw_disk_bus == "scsi"
        assert image.properties.hw_cdrom_bus == "sata"
        assert image.properties.traits_required == ["CUSTOM_A"]

    @pytest.mark.parametrize(
        ("state", "words", "code"),
        [
            ("active", ("--property", "hw_disk_bus=scsi"), 3),
            ("stopped", (), 4),
            ("stopped", ("--property", "hw_disk_bus"), 4),
            ("stopped", ("--property", "hw_no_such_thing=1"), 5),
            ("stopped", ("--property", "hw_disk_bus=abacus"), 6),
            ("stopped", ("--property", f"os_distro={'x' * 256}"), 6),
        ],
    )
    def test_what_is_refused_changes_nothing(self, cloud: Cloud, state: str, words: tuple[str, ...], code: int) -> None:
        uuid = server(cloud, {"hw_disk_bus": "virtio"}, vm_state=state)
        self.spec(cloud, uuid)
        assert cloud.run("image_property", "set", uuid, *words) == code
        assert recorded(cloud, uuid) == {"image_hw_disk_bus": "virtio", "other": "kept"}

    def test_without_a_request_spec_nothing_is_written(self, cloud: Cloud) -> None:
        uuid = server(cloud)
        assert cloud.run("image_property", "set", uuid, "--property", "hw_disk_bus=scsi") == 1
        assert recorded(cloud, uuid) == {"other": "kept"}
        assert cloud.run("image_property", "set", NOWHERE, "--property", "hw_disk_bus=scsi") == 2
        running = server(cloud, vm_state="active")
        assert cloud.run("image_property", "set", running, "--property", "hw_disk_bus=scsi") == 3


class TestIronicMove:
    @pytest.fixture(autouse=True)
    def two_hosts(self, cloud: Cloud, cell_uuid: str) -> None:
        self.cloud = cloud
        self.services = {}
        for host in ("old", "new"):
            values = {"host": host, "binary": "nova-compute", "topic": "compute", "version": 74, "report_count": 0}
            made = cloud.cell.run(services.service_create, {**values, "forced_down": host == "old", "disabled": False})
            self.services[host] = made["id"]
        cloud.node("old")
        self.node = cloud.cell.query(compute_nodes.compute_node_get_by_host, "old", "old")
        self.server = server(cloud, host="old", node="old", vm_state="active")

    def move(self, host: str = "new", node: str | None = None) -> int:
        words = ("--ironic-node-uuid", node or self.node["uuid"], "--destination-host", host)
        return self.cloud.run("db", "ironic_compute_node_move", *words)

    def force(self, host: str, down: bool) -> None:
        self.cloud.cell.run(services.service_update, self.services[host], {"forced_down": down})

    def test_node_and_server_go_together(self) -> None:
        assert self.move() == 0
        assert self.move() == 0
        node = self.cloud.cell.query(compute_nodes.compute_node_get_by_uuid, self.node["uuid"])
        assert (node["host"], node["service_id"], node["hypervisor_hostname"]) == ("new", self.services["new"], "old")
        assert self.cloud.cell.query(instances.instance_get, self.server)["host"] == "new"

    def test_refusals(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.move(host="nobody") == 255
        assert self.move(node=NOWHERE) == 255
        assert self.cloud.run("db", "ironic_compute_node_move", "--destination-host", "new") == 255
        self.force("new", True)
        assert self.move() == 255
        assert "forced down" in capsys.readouterr().out
        self.force("new", False)
        self.force("old", False)
        assert self.move() == 255
        self.force("old", True)
        server(self.cloud, host="old", node="old", uuid=ids.new_uuid())
        assert self.move() == 255
        assert self.cloud.cell.query(instances.instance_get, self.server)["host"] == "old"
