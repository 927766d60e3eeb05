"""The documents of servers are those of the API samples, for every microversion that has its own."""

import json
import re
from datetime import datetime
from typing import Any

import pytest
from tests.contract import facts

from kilonova.api.servers import view
from kilonova.contract.nouns import servers

IMAGE_PROPERTIES = frozenset({"architecture", "auto_disk_config"})


def versions(name: str) -> list[Any]:
    """The samples of servers with this file name, each with the microversion that it is of."""
    found = []
    for path, document in facts.samples("api_samples").items():
        folder = re.fullmatch(rf"servers/(?:v2\.(\d+)/)?{re.escape(name)}", path)
        if folder:
            found.append(pytest.param(int(folder[1] or 1), document, id=path))
    return sorted(found, key=lambda param: param.values[0])


def when(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.removesuffix("Z")) if text else None


def mapping_of(shown: dict[str, Any]) -> dict[str, Any]:
    return {
        "instance_uuid": shown["id"],
        "project_id": shown.get("tenant_id"),
        "created_at": when(shown.get("created")),
    }


def record_of(shown: dict[str, Any]) -> dict[str, Any]:
    """The record that a document was made from."""
    flavor = shown["flavor"]
    data = {
        "flavorid": flavor.get("id", "1"),
        "name": flavor.get("original_name"),
        "vcpus": flavor.get("vcpus"),
        "memory_mb": flavor.get("ram"),
        "root_gb": flavor.get("disk"),
        "ephemeral_gb": flavor.get("ephemeral"),
        "swap": flavor.get("swap"),
        "extra_specs": flavor.get("extra_specs"),
    }
    network_info = [
        {
            "id": "a port",
            "address": ip.get("OS-EXT-IPS-MAC:mac_addr"),
            "network": {
                "label": label,
                "subnets": [
                    {"ips": [{"address": ip["addr"], "version": ip["version"], "type": ip.get("OS-EXT-IPS:type")}]}
                ],
            },
        }
        for label, ips in shown["addresses"].items()
        for ip in ips
    ]
    image = shown["image"]
    properties = {f"image_{k}": v for k, v in (image or {}).get("properties", {}).items()}
    attribute = {k.removeprefix("OS-EXT-SRV-ATTR:"): v for k, v in shown.items() if k.startswith("OS-EXT-SRV-ATTR:")}
    certs = shown.get("trusted_image_certificates")
    trusted_certs = json.dumps({"nova_object.data": {"ids": certs}}) if certs else None
    vm = {"SHUTOFF": "stopped"}.get(shown["status"], shown["status"].lower())
    return {
        "id": 1,
        "deleted": 0,
        "uuid": shown["id"],
        "display_name": shown["name"],
        "project_id": shown["tenant_id"],
        "user_id": shown["user_id"],
        "metadata": shown["metadata"],
        "image_ref": image["id"] if image else "",
        "extra": {"flavor": json.dumps({"cur": {"nova_object.data": data}}), "trusted_certs": trusted_certs},
        "created_at": when(shown["created"]),
        "updated_at": when(shown["updated"]),
        "access_ip_v4": shown["accessIPv4"] or None,
        "access_ip_v6": shown["accessIPv6"] or None,
        "auto_disk_config": shown["OS-DCF:diskConfig"] == "AUTO",
        "availability_zone": shown.get("pinned_availability_zone"),
        "host": attribute.get("host", "a-host"),
        "node": attribute.get("hypervisor_hostname"),
        "hostname": attribute.get("hostname"),
        "kernel_id": attribute.get("kernel_id"),
        "ramdisk_id": attribute.get("ramdisk_id"),
        "launch_index": attribute.get("launch_index"),
        "reservation_id": attribute.get("reservation_id"),
        "root_device_name": attribute.get("root_device_name"),
        "user_data": attribute.get("user_data"),
        "config_drive": shown.get("config_drive"),
        "key_name": shown.get("key_name"),
        "launched_at": when(shown.get("OS-SRV-USG:launched_at")),
        "terminated_at": when(shown.get("OS-SRV-USG:terminated_at")),
        "task_state": shown.get("OS-EXT-STS:task_state"),
        "vm_state": shown.get("OS-EXT-STS:vm_state") or vm,
        "power_state": shown.get("OS-EXT-STS:power_state"),
        "progress": shown.get("progress"),
        "locked_by": "owner" if shown.get("locked") else None,
        "display_description": shown.get("description"),
        "tags": shown.get("tags", []),
        "system_metadata": properties | {"locked_reason": shown.get("locked_reason")},
        "fault": shown.get("fault"),
        "info_cache": {"network_info": json.dumps(network_info)},
        "volumes": [
            {"volume_id": v["id"], "delete_on_termination": v.get("delete_on_termination", False)}
            for v in shown.get("os-extended-volumes:volumes_attached", [])
        ],
    }


