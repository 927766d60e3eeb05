"""POST /servers: what is recorded, offered and sent; what is refused and leaves nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.api import seeds

from kilonova.api.ops import build
from kilonova.db.api import build_requests, flavors, host_mappings
from kilonova.db.api.tables import BUILD_REQUESTS, INSTANCE_MAPPINGS, REQUEST_SPECS
from kilonova.db.cell import instances, services
from kilonova.db.failures import LostError
from kilonova.db.flow_tables import KN_FLOW
from kilonova.db.objects import build_request as build_request_rows

PROJECT = "6f70656e737461636b20342065766572"
NOWHERE = "99999999-9999-4999-8999-999999999999"
UNKNOWN_VOLUME = {"source_type": "volume", "destination_type": "volume", "boot_index": 0, "uuid": NOWHERE}

ROOT = {"source_type": "blank", "destination_type": "volume", "boot_index": 0, "volume_size": 1}


@pytest.fixture
def site(world: Any) -> Any:
    """A flavor, an image and a network."""
    world.flavor()
    world.image = world.cloud.glance.image(name="img", min_disk=0, min_ram=0, os_type="linux")
    world.network = world.cloud.neutron.network(project=PROJECT)
    return world


def body(site: Any, **more: Any) -> dict[str, Any]:
    return {"server": {"name": "Ann's box", "flavorRef": "small", "imageRef": site.image, "networks": "auto"} | more}


def rows(world: Any, table: Any) -> list[dict[str, Any]]:
    with world.cells.api.read() as tx:
        return [dict(row._mapping) for row in tx.execute(sa.select(table))]


def nothing_left(world: Any) -> bool:
    return not any(rows(world, table) for table in (BUILD_REQUESTS, INSTANCE_MAPPINGS, REQUEST_SPECS, KN_FLOW))


def test_a_server_is_recorded_offered_and_sent(site: Any, conductor: Any) -> None:
    answer = site.post(
        "/servers",
        body(site, metadata={"a": "b"}, tags=["t1", "t2"], user_data="aGk=", config_drive=True),
        version="2.52",
    )
    assert answer.status_code == 202, answer.text
    server = answer.json["server"]
    assert answer.headers["location"] == f"http://falconframework.org/v2.1/servers/{server['id']}"
    assert len(server["adminPass"]) == 12
    assert server["security_groups"] == [{"name": "default"}]
    sent = conductor.wait("schedule_and_build_instances")
    spec = sent["request_specs"][0]
    assert (spec.instance_uuid, spec.num_instances, spec.is_bfv) == (server["id"], 1, False)
    assert spec.flavor.flavorid == "small"
    assert spec.image.id == site.image
    instance = sent["build_requests"].objects[0].instance
    assert (instance.hostname, instance.vm_state, instance.task_state) == ("anns-box", "building", "scheduling")
    assert instance.metadata == {"a": "b"}
    assert instance.config_drive == "True"
    assert instance.system_metadata["image_min_disk"] == "1"
    assert sent["admin_password"] == server["adminPass"]
    assert sent["requested_networks"].objects[0].network_id == "auto"
    device = sent["block_device_mapping"].objects[0]
    assert (device.source_type, device.destination_type, device.boot_index) == ("image", "local", 0)
    (mapping,) = rows(site, INSTANCE_MAPPINGS)
    assert (mapping["instance_uuid"], mapping["cell_id"], mapping["project_id"]) == (server["id"], None, PROJECT)
    (flow,) = rows(site, KN_FLOW)
    assert (flow["op"], flow["state"], flow["subject_id"]) == ("build_batch", "offered", server["id"])
    shown = site.get(f"/servers/{server['id']}", version="2.96").json["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"], shown["tags"]) == ("BUILD", "scheduling", ["t1", "t2"])
    assert (shown["addresses"], shown["hostId"], shown["progress"]) == ({}, "", 0)
    assert shown["flavor"]["original_name"] == "small"


def test_several_servers_have_numbers_and_one_reservation(site: Any, conductor: Any) -> None:
    answer = site.post("/servers", body(site, min_count=2, max_count="3", return_reservation_id=True), version="2.37")
    assert answer.status_code == 202, answer.text
    sent = conductor.wait("schedule_and_build_instances")
    instances = [request.instance for request in sent["build_requests"].objects]
    assert [i.display_name for i in instances] == ["Ann's box-1", "Ann's box-2", "Ann's box-3"]
    assert [i.hostname for i in instances] == ["anns-box-1", "anns-box-2", "anns-box-3"]
    assert {i.reservation_id for i in instances} == {answer.json["reservation_id"]}
    assert [spec.num_instances for spec in sent["request_specs"]] == [3, 3, 3]
    listed = site.get("/servers?name=box-2").json["servers"]
    assert [server["name"] for server in listed] == ["Ann's box-2"]


def test_a_lost_cast_leaves_the_offer(site: Any) -> None:
    # Nobody serves the conductor's topic.
    answer = site.post("/servers", body(site), version="2.37")
    assert answer.status_code == 202
    assert [flow["state"] for flow in rows(site, KN_FLOW)] == ["offered"]


def test_a_key_is_given_to_the_server(site: Any, conductor: Any) -> None:
    site.post("/os-keypairs", {"keypair": {"name": "k"}})
    assert site.post("/servers", body(site, key_name="k"), version="2.37").status_code == 202
    sent = conductor.wait("schedule_and_build_instances")
    instance = sent["build_requests"].objects[0].instance
    assert instance.key_data.startswith("ssh-rsa")
    assert instance.keypairs.objects[0].name == "k"


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"flavorRef": "none"}, 400, "Flavor none"),
        ({"imageRef": NOWHERE}, 400, "Can not find requested image"),
        ({"key_name": "none"}, 400, "Invalid key_name"),
        ({"min_count": 3, "max_count": 2}, 400, "min_count"),
        ({"availability_zone": "mars"}, 400, "availability zone is not available"),
        ({"availability_zone": "nova:h1"}, 403, "forced_host"),
        ({"networks": [{"uuid": NOWHERE}]}, 400, "Network"),
        ({"networks": [{"port": NOWHERE}]}, 400, "Port"),
        ({"security_groups": [{"name": "none"}]}, 400, "Security group"),
        ({"min_count": 11}, 403, "Quota exceeded"),
        ({"block_device_mapping_v2": [{"source_type": "blank", "destination_type": "local"}]}, 400, "Boot sequence"),
        ({"block_device_mapping_v2": [ROOT | {"device_type": "banana"}]}, 400, "banana"),
        ({"block_device_mapping_v2": [ROOT | {"disk_bus": "banana"}]}, 400, "disk bus"),
        (
            {
                "block_device_mapping_v2": [
                    {
                        "source_type": "volume",
                        "destination_type": "volume",
                        "boot_index": 0,
                        "uuid": "99999999-9999-4999-8999-999999999999",
                    }
                ]
            },
            400,
            "volume",
        ),
    ],
)
def test_what_is_refused_leaves_nothing(site: Any, change: dict[str, Any], code: int, words: str) -> None:
    answer = site.post("/servers", body(site, **change), version="2.37")
    assert answer.status_code == code, answer.text
    assert words.lower() in next(iter(answer.json.values()))["message"].lower()
    assert nothing_left(site)


def test_a_flavor_of_others_is_as_if_it_were_not(site: Any) -> None:
    row = site.flavor("theirs", is_public=False)
    refused = site.post("/servers", body(site, flavorRef="theirs"), version="2.37")
    assert refused.status_code == 400
    assert refused.json["badRequest"]["message"] == "Flavor theirs could not be found."
    assert site.get("/servers?flavor=theirs").json == {"servers": []}
    site.cells.api.run(flavors.flavor_access_add, row["id"], [PROJECT])
    assert site.post("/servers", body(site, flavorRef="theirs"), version="2.37").status_code == 202


@pytest.mark.parametrize(
    ("specs", "properties", "code", "words"),
    [
        ({}, {"hw_architecture": "banana"}, 400, "image metadata"),
        ({}, {"hw_disk_bus": "banana"}, 400, "image metadata"),
        ({}, {"hw_cpu_policy": "banana"}, 400, "image metadata"),
        ({"hw:cpu_policy": "banana"}, {}, 400, "hw:cpu_policy"),
        ({"hw:cpu_thread_policy": "banana"}, {}, 400, "hw:cpu_thread_policy"),
        ({"hw:numa_nodes": "0"}, {}, 400, "hw:numa_nodes"),
        ({"hw:mem_page_size": "banana"}, {}, 400, "hw:mem_page_size"),
        ({"hw:locked_memory": "yes", "hw:mem_page_size": "any"}, {}, 501, "hw:locked_memory, hw:mem_page_size"),
        ({"hw:cpu_policy": "shared", "resources:VCPU": "1"}, {}, 400, "exclude each other"),
        ({"resources:PCPU": "1", "resources:VCPU": "1"}, {}, 400, "exclude each other"),
        ({"resources:PCPU": "1"}, {}, 501, "resources:PCPU"),
    ],
)
def test_hardware_that_makes_no_sense_or_is_not_built(
    site: Any, specs: dict[str, str], properties: dict[str, str], code: int, words: str
) -> None:
    site.flavor("odd", extra_specs=specs)
    image = site.cloud.glance.image(**properties)
    answer = site.post("/servers", body(site, flavorRef="odd", imageRef=image), version="2.37")
    assert answer.status_code == code, answer.text
    assert words in next(iter(answer.json.values()))["message"]
    assert nothing_left(site)


@pytest.mark.parametrize("specs", [{"hw:locked_memory": "no"}, {"hw:cpu_policy": "shared"}, {"hw:anything": "x"}])
def test_hardware_that_is_nothing_special(site: Any, specs: dict[str, str]) -> None:
    site.flavor("plain", extra_specs=specs)
    assert site.post("/servers", body(site, flavorRef="plain"), version="2.37").status_code == 202


def test_b019_locked_memory_without_a_page_size(site: Any) -> None:
    site.flavor("locked", extra_specs={"hw:locked_memory": "true"})
    assert site.post("/servers", body(site, flavorRef="locked"), version="2.37").status_code == 400
    image = site.cloud.glance.image(hw_locked_memory="true")
    assert site.post("/servers", body(site, imageRef=image), version="2.37").status_code == 400
    assert nothing_left(site)


def test_several_networks_need_a_choice(site: Any) -> None:
    site.cloud.neutron.network("other", project=PROJECT)
    answer = site.post("/servers", body(site), version="2.37")
    assert answer.status_code == 409
    assert nothing_left(site)


def test_a_forced_host_and_its_zone(site: Any, conductor: Any) -> None:
    answer = site.post("/servers", body(site, availability_zone="nova:h1:n1"), version="2.37", user="admin")
    assert answer.status_code == 202, answer.text
    spec = conductor.wait("schedule_and_build_instances")["request_specs"][0]
    assert (spec.force_hosts, spec.force_nodes, spec.availability_zone) == (["h1"], ["n1"], "nova")


def test_an_existing_zone_is_asked_for(site: Any, conductor: Any) -> None:
    with site.cell("c1").database.write() as tx:
        services.service_create(tx, {"host": "h1", "binary": "nova-compute", "topic": "compute", "version": 74})
    assert site.post("/servers", body(site, availability_zone="nova"), version="2.37").status_code == 202
    assert conductor.wait("schedule_and_build_instances")["request_specs"][0].availability_zone == "nova"


def test_a_host_by_name_needs_a_mapping(site: Any) -> None:
    answer = site.post("/servers", body(site, host="h9"), version="2.74", user="admin")
    assert answer.status_code == 400
    assert "h9" in answer.json["badRequest"]["message"]
    assert site.post("/servers", body(site, host="h9"), version="2.74").status_code == 403


def from_volume(site: Any) -> tuple[str, dict[str, Any]]:
    volume = site.cloud.cinder.volume(2, project=PROJECT, bootable="true")
    mapping = {"source_type": "volume", "destination_type": "volume", "boot_index": 0, "uuid": volume}
    wish = body(site, block_device_mapping_v2=[mapping])
    del wish["server"]["imageRef"]
    return volume, wish


@pytest.mark.parametrize("made", [True, False])
def test_a_commit_whose_answer_is_lost_keeps_the_volumes_of_a_server_that_is_there(
    site: Any, conductor: Any, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    api = site.cells.api
    run = api.run

    def lossy(fn: Any, *args: Any, **kwargs: Any) -> Any:
        recording = fn is build._record
        if not recording or made:
            result = run(fn, *args, **kwargs)
        if recording:
            raise LostError(None, None, OSError("reset by peer"), connection_invalidated=True)
        return result

    monkeypatch.setattr(api, "run", lossy)
    _, wish = from_volume(site)
    answer = site.post("/servers", wish, version="2.37")
    assert len(site.cloud.cinder.attachments) == made
    assert nothing_left(site) is not made
    if made:
        assert answer.status_code == 202, answer.text
        device = conductor.wait("schedule_and_build_instances")["block_device_mapping"].objects[0]
        assert device.attachment_id in site.cloud.cinder.attachments
    else:
        assert answer.status_code >= 500


def test_a_volume_is_reserved(site: Any, conductor: Any) -> None:
    volume, wish = from_volume(site)
    assert site.post("/servers", wish, version="2.37").status_code == 202
    device = conductor.wait("schedule_and_build_instances")["block_device_mapping"].objects[0]
    assert (device.volume_id, device.volume_size) == (volume, 2)
    assert device.attachment_id in site.cloud.cinder.attachments
    spec = json.loads(rows(site, REQUEST_SPECS)[0]["spec"])["nova_object.data"]
    assert spec["is_bfv"] is True


def test_quotas_count_accepted_servers(site: Any) -> None:
    site.conf.set_override("instances", 2, group="quota")
    assert site.post("/servers", body(site), version="2.37").status_code == 202
    partly = site.post("/servers", body(site, min_count=1, max_count=5, return_reservation_id=True), version="2.37")
    assert partly.status_code == 202
    assert len(rows(site, BUILD_REQUESTS)) == 2
    refused = site.post("/servers", body(site), version="2.37")
    assert refused.status_code == 403
    assert "instances" in refused.json["forbidden"]["message"]


def test_a_server_on_its_way_into_its_cell_is_counted_once(site: Any) -> None:
    """Between its record and the commit point it is in the cell and still asked for."""
    site.conf.set_override("instances", 2, group="quota")
    assert site.post("/servers", body(site), version="2.37").status_code == 202
    [asked] = rows(site, BUILD_REQUESTS)
    columns = {"uuid": asked["instance_uuid"], "project_id": asked["project_id"], "vcpus": 1, "memory_mb": 512}
    with site.cell("c1").database.write() as tx:
        instances.instance_create(tx, columns)
    assert site.post("/servers", body(site), version="2.37").status_code == 202
    assert site.post("/servers", body(site), version="2.37").status_code == 403


def test_counting_reads_each_waiting_server_once(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many servers waiting, every new one would else read them all."""
    read: list[str] = []
    real = build_requests.build_request_instances

    def noted(tx: Any, uuids: Any) -> Any:
        read.extend(uuids)
        return real(tx, uuids)

    monkeypatch.setattr(build_requests, "build_request_instances", noted)
    for _ in range(4):
        assert site.post("/servers", body(site), version="2.37").status_code == 202
    assert len(read) == len(set(read)) == 3


