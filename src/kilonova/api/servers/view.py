"""A server as REST shows it.

`Record` is what the databases know of one server, `Scene` what a request needs beside it, fetched once for all servers
of a page. A member of the document is a function of both; which members a microversion has says the contract.
"""

import hashlib
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from kilonova.contract.fields import Object
from kilonova.contract.nouns import servers as contract
from kilonova.contract.states import VM, status

Record = Mapping[str, Any]
_json = msgspec.json.Decoder().decode
_FAULTY: Final = frozenset({"ERROR", "DELETED"})
_PROGRESSING: Final = frozenset({"ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"})
_ATTRIBUTE: Final = "OS-EXT-SRV-ATTR:"
_INTERNAL_FAULT: Final = 500


@dataclass(slots=True, kw_only=True)
class Scene:
    """The request and the facts fetched for it.

    The mappings are by server uuid, but for ``zones`` and ``host_statuses``, which are by host.
    """

    self_url: str
    bookmark_url: str
    version: int
    instance_name_template: str = "instance-%08x"
    default_zone: str = "nova"
    is_admin: bool = False
    extended: bool = False
    extra_specs: bool = False
    host_status: bool = False
    only_unknown_status: bool = False
    image_properties: frozenset[str] = frozenset()
    zones: Mapping[str, str] = field(default_factory=dict)
    host_statuses: Mapping[str, str] = field(default_factory=dict)
    security_groups: Mapping[str, list[str]] = field(default_factory=dict)
    specs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, list[str]] = field(default_factory=dict)


def shown_status(record: Record) -> str:
    """The ``status`` of a server; a deleted one is DELETED whatever its states were."""
    return "DELETED" if record["deleted"] else status(record["vm_state"], record["task_state"])


def moment(when: datetime | None) -> str | None:
    """``2026-01-01T00:00:00Z``."""
    return None if when is None else f"{when:%Y-%m-%dT%H:%M:%S}Z"


def _fraction(when: datetime | None) -> str | None:
    return None if when is None else f"{when:%Y-%m-%dT%H:%M:%S.%f}"


@lru_cache(maxsize=4096)
def host_id(host: str | None, project_id: str | None) -> str:
    """An identifier of a host that differs from project to project; empty without a host."""
    return hashlib.sha224(f"{project_id}{host}".encode()).hexdigest() if host else ""


# ---------------------------------------------------------------- members


def _links(record: Record, scene: Scene) -> list[dict[str, str]]:
    path = f"/servers/{record['uuid']}"
    return [
        {"rel": "self", "href": scene.self_url + path},
        {"rel": "bookmark", "href": scene.bookmark_url + path},
    ]


def _bookmark(scene: Scene, path: str) -> list[dict[str, str]]:
    return [{"rel": "bookmark", "href": scene.bookmark_url + path}]


def _image(record: Record, scene: Scene) -> Any:
    reference = record["image_ref"]
    if not reference:
        return ""
    image_id = reference.rpartition("/")[2]
    image: dict[str, Any] = {"id": image_id, "links": _bookmark(scene, f"/images/{image_id}")}
    if scene.version >= 98:
        image["properties"] = {
            name: value
            for key, value in record["system_metadata"].items()
            if key.startswith("image_") and (name := key[6:]) in scene.image_properties and value is not None
        }
    return image


@lru_cache(maxsize=1024)
def _flavor_data(text: str) -> dict[str, Any]:
    """Few flavors make many servers, so their texts are read once. The answer is not to be changed."""
    flavor = _json(text)["cur"]
    found: dict[str, Any] = flavor.get("nova_object.data", flavor)
    return found


def flavor_of(record: Record) -> dict[str, Any]:
    """The flavor that a server was made with (the fields of the wire object)."""
    text = record["extra"]["flavor"]
    return _flavor_data(text) if text else {}


def _flavor(record: Record, scene: Scene) -> dict[str, Any]:
    flavor = flavor_of(record)
    if not flavor:
        return {}
    if scene.version < 47:
        return {"id": str(flavor["flavorid"]), "links": _bookmark(scene, f"/flavors/{flavor['flavorid']}")}
    shown = {
        "vcpus": flavor["vcpus"],
        "ram": flavor["memory_mb"],
        "disk": flavor["root_gb"],
        "ephemeral": flavor["ephemeral_gb"],
        "swap": flavor["swap"],
        "original_name": flavor["name"],
    }
    if scene.extra_specs:
        shown["extra_specs"] = flavor.get("extra_specs") or {}
    return shown


class _Ip(msgspec.Struct):
    address: str
    version: int | None = None
    type: str | None = "fixed"
    floating_ips: list["_Ip"] | None = None


class _Subnet(msgspec.Struct):
    ips: list[_Ip] = msgspec.field(default_factory=list)


class _Network(msgspec.Struct):
    label: str | None = None
    subnets: list[_Subnet] | None = None


