"""What a request for new servers asks for, with the forms of older versions taken away."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kilonova.api import numbers
from kilonova.api.servers import hostnames
from kilonova.api.servers.creation import devices
from kilonova.db import exact
from kilonova.wire.http.faults import bad_request

Networks = list[dict[str, Any]] | Literal["auto", "none"] | None
_UNTIL_DESCRIPTIONS: Final = 18
MOST_SERVERS: Final = 1000
"""As many as a page shows; a project without quotas must not ask for more records than a process can make."""
MOST_PARTS: Final = 64
"""Networks, devices or groups of one server: each is asked for in another service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """``zone``, ``zone:host``, ``zone:host:node`` or ``zone::node``."""

    name: str | None = None
    host: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A request for new servers. What was not given is None or empty.

    ``networks`` None leaves the choice to the service. ``old_devices`` says in which form ``devices`` are.
    """

    name: str
    flavor_id: str
    description: str | None = None
    hostname: str | None = None
    image_id: str | None = None
    admin_password: str | None = None
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    security_groups: list[str] = field(default_factory=list)
    zone: Zone = Zone()
    zone_text: str | None = None
    host: str | None = None
    node: str | None = None
    hints: dict[str, Any] = field(default_factory=dict)
    min_count: int = 1
    max_count: int = 1
    wants_reservation_id: bool = False
    networks: Networks = None
    devices: list[dict[str, Any]] = field(default_factory=list)
    old_devices: bool = False
    auto_disk_config: bool | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    trusted_certs: list[str] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)


def read(body: Mapping[str, Any], version: int) -> Wish:
    """The wish of a validated body. Raises `Fault` 400 for what contradicts itself."""
    server = body["server"]
    for member in ("networks", "block_device_mapping", "block_device_mapping_v2", "security_groups", "personality"):
        if len(server.get(member) or ()) > MOST_PARTS:
            raise bad_request(f"Invalid input for field/attribute {member}. A server has at most {MOST_PARTS} of them.")
    name = server["name"].strip()
    image_id = server.get("imageRef") or None
    asked_devices, old_form = _devices(server, has_image=image_id is not None)
    if image_id is None and not asked_devices:
        raise bad_request("Missing imageRef attribute")
    low, high = _counts(server)
    disk_config = server.get("OS-DCF:diskConfig")
    return Wish(
        name=name,
        description=name if version <= _UNTIL_DESCRIPTIONS else server.get("description"),
        hostname=hostnames.checked(server.get("hostname")),
        flavor_id=str(server["flavorRef"]).rpartition("/")[2],
        image_id=image_id,
        admin_password=server.get("adminPass"),
        key_name=server.get("key_name"),
        user_data=server.get("user_data") or None,
        config_drive=devices.truth(server.get("config_drive", False)),
        metadata=server.get("metadata") or {},
        tags=_tags(server.get("tags") or ()),
        security_groups=list(dict.fromkeys(g["name"] for g in server.get("security_groups") or () if g.get("name"))),
        zone=zone_of(server.get("availability_zone")),
        zone_text=server.get("availability_zone"),
        host=server.get("host"),
        node=server.get("hypervisor_hostname"),
        hints=_hints(body),
        min_count=low,
        max_count=high,
        wants_reservation_id=devices.truth(server.get("return_reservation_id", False)),
        networks=_networks(server.get("networks"), several=high > 1),
        devices=asked_devices,
        old_devices=old_form,
        auto_disk_config=None if disk_config is None else disk_config == "AUTO",
        access_ip_v4=server.get("accessIPv4"),
        access_ip_v6=server.get("accessIPv6"),
        trusted_certs=list(server.get("trusted_image_certificates") or ()),
        files=_files(server.get("personality") or ()),
    )


def _tags(given: Iterable[str]) -> list[str]:
    """Raises `Fault` 400 for tags that not every database tells apart."""
    clash = exact.clash(given)
    if clash is not None:
        raise bad_request(exact.sentence("Tags", clash))
    return list(dict.fromkeys(given))


def zone_of(text: str | None) -> Zone:
    """Raises `Fault` 400 for more than two colons."""
    parts = (text or "").split(":")
    if len(parts) > 3:
        raise bad_request("Unable to parse availability_zone")
    zone, host, node = [part or None for part in (*parts, "", "")[:3]]
    return Zone(name=zone, host=host, node=node)


def _counts(server: Mapping[str, Any]) -> tuple[int, int]:
    low = numbers.whole("min_count", server.get("min_count", 1), most=MOST_SERVERS)
    high = numbers.whole("max_count", server.get("max_count", low), most=MOST_SERVERS)
    if low > high:
        raise bad_request("min_count must be <= max_count")
    if high > 1 and server.get("hostname"):
        raise bad_request("One hostname cannot be given to several servers.")
    return low, high


def _hints(body: Mapping[str, Any]) -> dict[str, Any]:
    given = body.get("os:scheduler_hints", body.get("OS-SCH-HNT:scheduler_hints")) or {}
    return {name: value for name, value in given.items() if not name.startswith("_nova")}


def _devices(server: Mapping[str, Any], *, has_image: bool) -> tuple[list[dict[str, Any]], bool]:
    old = server.get("block_device_mapping") or []
    new = server.get("block_device_mapping_v2") or []
    if old and new:
        raise bad_request("Using different block_device_mapping syntaxes is not allowed in the same request.")
    if old:
        return [dict(each) for each in old], True
    return [devices.from_request(each, has_image=has_image) for each in new], False


def _networks(given: Any, *, several: bool) -> Networks:
    if given is None or given == "auto" or given == "none":
        return given
    ports: set[str] = set()
    return [_network(each, ports, several=several) for each in given]


def _network(given: Mapping[str, Any], ports: set[str], *, several: bool) -> dict[str, Any]:
    port, address = given.get("port"), given.get("fixed_ip")
    if port:
        _check_port(port, address, ports, several=several)
        ports.add(port)
    elif "uuid" not in given:
        raise bad_request("Bad network format: missing 'uuid'")
    elif several and address:
        raise bad_request("max_count cannot be greater than 1 if an fixed_ip is specified.")
    return {
        "network_id": None if port else given["uuid"],
        "address": address,
        "port_id": port,
        "tag": given.get("tag"),
    }


def _check_port(port: str, address: str | None, ports: set[str], *, several: bool) -> None:
    if port in ports:
        raise bad_request(f"Port {port} was given twice: a port can be attached once.")
    if address is not None:
        raise bad_request(f"The fixed IP {address} cannot be given together with the port {port}.")
    if several:
        raise bad_request("Several servers cannot share one port: create them one by one with a port each.")


def _files(given: Any) -> list[tuple[str, str]]:
    try:
        return [(each["path"], each["contents"]) for each in given]
    except KeyError as missing:
        raise bad_request(f"personality: missing {missing}") from None
