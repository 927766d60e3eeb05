"""`nova-manage volume_attachment refresh` for servers whose host is ours."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.ops.control_plane import CELL, PROJECT, ControlPlane

from kilonova.cmd import manage
from kilonova.cmd.manage.session import Session
from kilonova.contract import exceptions
from kilonova.db.objects import bdm

Manage = Callable[..., int]


@pytest.fixture
def run(cloud: ControlPlane, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Manage:
    """nova-manage for this cloud, from a configuration file of its own."""
    monkeypatch.setattr(Session, "clients", cloud.cloud.clients)
    file = tmp_path / "manage.conf"
    file.write_text(
        f"[DEFAULT]\ntransport_url = {cloud.bus_url}\n"
        f"[database]\nconnection = sqlite:///{cloud.folder}/cell0.db\n"
        f"[api_database]\nconnection = sqlite:///{cloud.folder}/api.db\n"
    )
    return lambda *words: manage.main(["--config-file", str(file), *words])


@pytest.fixture
def volume(cloud: ControlPlane) -> str:
    return cloud.cloud.cinder.volume(project=PROJECT, bootable="true")


@pytest.fixture
def server(cloud: ControlPlane, volume: str) -> str:
    """A stopped server with the volume."""
    disk = {"boot_index": 0, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    made = cloud.create(block_device_mapping_v2=[disk], imageRef="")["id"]
    cloud.until_status(made, "ACTIVE")
    cloud.act(made, "os-stop")
    cloud.until_status(made, "SHUTOFF")
    return str(made)


@pytest.fixture
def refresh(cloud: ControlPlane, run: Manage, server: str, volume: str, tmp_path: pathlib.Path) -> Callable[[], int]:
    connector = tmp_path / "connector.json"
    host = cloud.show(server)["OS-EXT-SRV-ATTR:host"]
    connector.write_text(json.dumps(cloud.driver(host).volume_connector(None)))
    return lambda: run("volume_attachment", "refresh", server, volume, str(connector))


def attached(cloud: ControlPlane, server: str, volume: str) -> Any:
    return cloud.parts.cells.cell(CELL).database.query(bdm.get_by_volume_and_instance, None, volume, server)


def guests_volumes(cloud: ControlPlane, server: str) -> tuple[str, ...]:
    driver = cloud.driver(cloud.guests()[server])
    found = driver._guests.get(server)
    assert found is not None
    return found.volumes


def test_the_server_starts_with_its_volume_as_it_is_now(
    cloud: ControlPlane, server: str, volume: str, refresh: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = attached(cloud, server, volume)
    cloud.cloud.cinder.paths = "/dev/moved"
    assert refresh() == 0
    # The host has let go of it, and gets it anew when the guest starts.
    assert guests_volumes(cloud, server) == ()
    now = attached(cloud, server, volume)
    assert list(cloud.cloud.cinder.attachments) == [now.attachment_id]
    assert now.attachment_id != before.attachment_id
    driver = cloud.driver(cloud.guests()[server])
    specs, power_on = [], driver.power_on

    def watched(ctxt: Any, spec: Any) -> None:
        specs.append(spec)
        power_on(ctxt, spec)

    monkeypatch.setattr(driver, "power_on", watched)
    cloud.act(server, "os-start")
    cloud.until_status(server, "ACTIVE")
    [found] = specs[0].block_devices.volumes
    assert found.attachment_id == now.attachment_id
    assert found.connection_info["data"]["device_path"] == f"/dev/moved/{volume}"
    assert guests_volumes(cloud, server) == (volume,)
    assert cloud.cloud.cinder.volumes[volume]["status"] == "in-use"
    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()
    assert cloud.cloud.cinder.volumes[volume]["status"] == "available"


def test_a_host_that_cannot_let_go_of_it_keeps_it(
    cloud: ControlPlane, server: str, volume: str, refresh: Callable[[], int]
) -> None:
    before = attached(cloud, server, volume)
    error = exceptions.DeviceDetachFailed(device="vda", reason="busy")
    cloud.fault(cloud.guests()[server], "detach_volume", lambda: error, calls=[1])
    assert refresh() == 1
    now = attached(cloud, server, volume)
    assert (now.attachment_id, now.connection_info) == (before.attachment_id, before.connection_info)
    assert list(cloud.cloud.cinder.attachments) == [before.attachment_id]
    assert not cloud.show(server)["locked"]
    assert refresh() == 0
    cloud.act(server, "os-start")
    cloud.until_status(server, "ACTIVE")


def test_a_server_that_runs_is_refused(
    cloud: ControlPlane, server: str, volume: str, refresh: Callable[[], int]
) -> None:
    cloud.act(server, "os-start")
    cloud.until_status(server, "ACTIVE")
    before = attached(cloud, server, volume)
    assert refresh() == 5
    assert attached(cloud, server, volume).attachment_id == before.attachment_id
    assert guests_volumes(cloud, server) == (volume,)