class Interface(msgspec.Struct):
    """What is shown of a server's interface (a VIF of its info cache)."""

    id: str
    network: _Network
    address: str | None = None


_interfaces = msgspec.json.Decoder(list[Interface]).decode


def interfaces(record: Record) -> list[Interface]:
    """The interfaces of a server as its info cache has them."""
    cache = record["info_cache"]
    return _interfaces(cache["network_info"]) if cache and cache["network_info"] else []


def addresses(record: Record, *, extended: bool) -> dict[str, list[dict[str, Any]]]:
    """Addresses by network label, a network's fixed ones before its floating ones; none while it is being built."""
    return {} if record["vm_state"] == VM.BUILDING else addresses_of(interfaces(record), extended=extended)


def addresses_of(found_interfaces: Iterable[Interface], *, extended: bool) -> dict[str, list[dict[str, Any]]]:
    """The same of interfaces, whatever the server's state."""
    found: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    for vif in found_interfaces:
        fixed, floating = found.setdefault(vif.network.label or "", ([], []))
        for subnet in vif.network.subnets or ():
            for ip in subnet.ips:
                fixed.append(_address(ip, vif, extended))
                floating.extend(_address(other, vif, extended) for other in ip.floating_ips or ())
    return {label: fixed + floating for label, (fixed, floating) in found.items()}


def _address(ip: _Ip, vif: Interface, extended: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"version": ip.version or ipaddress.ip_address(ip.address).version, "addr": ip.address}
    if extended:
        shown["OS-EXT-IPS:type"] = ip.type
        shown["OS-EXT-IPS-MAC:mac_addr"] = vif.address
    return shown


def _fault(record: Record, scene: Scene) -> dict[str, Any] | None:
    fault = record["fault"]
    if not fault:
        return None
    shown = {"code": fault["code"], "created": moment(fault["created_at"]), "message": fault["message"]}
    if fault["details"] and (scene.is_admin or fault["code"] != _INTERNAL_FAULT):
        shown["details"] = fault["details"]
    return shown


def _zone(record: Record, scene: Scene) -> str:
    host = record["host"]
    if not host:
        return record["availability_zone"] or ""
    return scene.zones.get(host) or scene.default_zone


def _volumes(record: Record, scene: Scene) -> list[dict[str, Any]]:
    shown = []
    for device in record["volumes"]:
        volume = {"id": device["volume_id"]}
        if scene.version >= 3:
            volume["delete_on_termination"] = bool(device["delete_on_termination"])
        shown.append(volume)
    return shown


def instance_name(record: Record, template: str) -> str:
    """The name that the hypervisor knows; empty while the server has no record in a cell."""
    if record.get("id") is None:
        return ""
    try:
        return template % record["id"]
    except TypeError:
        pass
    try:
        return template % record
    except KeyError:
        return str(record["uuid"])


def _trusted_certs(record: Record, _: Scene) -> list[str] | None:
    text = record["extra"].get("trusted_certs")
    if not text:
        return None
    certs = _json(text)
    found: list[str] = certs.get("nova_object.data", certs)["ids"]
    return found


def _spec_value(name: str) -> Callable[[Record, Scene], Any]:
    def value(record: Record, scene: Scene) -> Any:
        return scene.specs.get(record["uuid"], {}).get(name)

    return value


def _text_of(name: str) -> Callable[[Record, Scene], str]:
    return lambda record, scene: "" if record[name] is None else str(record[name])


def _column(name: str) -> Callable[[Record, Scene], Any]:
    return lambda record, scene: record[name]