def test_a_flavor_that_needs_what_is_not_built(site: Any) -> None:
    site.flavor("pinned", extra_specs={"hw:cpu_policy": "dedicated"})
    answer = site.post("/servers", body(site, flavorRef="pinned"), version="2.37")
    assert answer.status_code == 501
    assert "hw:cpu_policy" in answer.json["notImplemented"]["message"]


def test_a_server_is_changed_before_it_has_a_record(site: Any) -> None:
    uuid = site.post("/servers", body(site), version="2.37").json["server"]["id"]
    changed = site.request("PUT", f"/servers/{uuid}", {"server": {"name": "other", "description": "d"}}, version="2.19")
    assert changed.status_code == 200, changed.text
    shown = site.get(f"/servers/{uuid}", version="2.19").json["server"]
    assert (shown["name"], shown["description"], shown["status"]) == ("other", "d", "BUILD")
    (request,) = rows(site, BUILD_REQUESTS)
    assert build_request_rows.from_row(request).instance.display_name == "other"


# ---------------------------------------------------------------- volumes and their zones, text of images


def _boots_from(site: Any, *zones: str) -> dict[str, Any]:
    shown = {"project": PROJECT, "bootable": "true"}
    volumes = [site.cloud.cinder.volume(availability_zone=zone, **shown) for zone in zones]
    mapping = [
        {"uuid": volume, "source_type": "volume", "destination_type": "volume", "boot_index": index or 0}
        for index, volume in enumerate(volumes)
    ]
    for device in mapping[1:]:
        device["boot_index"] = -1
    return body(site, imageRef="", block_device_mapping_v2=mapping, networks="none")


