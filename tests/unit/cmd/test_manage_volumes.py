"""nova-manage volume_attachment: what is shown, and that a refresh leaves record and Cinder in agreement."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import fakes
from tests.needs import needs
from tests.unit.cmd.cloud import Cloud

from kilonova import conf as configuration
from kilonova.base import ids
from kilonova.cmd.manage.session import Session
from kilonova.db import query
from kilonova.db.api import instance_mappings
from kilonova.db.cell import instance_actions, instances
from kilonova.db.cell.tables import BLOCK_DEVICE_MAPPING
from kilonova.db.objects import bdm
from kilonova.wire.rpc.bus import Bus

NOWHERE = "99999999-9999-4999-8999-999999999999"
CONNECTION = {"driver_volume_type": "local", "data": {"device_path": "/dev/old"}}


class Host:
    """The nova-compute that lets go of volumes; `fails` is what it answers instead, once."""

    def __init__(self, cinder: fakes.FakeCinder) -> None:
        self.cinder = cinder
        self.asked: list[dict[str, Any]] = []
        self.fails: Exception | None = None
        self.locked: list[bool] = []
        self.look: Any = lambda: None

    def remove_volume_connection(self, ctxt: Any, *, volume_id: str, instance: Any, delete_attachment: bool) -> None:
        self.asked.append({"volume_id": volume_id, "uuid": instance.uuid, "delete": delete_attachment})
        self.look()
        if self.fails is not None:
            raise self.fails


class Scene:
    """A stopped server on host h with one attached volume."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud = cloud
        self.cinder = fakes.FakeCinder()
        self.clients = fakes.Cloud(cinder=self.cinder).clients
        url = f"fake://{ids.new_uuid()}"
        assert cloud.run("cell_v2", "create_cell", "--name", "one", "--transport-url", url) == 0
        values = {"project_id": "p", "user_id": "u", "vm_state": "stopped", "host": "h", "system_metadata": {"k": "v"}}
        self.server = str(cloud.cell.run(instances.instance_create, values)["uuid"])
        cell = cloud.cells()["one"]
        mapping = {"instance_uuid": self.server, "project_id": "p", "user_id": "u", "cell_id": cell["id"]}
        cloud.api.run(instance_mappings.instance_mapping_create, mapping)
        self.volume = self.cinder.volume(status="in-use")
        self.attachment = ids.new_uuid()
        self.cinder.attachments[self.attachment] = {
            "id": self.attachment,
            "volume_id": self.volume,
            "instance": self.server,
            "status": "attached",
            "connection_info": {},
        }
        values = {
            "instance_uuid": self.server,
            "volume_id": self.volume,
            "uuid": ids.new_uuid(),
            "source_type": "volume",
            "destination_type": "volume",
            "device_name": "/dev/vdb",
            "attachment_id": self.attachment,
            "connection_info": json.dumps(CONNECTION),
        }
        cloud.cell.run(query.insert, BLOCK_DEVICE_MAPPING, values)
        self.connector = folder / "connector.json"
        self.connector.write_text(json.dumps({"host": "h", "initiator": "iqn"}))
        self.bus = Bus(configuration.load([]), url)
        self.host = Host(self.cinder)
        self.server_of_host = self.bus.serve("compute", "h", [self.host])
        self.server_of_host.start()

    def refresh(self, **given: str) -> int:
        words = {"server": self.server, "volume": self.volume, "connector": str(self.connector), **given}
        return self.cloud.run("volume_attachment", "refresh", words["server"], words["volume"], words["connector"])

    def recorded(self) -> Any:
        return self.cloud.cell.query(bdm.get_by_volume_and_instance, None, self.volume, self.server)

    def row(self) -> dict[str, Any]:
        found = self.cloud.cell.query(instances.instance_get, self.server, ("system_metadata",))
        assert found is not None
        return found

    def agree(self) -> None:
        """The record names the one attachment that there is, and nothing of the run is left."""
        assert list(self.cinder.attachments) == [self.recorded().attachment_id]
        assert not self.row()["locked"]
        assert self.row()["system_metadata"] == {"k": "v"}
        actions = self.cloud.cell.query(instance_actions.action_list, self.server)
        assert [a["action"] for a in reversed(actions)] == ["lock", "refresh_volume_attachment", "unlock"]
        assert actions[1]["finish_time"] is not None