MEMBERS: Final[Mapping[str, Callable[[Record, Scene], Any]]] = {
    "id": _column("uuid"),
    "name": _column("display_name"),
    "tenant_id": _text_of("project_id"),
    "user_id": _text_of("user_id"),
    "metadata": _column("metadata"),
    "hostId": lambda record, scene: host_id(record["host"], record["project_id"]),
    "image": _image,
    "flavor": _flavor,
    "created": lambda record, scene: moment(record["created_at"]),
    "updated": lambda record, scene: moment(record["updated_at"] or record["created_at"]),
    "accessIPv4": _text_of("access_ip_v4"),
    "accessIPv6": _text_of("access_ip_v6"),
    "links": _links,
    "OS-DCF:diskConfig": lambda record, scene: "AUTO" if record["auto_disk_config"] else "MANUAL",
    "OS-EXT-AZ:availability_zone": _zone,
    "config_drive": _column("config_drive"),
    "key_name": _column("key_name"),
    "OS-SRV-USG:launched_at": lambda record, scene: _fraction(record["launched_at"]),
    "OS-SRV-USG:terminated_at": lambda record, scene: _fraction(record["terminated_at"]),
    _ATTRIBUTE + "host": _column("host"),
    _ATTRIBUTE + "instance_name": lambda record, scene: instance_name(record, scene.instance_name_template),
    _ATTRIBUTE + "hypervisor_hostname": _column("node"),
    _ATTRIBUTE + "hostname": _column("hostname"),
    _ATTRIBUTE + "kernel_id": _column("kernel_id"),
    _ATTRIBUTE + "ramdisk_id": _column("ramdisk_id"),
    _ATTRIBUTE + "launch_index": _column("launch_index"),
    _ATTRIBUTE + "reservation_id": _column("reservation_id"),
    _ATTRIBUTE + "root_device_name": _column("root_device_name"),
    _ATTRIBUTE + "user_data": _column("user_data"),
    "OS-EXT-STS:task_state": _column("task_state"),
    "OS-EXT-STS:vm_state": _column("vm_state"),
    "OS-EXT-STS:power_state": lambda record, scene: record["power_state"] or 0,
    "os-extended-volumes:volumes_attached": _volumes,
    "locked": lambda record, scene: bool(record["locked_by"]),
    "description": _column("display_description"),
    "tags": lambda record, scene: list(record["tags"]),
    "trusted_image_certificates": _trusted_certs,
    "locked_reason": lambda record, scene: record["system_metadata"].get("locked_reason"),
    "pinned_availability_zone": _spec_value("availability_zone"),
    "scheduler_hints": _spec_value("scheduler_hints"),
    "server_groups": lambda record, scene: scene.groups.get(record["uuid"], []),
}
"""Members that always have a value; `show` adds those that only some servers have."""

_SPECIAL: Final = frozenset({"status", "addresses", "fault", "progress", "security_groups", "host_status"})


@lru_cache(maxsize=512)
def _members(shape: Object, version: int, extended: bool) -> tuple[tuple[str, Callable[[Record, Scene], Any]], ...]:
    """The members that a shape has in a version, with their functions."""

    def visible(name: str) -> bool:
        # From 2.90 on everyone sees the hostname.
        return extended or not name.startswith(_ATTRIBUTE) or (name == _ATTRIBUTE + "hostname" and version >= 90)

    return tuple((name, MEMBERS[name]) for name in shape.names(version) if name not in _SPECIAL and visible(name))


@lru_cache(maxsize=512)
def names(shape: Object, version: int) -> frozenset[str]:
    """The members of a shape in a version."""
    return frozenset(shape.names(version))


def show(record: Record, scene: Scene, shape: Object = contract.SERVER) -> dict[str, Any]:
    """One server in the asked version's form of ``shape``."""
    version = scene.version
    shown = {name: value(record, scene) for name, value in _members(shape, version, scene.extended)}
    known = names(shape, version)
    state = shown["status"] = shown_status(record)
    whole = "config_drive" in known
    shown["addresses"] = addresses(record, extended=whole)
    if state in _FAULTY and (fault := _fault(record, scene)):
        shown["fault"] = fault
    if state in _PROGRESSING:
        shown["progress"] = record["progress"] or 0
    if "security_groups" in known and (groups := scene.security_groups.get(record["uuid"])):
        shown["security_groups"] = [{"name": name} for name in groups]
    if scene.host_status and "host_status" in known:
        placed = record["host"] and not record["deleted"]
        host_state = scene.host_statuses.get(record["host"], "UNKNOWN") if placed else ""
        if not scene.only_unknown_status or host_state == "UNKNOWN":
            shown["host_status"] = host_state
    return shown


def brief(record: Record, scene: Scene) -> dict[str, Any]:
    """A server in a list without details."""
    return {"id": record["uuid"], "name": record["display_name"], "links": _links(record, scene)}


def unreachable(mapping: Record, scene: Scene, *, detail: bool) -> dict[str, Any]:
    """What is known of a server in a list whose cell does not answer: its row among the instance mappings."""
    uuid = mapping["instance_uuid"]
    shown = {"id": uuid, "status": "UNKNOWN", "links": _links({"uuid": uuid}, scene)}
    if detail:
        shown |= {"tenant_id": mapping["project_id"], "created": moment(mapping["created_at"])}
    return shown


def unreachable_whole(mapping: Record, request: dict[str, Any], scene: Scene) -> dict[str, Any]:
    """The same for a server alone, with what was asked for at its creation.

    ``request`` has ``user_id``, ``image_ref``, ``flavor`` (as a record has it) and ``availability_zone``.
    """
    shown = unreachable(mapping, scene, detail=True) | {
        "user_id": request["user_id"] or "UNKNOWN",
        "image": _image(request | {"system_metadata": {}}, scene),
        "flavor": _flavor(request, scene),
        "OS-EXT-AZ:availability_zone": request["availability_zone"] or "UNKNOWN",
        "OS-EXT-STS:power_state": 0,
    }
    if shown["image"]:
        shown["image"].pop("properties", None)
    if "server_groups" in names(contract.SERVER, scene.version):
        shown["server_groups"] = scene.groups.get(mapping["instance_uuid"], [])
    return shown