@pytest.mark.parametrize(
    ("zones", "cross", "code", "asked"),
    [
        (("far",), False, 202, "far"),
        (("nova",), False, 202, None),
        (("far", "near"), False, 400, None),
        (("far", "near"), True, 202, None),
    ],
)
def test_where_volumes_stay_in_their_zone_a_server_without_one_goes_there(
    site: Any, conductor: Any, zones: tuple[str, ...], cross: bool, code: int, asked: str | None
) -> None:
    site.conf.set_override("cross_az_attach", cross, group="cinder")
    answer = site.post("/servers", _boots_from(site, *zones), version="2.37")
    assert answer.status_code == code, answer.text
    if code == 202:
        spec = conductor.wait("schedule_and_build_instances")["request_specs"][0]
        assert spec.availability_zone == asked


@pytest.mark.parametrize(
    ("place", "zone", "code"),
    [
        ({"availability_zone": "nova"}, "nova", 202),
        ({"availability_zone": "nova"}, "far", 400),
        ({"availability_zone": "nova:h1"}, "far", 400),
        ({"availability_zone": "far:h1"}, "far", 400),
        ({"availability_zone": ":h1"}, "nova", 202),
        ({"host": "h1"}, "far", 400),
        ({"host": "h1"}, "nova", 202),
    ],
)
def test_where_volumes_stay_in_their_zone_the_place_that_is_asked_for_is_in_it(
    site: Any, conductor: Any, place: dict[str, str], zone: str, code: int
) -> None:
    seeds.service(site)
    with site.cells.api.write() as tx:
        host_mappings.host_mapping_create(tx, "h1", site.cell("c1").id)
    site.conf.set_override("cross_az_attach", False, group="cinder")
    asked = _boots_from(site, zone)
    asked["server"] |= place
    answer = site.post("/servers", asked, version="2.74", user="admin")
    assert answer.status_code == code, answer.text
    assert code == 202 or "availability zone" in answer.json["badRequest"]["message"]


@pytest.mark.parametrize(
    "properties",
    [{"note": "\U0001f600"}, {"note": "a\0"}, {"\U0001f600": "a"}, {"n" * 250: "a"}],
    ids=["smile", "nul", "name", "long name"],
)
def test_r23_what_is_remembered_of_an_image_can_be_stored(site: Any, properties: dict[str, str]) -> None:
    image = site.cloud.glance.image(name="odd", min_disk=0, min_ram=0, **properties)
    answer = site.post("/servers", body(site, imageRef=image), version="2.37")
    assert answer.status_code == 400
    assert "property" in answer.json["badRequest"]["message"]
    assert nothing_left(site)


def test_r23_names_of_keystone_are_stored_with_a_mark(site: Any) -> None:
    from kilonova.wire.http import bounds

    assert bounds.fitted("Ann \U0001f600\0") == "Ann \ufffd\ufffd"
    answer = site.post("/servers", body(site, tags=["tag", "TAG"]), version="2.52")
    assert answer.status_code == 400
    assert "case" in answer.json["badRequest"]["message"]