@pytest.fixture
def scene(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(cloud, tmp_path)
    monkeypatch.setattr(Session, "clients", made.clients)
    yield made
    made.server_of_host.stop()
    made.bus.close()


def test_refresh(scene: Scene) -> None:
    scene.host.look = lambda: scene.host.locked.append(scene.row()["locked"])
    assert scene.refresh() == 0
    assert scene.host.asked == [{"volume_id": scene.volume, "uuid": scene.server, "delete": True}]
    assert scene.host.locked == [True]
    scene.agree()
    found = scene.recorded()
    assert found.attachment_id != scene.attachment
    connection = json.loads(found.connection_info)
    assert connection["serial"] == scene.volume
    assert connection["data"]["device_path"] == f"/dev/fake/{scene.volume}"
    assert scene.cinder.attachments[found.attachment_id]["status"] == "attached"
    assert scene.cinder.attachments[found.attachment_id]["device"] == "/dev/vdb"


def test_a_volume_that_others_may_have_too_stays_one(scene: Scene) -> None:
    """Else the guest would lock it, and its host disconnect it from under the others."""
    shared = {**CONNECTION, "multiattach": True}
    with scene.cloud.cell.write() as tx:
        tx.execute(BLOCK_DEVICE_MAPPING.update().values(connection_info=json.dumps(shared)))
    assert scene.refresh() == 0
    assert json.loads(scene.recorded().connection_info)["multiattach"] is True


def test_lock_of_before_stays(scene: Scene) -> None:
    scene.cloud.cell.run(instances.instance_update, scene.server, {"locked": True, "locked_by": "owner"})
    assert scene.refresh() == 0
    assert (scene.row()["locked"], scene.row()["locked_by"]) == (True, "owner")


def test_what_is_refused(scene: Scene, tmp_path: Path) -> None:
    nonsense, nobody = tmp_path / "nonsense", tmp_path / "nobody"
    nonsense.write_text("{")
    nobody.write_text("{}")
    assert scene.refresh(connector=str(tmp_path / "absent")) == 2
    assert scene.refresh(connector=str(nonsense)) == 3
    assert scene.refresh(connector=str(nobody)) == 3
    assert scene.refresh(connector=str(tmp_path)) == 3
    assert scene.refresh(server=NOWHERE) == 4
    assert scene.refresh(volume=NOWHERE) == 6
    nobody.write_text('{"host": "other"}')
    assert scene.refresh(connector=str(nobody)) == 7
    for state in ({"vm_state": "active"}, {"vm_state": "stopped", "task_state": "powering-on"}):
        scene.cloud.cell.run(instances.instance_update, scene.server, state)
        assert scene.refresh() == 5
    assert scene.recorded().attachment_id == scene.attachment
    assert list(scene.cinder.attachments) == [scene.attachment]
    assert not scene.row()["locked"]


def test_host_that_does_not_let_go_keeps_the_attachment(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.host.fails = RuntimeError("device is busy")
    assert scene.refresh() == 1
    assert "device is busy" in capsys.readouterr().err
    scene.agree()
    assert scene.recorded().attachment_id == scene.attachment
    assert json.loads(scene.recorded().connection_info) == CONNECTION


@pytest.mark.parametrize(
    ("method", "path", "kept"),
    [("POST", "/attachments$", True), ("PUT", "/attachments/", False), ("POST", "/attachments/.*/action", False)],
)
def test_cinder_that_fails_leaves_the_volume_with_its_server(scene: Scene, method: str, path: str, kept: bool) -> None:
    scene.cinder.fail(method, path, status=400, times=1)
    assert scene.refresh() == 1
    scene.agree()
    assert (scene.recorded().attachment_id == scene.attachment) is kept
    scene.cinder.faults.clear()
    assert scene.refresh() == 0
    assert scene.cinder.attachments[scene.recorded().attachment_id]["status"] == "attached"
    assert len(scene.cinder.attachments) == 1


def test_show(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str) -> str:
        capsys.readouterr()
        assert scene.cloud.run("volume_attachment", "show", scene.server, scene.volume, *words) == 0
        return capsys.readouterr().out

    whole = json.loads(shown("--json"))
    assert whole["attachment_id"] == scene.attachment
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\.\d+", whole["created_at"])
    assert json.loads(whole["connection_info"]) == CONNECTION
    assert json.loads(shown("--connection_info", "--json")) == CONNECTION
    assert "| driver_volume_type | local" in shown("--connection_info")
    assert "| device_name            | /dev/vdb" in shown()
    assert scene.cloud.run("volume_attachment", "show", NOWHERE, scene.volume) == 2
    assert scene.cloud.run("volume_attachment", "show", scene.server, NOWHERE) == 3


@needs("root")
def test_connector_of_this_host(cloud: Cloud) -> None:
    with cloud.conf.open("a") as file:
        file.write("[DEFAULT]\nhost = here\n")

    def shown(*words: str) -> str:
        # A process of its own: os-brick's switches are global.
        run = "import sys; from kilonova.cmd.manage import main; sys.exit(main())"
        words = ("--config-file", str(cloud.conf), "volume_attachment", "get_connector", *words)
        return subprocess.run([sys.executable, "-c", run, *words], check=True, capture_output=True, text=True).stdout

    assert json.loads(shown("--json"))["host"] == "here"
    assert shown().startswith("+-")


def test_connector_without_os_brick(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both places: whoever imported it before left it with its package.
    monkeypatch.setitem(sys.modules, "kilonova.virt.libvirt.privileged", None)
    monkeypatch.delattr("kilonova.virt.libvirt.privileged", raising=False)
    assert cloud.run("volume_attachment", "get_connector") == 1
    assert "kilonova[libvirt]" in capsys.readouterr().out


def test_connector_that_would_leave_out_paths(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where multipathing is asked for, multipathd has to run."""
    from os_brick.initiator import connector as brick

    from kilonova.virt.libvirt import privileged

    monkeypatch.setattr(privileged, "prepare", lambda conf: None)
    asked = []

    def properties(helper: str, address: str, multipath: bool, enforce: bool, host: str) -> dict[str, str]:
        asked.append((multipath, enforce))
        return {"host": host}

    monkeypatch.setattr(brick, "get_connector_properties", properties)
    with cloud.conf.open("a") as file:
        file.write("[libvirt]\nvolume_use_multipath = true\nvolume_enforce_multipath = false\n")
    assert cloud.run("volume_attachment", "get_connector", "--json") == 0
    assert asked == [(True, True)]
