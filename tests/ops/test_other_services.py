"""Calls to other services that fail for good while a server is built: a reason, a deletion, nothing left."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ops.control_plane import PROJECT, ControlPlane

from kilonova.compute.store import Store

UUID = "[0-9a-f-]{36}"
CALLS = (
    ("neutron", "POST", "/v2.0/ports$"),
    ("neutron", "PUT", f"/v2.0/ports/{UUID}$"),
    ("glance", "GET", f"/v2/images/{UUID}$"),
    ("placement", "GET", "/allocation_candidates"),
    ("placement", "PUT", f"/allocations/{UUID}$"),
    ("cinder", "POST", "/attachments$"),
    ("cinder", "PUT", f"/attachments/{UUID}$"),
    ("cinder", "POST", f"/attachments/{UUID}/action$"),
)
LOST = 0
"""No answer, where another number would be its status."""


def spoil(service: Any, method: str, path: str, status: int) -> None:
    if status == LOST:
        service.unreachable(method, path, times=1000)
    else:
        service.fail(method, path, status=status, times=1000)


@pytest.mark.parametrize("status", [403, 404, 409, 500, LOST])
def test_a_build_ends_with_a_reason_and_leaves_nothing(cloud: ControlPlane, status: int) -> None:
    # What passes is waited for until then.
    cloud.conf.set_override("build_deadline", 3.0, "kilonova")
    cloud.conf.set_override("service_patience", 1.0, "kilonova")
    for service, method, path in CALLS:
        label = f"{service} {method} {path} {status}"
        volume = cloud.cloud.cinder.volume(project=PROJECT)
        port = cloud.cloud.neutron.port(cloud.network, project=PROJECT)
        fake = getattr(cloud.cloud, service)
        spoil(fake, method, path, status)
        server = _asked_for(cloud, volume, port)
        if server is not None:
            shown = cloud.until(label, lambda server=server: _ended(cloud, server))
            assert shown["status"] == "ACTIVE" or shown["fault"]["message"], label
            assert "RpcRemoteError" not in str(shown.get("fault", {}).get("message")), label
        fake.faults.clear()
        if server is not None:
            cloud.delete(server)
            cloud.until_gone(server)
        cloud.until(f"{label}: clean", lambda: not cloud.leftovers())
        assert cloud.cloud.cinder.volumes[volume]["status"] == "available", label
        # The user's own port is as before.
        assert cloud.cloud.neutron.ports[port]["device_id"] == "", label
        assert cloud.cloud.neutron.ports[port]["binding:host_id"] == "", label


def _asked_for(cloud: ControlPlane, volume: str, port: str) -> str | None:
    """The server, or None when the API itself met the trouble and said so."""
    devices = [
        {"source_type": "image", "destination_type": "local", "boot_index": 0, "uuid": cloud.image},
        {"source_type": "volume", "destination_type": "volume", "boot_index": 1, "uuid": volume},
    ]
    networks = [{"uuid": cloud.network}, {"port": port}]
    server = {"name": "a", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": networks}
    answer = cloud.request("POST", "/servers", {"server": {**server, "block_device_mapping_v2": devices}})
    if answer.status_code == 202:
        return str(answer.json["server"]["id"])
    assert answer.status_code >= 400
    assert next(iter(answer.json.values()))["message"]
    return None


def _ended(cloud: ControlPlane, server: str) -> Any:
    shown = cloud.show(server)
    return shown if shown["status"] in ("ACTIVE", "ERROR") and not shown["OS-EXT-STS:task_state"] else None


def test_the_reason_is_there_as_soon_as_the_error(cloud: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.cloud.cinder.fail("PUT", f"/attachments/{UUID}$", status=409, times=1000)
    volume = cloud.cloud.cinder.volume(project=PROJECT, bootable="true")
    device = {"boot_index": 0, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    seen: list[str] = []
    write = Store.fault

    def fault(store: Any, ctxt: Any, uuid: str, *args: Any, **kwargs: Any) -> None:
        seen.append(cloud.show(uuid)["status"])
        write(store, ctxt, uuid, *args, **kwargs)

    monkeypatch.setattr(Store, "fault", fault)
    server = cloud.create(imageRef="", block_device_mapping_v2=[device])["id"]
    assert cloud.until_status(server, "ERROR")["fault"]["message"]
    assert seen == ["BUILD"]


def test_a_claim_that_placement_refuses_is_explained_to_the_user(cloud: ControlPlane) -> None:
    cloud.cloud.placement.fail("GET", "/allocation_candidates", status=403, times=1000, body={"secret": "hunter2"})
    server = cloud.create()["id"]
    cloud.until_status(server, "ERROR")
    fault = cloud.request("GET", f"/servers/{server}", status=200)["server"]["fault"]
    assert "placement answered with HTTP 403" in fault["message"]
    assert "hunter2" not in str(fault)


@pytest.mark.parametrize(
    ("service", "method", "path", "status", "code"),
    [
        ("neutron", "GET", "/v2.0/networks", 404, 500),
        ("neutron", "GET", "/v2.0/networks", 500, 503),
        ("glance", "GET", "/v2/images/", 429, 503),
        ("cinder", "GET", "/volumes/", LOST, 503),
        ("cinder", "POST", "/attachments$", 500, 503),
    ],
)
def test_the_api_names_the_service_that_is_in_the_way(
    cloud: ControlPlane, service: str, method: str, path: str, status: int, code: int
) -> None:
    volume = cloud.cloud.cinder.volume(project=PROJECT, bootable="true")
    device = {"boot_index": 1, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    root = {"boot_index": 0, "uuid": cloud.image, "source_type": "image", "destination_type": "local"}
    fake = getattr(cloud.cloud, service)
    if status == LOST:
        fake.unreachable(method, path, times=1000)
    else:
        fake.fail(method, path, status=status, times=1000, body={"error": {"message": "at 192.0.2.7"}})
    answer = cloud.create(status=code, block_device_mapping_v2=[root, device])
    message = next(iter(answer.values()))["message"]
    assert f"service {service}" in message or "service fake" in message
    assert "192.0.2.7" not in message
    assert cloud.cloud.cinder.volumes[volume]["status"] == "available"


def test_a_token_that_ended_at_neutron_is_told_so(cloud: ControlPlane) -> None:
    """401, as clients expect that fetch another one then."""
    words = "The request you have made requires authentication."
    cloud.cloud.neutron.fail("GET", "/v2.0/networks", status=401, times=1000, body={"error": {"message": words}})
    told = cloud.create(status=401, networks="auto")["unauthorized"]
    assert told["code"] == 401
    assert "service neutron does not accept this token" in told["message"]
    assert words in told["message"]
    # The network is looked up with the service's credentials, of which no other token of the user's makes better ones.
    told = cloud.create(status=500)["computeFault"]
    assert told["message"] == "The service neutron answered with HTTP 401."


def test_b055_what_is_raised_does_not_leak_when_the_undoing_fails_too(cloud: ControlPlane) -> None:
    for host in cloud.hosts:
        for method in ("spawn", "destroy"):
            cloud.fault(host, method, lambda: RuntimeError("secret /etc/x password=hunter2"), calls=range(1, 10))
    server = cloud.create()["id"]
    cloud.until_status(server, "ERROR")
    shown = cloud.request("GET", f"/servers/{server}", status=200)["server"]["fault"]
    assert "hunter2" not in str(shown)
    assert "hunter2" in str(cloud.show(server)["fault"])
