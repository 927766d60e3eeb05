"""O4: whatever call of a request another service refuses, the user reads its words, once, and no inner error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.ops.control_plane import PROJECT, ControlPlane

from kilonova.clients.placement.client import Placement

USERS_OWN = ("neutron", "cinder", "glance")
SERVICES = (*USERS_OWN, "placement", "keystone")
REFUSALS = (400, 401, 403, 404, 405, 409, 410, 413)
ABOUT_US = (401, 404, 405)
WORDS = "because of the weather"
BODIES: dict[str, Callable[[int], Any]] = {
    "neutron": lambda status: {"NeutronError": {"type": "Weather", "message": WORDS, "detail": ""}},
    "cinder": lambda status: {"whatever": {"code": status, "message": WORDS}},
    "glance": lambda status: {"message": WORDS, "code": str(status), "title": "Weather"},
    "placement": lambda status: {"errors": [{"status": status, "detail": WORDS, "code": "weather"}]},
    "keystone": lambda status: {"error": {"code": status, "message": WORDS, "title": "Weather"}},
}


def of_source(kind: str, uuid: str, place: int = 0, **more: Any) -> dict[str, Any]:
    return {"uuid": uuid, "source_type": kind, "destination_type": "volume", "boot_index": place, **more}


def local(cloud: ControlPlane) -> dict[str, Any]:
    return of_source("image", cloud.image) | {"destination_type": "local"}


def volume(cloud: ControlPlane) -> str:
    return cloud.cloud.cinder.volume(project=PROJECT, bootable="true")


def snapshot(cloud: ControlPlane) -> str:
    return str(cloud.cloud.clients.cinder.snapshot_create(cloud.context(), volume(cloud), "s")["id"])


def image(cloud: ControlPlane, **more: Any) -> str:
    return cloud.cloud.glance.image(project=PROJECT, **more)


def booted(*devices: dict[str, Any]) -> dict[str, Any]:
    """A server of these devices; the first one is its root."""
    from_image = {} if devices[0]["destination_type"] == "local" else {"imageRef": ""}
    return {**from_image, "block_device_mapping_v2": list(devices)}


def grouped(cloud: ControlPlane) -> dict[str, Any]:
    cloud.cloud.neutron.security_group(name="web", project=PROJECT)
    return {"security_groups": [{"name": "web"}]}


SERVERS: dict[str, Callable[[ControlPlane], dict[str, Any]]] = {
    "plain": lambda cloud: {},
    "port": lambda cloud: {"networks": [{"port": cloud.cloud.neutron.port(cloud.network, project=PROJECT)}]},
    "address": lambda cloud: {"networks": [{"uuid": cloud.network, "fixed_ip": "10.0.0.77"}]},
    "auto": lambda cloud: {"networks": "auto"},
    "group": grouped,
    "kernel": lambda cloud: {"imageRef": image(cloud, kernel_id=image(cloud))},
    "volume": lambda cloud: booted(of_source("volume", volume(cloud))),
    "second volume": lambda cloud: booted(local(cloud), of_source("volume", volume(cloud), 1)),
    "snapshot": lambda cloud: booted(of_source("snapshot", snapshot(cloud))),
    "second snapshot": lambda cloud: booted(local(cloud), of_source("snapshot", snapshot(cloud), 1)),
    "image": lambda cloud: booted(of_source("image", image(cloud), volume_size=1)),
    "second image": lambda cloud: booted(local(cloud), of_source("image", image(cloud), 1, volume_size=1)),
    "node": lambda cloud: {"hypervisor_hostname": "h1"},
}
"""What other services are asked about while a server is accepted, by what is peculiar to it."""


def ask(cloud: ControlPlane, body: dict[str, Any]) -> Any:
    plain = {"name": "a", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": [{"uuid": cloud.network}]}
    user = "admin" if "hypervisor_hostname" in body else "joe"
    gate = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        # What is asked after the server was accepted is not of interest here.
        found = Placement.allocation_candidates
        patch.setattr(Placement, "allocation_candidates", lambda *args: (gate.wait(30), found(*args))[1])
        answer = cloud.request("POST", "/servers", {"server": plain | body}, user=user)
        for service in SERVICES:
            getattr(cloud.cloud, service).faults.clear()
        if answer.status_code == 202:
            cloud.delete(answer.json["server"]["id"])
        gate.set()
    if answer.status_code == 202:
        server = answer.json["server"]["id"]
        cloud.until_gone(server)
        # Only then is its volume free for the next one.
        cloud.until("nothing is left", lambda: not cloud.leftovers())
    return answer


def calls(cloud: ControlPlane) -> set[tuple[str, str, str]]:
    """What was asked of other services; not what an ended server's flow takes back."""
    fakes = [(name, getattr(cloud.cloud, name)) for name in SERVICES]
    made = {(name, method, path) for name, fake in fakes for method, path in tuple(fake.calls)}
    return {call for call in made if call[1] != "DELETE"}


def judge(answer: Any, service: str, status: int) -> str | None:
    """What is wrong with an answer after this refusal; nothing is wrong with one that did without."""
    code = answer.status_code
    if code == 202:
        return None
    message = next(iter(answer.json.values()))["message"]
    if "inside the service" in message:
        return "an inner error"
    if service not in USERS_OWN:
        return None if WORDS not in message and f"{service} answered with HTTP {status}" in message else "its words"
    if status in ABOUT_US:
        return None if code < 500 or f"{service} answered with HTTP {status}" in message else "no reason"
    if not 400 <= code < 500:
        return "not the user's"
    return None if message.count(WORDS) == 1 else "not its words, once"


@pytest.mark.parametrize("name", SERVERS)
def test_o4_whatever_is_refused_while_a_server_is_accepted(cloud: ControlPlane, name: str) -> None:
    body = SERVERS[name](cloud)
    if name != "plain":
        ask(cloud, {})
    before = calls(cloud)
    assert ask(cloud, body).status_code == 202
    wrong = []
    for service, method, path in sorted(calls(cloud) - before):
        fake = getattr(cloud.cloud, service)
        for status in REFUSALS:
            fake.fail(method, f"{path}$", status=status, body=BODIES[service](status), times=1000)
            answer = ask(cloud, body)
            if (what := judge(answer, service, status)) is not None:
                wrong.append(f"{what}: {service} {method} {path} {status}: {answer.text}")
    assert not wrong, "\n".join(wrong)