def scene_of(shown: dict[str, Any], version: int, record: dict[str, Any]) -> view.Scene:
    links = {link["rel"]: link["href"].partition("/servers/")[0] for link in shown["links"]}
    uuid = shown["id"]
    spec = {name.removeprefix("pinned_"): shown.get(name) for name in ("pinned_availability_zone", "scheduler_hints")}
    return view.Scene(
        self_url=links["self"],
        bookmark_url=links["bookmark"],
        version=version,
        extended="OS-EXT-SRV-ATTR:host" in shown,
        extra_specs="extra_specs" in shown["flavor"],
        host_status="host_status" in shown,
        image_properties=IMAGE_PROPERTIES,
        zones={record["host"]: shown.get("OS-EXT-AZ:availability_zone", "")},
        host_statuses={record["host"]: shown.get("host_status", "")},
        security_groups={uuid: [group["name"] for group in shown.get("security_groups", [])]},
        specs={uuid: spec},
        groups={uuid: shown.get("server_groups", [])},
    )


def compare_unreachable(shown: dict[str, Any], version: int) -> None:
    links = {link["rel"]: link["href"].partition("/servers/")[0] for link in shown["links"]}
    scene = view.Scene(
        self_url=links["self"],
        bookmark_url=links["bookmark"],
        version=version,
        extra_specs=True,
        groups={shown["id"]: shown.get("server_groups", [])},
    )
    if "flavor" not in shown:
        assert view.unreachable(mapping_of(shown), scene, detail="created" in shown) == shown
        return
    request = record_of(
        shown
        | dict.fromkeys(("name", "accessIPv4", "accessIPv6", "OS-DCF:diskConfig"), "")
        | {"metadata": {}, "addresses": {}, "updated": None}
    )
    request["availability_zone"] = shown["OS-EXT-AZ:availability_zone"]
    assert view.unreachable_whole(mapping_of(shown), request, scene) == shown


def compare(shown: dict[str, Any], version: int, shape: Any) -> None:
    if shown["status"] == "UNKNOWN":
        compare_unreachable(shown, version)
        return
    record = record_of(shown)
    scene = scene_of(shown, version, record)
    ours = view.show(record, scene, shape)
    expected = dict(shown)
    # The sample's identifiers of hosts and names of instances are made up.
    for made_up in ("hostId", "OS-EXT-SRV-ATTR:instance_name"):
        if made_up in expected:
            expected[made_up] = ours[made_up]
    assert re.fullmatch("[0-9a-f]{56}|", ours["hostId"])
    assert ours == expected


@pytest.mark.parametrize(("version", "sample"), versions("server-get-resp.json"))
def test_show(version: int, sample: Any) -> None:
    compare(sample["server"], version, servers.SERVER)


@pytest.mark.parametrize(("version", "sample"), versions("servers-details-resp.json"))
def test_detail(version: int, sample: Any) -> None:
    for shown in sample["servers"]:
        compare(shown, version, servers.IN_DETAIL)


@pytest.mark.parametrize(("version", "sample"), versions("server-update-resp.json"))
def test_update(version: int, sample: Any) -> None:
    compare(sample["server"], version, servers.UPDATED)


@pytest.mark.parametrize(("version", "sample"), versions("servers-list-resp.json"))
def test_list(version: int, sample: Any) -> None:
    for shown in sample["servers"]:
        links = {link["rel"]: link["href"].partition("/servers/")[0] for link in shown["links"]}
        scene = view.Scene(self_url=links["self"], bookmark_url=links["bookmark"], version=version)
        if shown.get("status") == "UNKNOWN":
            assert view.unreachable(mapping_of(shown), scene, detail=False) == shown
            continue
        assert view.brief({"uuid": shown["id"], "display_name": shown["name"]}, scene) == shown
