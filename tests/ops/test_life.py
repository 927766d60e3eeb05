"""One server through its whole life."""

from __future__ import annotations

from tests.ops.control_plane import ControlPlane


def test_created_seen_stopped_started_rebooted_deleted(cloud: ControlPlane) -> None:
    server = cloud.create("one", metadata={"a": "1"})["id"]
    built = cloud.until_status(server, "ACTIVE")
    assert built["OS-EXT-SRV-ATTR:host"] in ("h1", "h2")
    assert cloud.guests() == {server: built["OS-EXT-SRV-ATTR:host"]}
    assert built["addresses"]
    assert cloud.cloud.placement.held(server)

    cloud.act(server, "os-stop")
    cloud.until_status(server, "SHUTOFF")
    cloud.act(server, "os-start")
    cloud.until_status(server, "ACTIVE")
    cloud.act(server, "reboot", {"type": "SOFT"})
    cloud.until_status(server, "ACTIVE")
    cloud.act(server, "reboot", {"type": "HARD"})
    cloud.until_status(server, "ACTIVE")
    assert "output" in cloud.act(server, "os-getConsoleOutput", {}, status=200)

    names = [action["action"] for action in cloud.actions(server)]
    assert names == ["reboot", "reboot", "start", "stop", "create"]
    listed = cloud.request("GET", "/servers/detail", status=200)["servers"]
    assert [s["id"] for s in listed] == [server]

    cloud.delete(server)
    cloud.until_gone(server)
    cloud.assert_clean()
    assert cloud.guests() == {}
