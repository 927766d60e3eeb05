"""What the owner of an image or of a volume wrote into it: it comes to the same places as a request, and has to be as
well-formed as one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.api.conftest import PROJECT

from kilonova.contract.context import RequestContext

UUID = "99999999-9999-4999-8999-999999999999"
SNAPSHOT = {
    "boot_index": 0,
    "connection_info": None,
    "delete_on_termination": False,
    "destination_type": "volume",
    "device_name": "/dev/vda",
    "device_type": "disk",
    "disk_bus": "virtio",
    "encrypted": None,
    "guest_format": None,
    "image_id": None,
    "no_device": None,
    "source_type": "snapshot",
    "tag": None,
    "volume_id": None,
    "volume_size": 1,
    "volume_type": None,
}


def create(world: Any, image: str, **more: Any) -> Any:
    world.flavor()
    server = {"name": "a", "flavorRef": "small", "imageRef": image, "networks": "none"} | more
    return world.post("/servers", {"server": server}, version="2.37")


def image(world: Any, **properties: Any) -> str:
    written: str = world.cloud.glance.image(**{"name": "i", "min_disk": 0, "min_ram": 0, **properties})
    return written


DEVICES: list[Any] = [
    "no JSON",
    "[" * 3000,
    {"source_type": "blank"},
    ["text"],
    [None],
    [{"source_type": 1}],
    [{"source_type": "blank", "destination_type": "volume", "volume_size": "a"}],
    [{"source_type": "blank", "destination_type": "volume", "volume_size": {}}],
    [{"device_name": 5}],
    [{"device_name": "a" * 300}],
    [{"volume_id": "../snapshots"}],
    [{"source_type": "blank", "destination_type": "local", "boot_index": -1, "guest_format": "\U0001f600"}],
    [{"source_type": "blank", "destination_type": "local", "boot_index": "9" * 30}],
    [{}] * 65,
]


@pytest.mark.parametrize("form", [{}, {"bdm_v2": "True"}])
@pytest.mark.parametrize("written", DEVICES, ids=range(len(DEVICES)))
def test_devices_of_an_image(world: Any, written: Any, form: dict[str, str]) -> None:
    text = written if isinstance(written, str) else json.dumps(written)
    assert create(world, image(world, block_device_mapping=text, **form)).status_code == 400


@pytest.mark.parametrize("source", [{}, {"source_type": "volume"}, {"source_type": "snapshot"}])
def test_a_device_of_an_image_is_made_of_something(world: Any, source: dict[str, str]) -> None:
    device = {"destination_type": "volume", "boot_index": 0, **source}
    answer = create(world, image(world, block_device_mapping=json.dumps([device]), bdm_v2="True"))
    assert answer.status_code == 400
    assert "made of nothing" in answer.json["badRequest"]["message"]


@pytest.mark.parametrize(
    "properties",
    [
        {"mappings": "x"},
        {"mappings": '[{"virtual": "swap"}]'},
        {"mappings": '[{"device": "sdb"}]'},
        {"mappings": '[{"virtual": 3, "device": 3}]'},
        {"mappings": '[{"virtual": "root", "device": {"a": 1}}]'},
        {"root_device_name": "a" * 300},
        {"root_device_name": "/dev/\U0001f600"},
        {"min_ram": "x"},
        {"min_disk": "x"},
        {"kernel_id": ".."},
        {"kernel_id": "../tasks?x="},
        {"ramdisk_id": "%2e%2e"},
    ],
    ids=str,
)
def test_other_properties_of_an_image(world: Any, properties: dict[str, str]) -> None:
    assert create(world, image(world, **properties)).status_code == 400


def test_what_a_snapshot_says_of_its_devices_is_taken(world: Any, conductor: Any) -> None:
    volume = world.cloud.cinder.volume(project=PROJECT)
    asking = RequestContext(user_id="joe", project_id=PROJECT)
    snapshot = world.cloud.clients.cinder.snapshot_create(asking, volume, "s")["id"]
    written = json.dumps([SNAPSHOT | {"snapshot_id": snapshot}])
    made = image(world, block_device_mapping=written, bdm_v2="True", root_device_name="/dev/vda", mappings="[]")
    answer = create(world, made)
    assert answer.status_code == 202, answer.text
    sent = conductor.wait("schedule_and_build_instances")["block_device_mapping"]
    assert [device.snapshot_id for device in sent] == [snapshot]


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ({"min_ram": "x"}, 400),
        ({"min_disk": "1"}, 202),
        ({"block_device_mapping": "x", "mappings": '[{"virtual": "root", "device": "sda"}]', "bdm_v2": "True"}, 202),
        ({"root_device_name": "\x07"}, 400),
    ],
    ids=str,
)
def test_what_a_volume_remembers_of_its_image(world: Any, conductor: Any, written: dict[str, str], code: int) -> None:
    volume = world.cloud.cinder.volume(project=PROJECT, bootable="true", volume_image_metadata=written)
    root = {"uuid": volume, "source_type": "volume", "destination_type": "volume", "boot_index": 0}
    answer = create(world, "", block_device_mapping_v2=[root])
    assert answer.status_code == code, answer.text


@pytest.mark.parametrize("volume", ["..", ".", "a..b"])
def test_a_volume_is_not_another_request(world: Any, volume: str) -> None:
    root = {"uuid": volume, "source_type": "volume", "destination_type": "volume", "boot_index": 0}
    assert create(world, "", block_device_mapping_v2=[root]).status_code == 400
    asked = [path for _, path in world.cloud.cinder.calls]
    assert asked == ([f"/volumes/{volume}"] if volume == "a..b" else [])
