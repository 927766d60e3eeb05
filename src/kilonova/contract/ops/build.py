"""Build: a new server, or several."""

from typing import Final

from kilonova.contract.cards import LEGACY_ONLY, Op, Route
from kilonova.contract.fields import BOOLEAN, METADATA, TEXT, UUID, ByVersion, Field, Object, Shape, array, one_of
from kilonova.contract.microversions import ALL, Versions, since, until
from kilonova.contract.nouns.servers import (
    DESCRIPTION,
    DISK_CONFIG,
    HOSTNAME,
    LINKS,
    SCHEDULER_HINTS,
    SERVER_NAME,
)
from kilonova.contract.states import Action, Task

CREATE_POLICY: Final = "os_compute_api:servers:create"
ATTACH_NETWORK: Final = "os_compute_api:servers:create:attach_network"
ATTACH_VOLUME: Final = "os_compute_api:servers:create:attach_volume"
TRUSTED_CERTS: Final = "os_compute_api:servers:create:trusted_certs"
FORCED_HOST: Final = "os_compute_api:servers:create:forced_host"
REQUESTED_DESTINATION: Final = "compute:servers:create:requested_destination"
ZERO_DISK_FLAVOR: Final = "os_compute_api:servers:create:zero_disk_flavor"
EXTERNAL_NETWORK: Final = "network:attach_external_network"

_LONG: Final = {"type": "string", "maxLength": 255}
DEVICE_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._/-]*$"}
TAG: Final = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"}
_FQDN: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-._]*$"}
_COUNT: Final = {"type": ["integer", "string"], "pattern": "^[0-9]*$", "minLength": 1, "minimum": 1}
_SIZE: Final = {"type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 1, "maximum": 2147483647}

_COMMON_DEVICE: Final = (
    Field("virtual_name", _LONG),
    Field("volume_id", UUID),
    Field("snapshot_id", UUID),
    Field("volume_size", _SIZE),
    Field("device_name", DEVICE_NAME),
    Field("delete_on_termination", BOOLEAN),
    Field("no_device", {}),
    Field("connection_info", {"type": "string", "maxLength": 16777215}),
)
_OLD_DEVICE: Final = Object(*_COMMON_DEVICE)
_DEVICE: Final = Object(
    *_COMMON_DEVICE,
    Field("source_type", {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]}),
    Field("destination_type", {"type": "string", "enum": ["local", "volume"]}),
    Field("uuid", {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._-]*$"}),
    Field("image_id", UUID),
    Field("boot_index", {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$"}),
    Field("guest_format", _LONG),
    Field("device_type", _LONG),
    Field("disk_bus", _LONG),
    Field("tag", TAG, Versions(((32, 32), (42, None)))),
    Field("volume_type", {"type": ["string", "null"], "minLength": 0, "maxLength": 255}, since(67)),
)


def _maybe(shape: Shape) -> Shape:
    return {"anyOf": [shape, {"type": "null"}]}


# What the owner of an image wrote into it comes to the same place as what is asked for, by another door.
MOST_DEVICES: Final = 64
IMAGE_DEVICES: Final = array(
    Object(*(Field(field.name, _maybe(field.shape)) for field in _DEVICE.fields), extra=True), maxItems=MOST_DEVICES
)
IMAGE_MAPPINGS: Final = array(
    Object(
        Field("virtual", TEXT, required=True),
        Field("device", DEVICE_NAME, required=True),
        Field("guest_format", _maybe(_LONG)),
        extra=True,
    ),
    maxItems=MOST_DEVICES,
)
_NETWORK: Final = Object(
    Field("uuid", ByVersion((until(36), TEXT), (ALL, UUID))),
    Field("port", {"type": ["string", "null"], "format": "uuid"}),
    Field("fixed_ip", {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
    Field("tag", TAG, Versions(((32, 36), (42, None)))),
)
_NETWORKS: Final = ByVersion(
    (until(36), array(_NETWORK)),
    (ALL, one_of(array(_NETWORK), {"type": "string", "enum": ["none", "auto"]})),
)
_USER_DATA: Final = {"type": "string", "format": "base64", "maxLength": 65535}
_PERSONALITY: Final = array(Object(Field("path", TEXT), Field("contents", {"type": "string", "format": "base64"})))

_SERVER: Final = Object(
    Field("name", SERVER_NAME, required=True),
    Field("flavorRef", {"type": ["string", "integer"], "minLength": 1}, required=True),
    Field("imageRef", one_of(UUID, {"type": "string", "maxLength": 0})),
    Field("networks", _NETWORKS, required=since(37)),
    Field("adminPass", TEXT),
    Field("metadata", METADATA),
    Field("OS-DCF:diskConfig", DISK_CONFIG),
    Field("accessIPv4", {"type": "string", "format": "ipv4"}),
    Field("accessIPv6", {"type": "string", "format": "ipv6"}),
    Field("personality", _PERSONALITY, until(56)),
    Field("availability_zone", SERVER_NAME),
    Field("block_device_mapping", array(_OLD_DEVICE)),
    Field("block_device_mapping_v2", array(_DEVICE)),
    Field("config_drive", BOOLEAN),
    Field("key_name", SERVER_NAME),
    Field("min_count", _COUNT),
    Field("max_count", _COUNT),
    Field("return_reservation_id", BOOLEAN),
    Field("security_groups", array(Object(Field("name", SERVER_NAME)))),
    Field("user_data", ByVersion((LEGACY_ONLY, {**_USER_DATA, "type": ["string", "null"]}), (ALL, _USER_DATA))),
    Field("description", DESCRIPTION, since(19)),
    Field("tags", array(TAG, maxItems=50), since(52)),
    Field(
        "trusted_image_certificates",
        {
            "type": ["array", "null"],
            "items": {"type": "string", "minLength": 1},
            "minItems": 1,
            "maxItems": 50,
            "uniqueItems": True,
        },
        since(63),
    ),
    Field("host", _FQDN, since(74)),
    Field("hypervisor_hostname", _FQDN, since(74)),
    Field("hostname", HOSTNAME, since(90)),
)

_CREATED: Final = Object(
    Field("id", UUID, required=True),
    Field("links", LINKS, required=True),
    Field("OS-DCF:diskConfig", TEXT, required=True),
    Field("security_groups", array(Object(Field("name", TEXT, required=True))), required=True),
    Field("adminPass", TEXT),
)

CREATE: Final = Route(
    method="POST",
    path="/servers",
    success=202,
    errors=(400, 403, 409),
    policies=(
        CREATE_POLICY,
        ATTACH_NETWORK,
        ATTACH_VOLUME,
        TRUSTED_CERTS,
        FORCED_HOST,
        REQUESTED_DESTINATION,
        ZERO_DISK_FLAVOR,
        EXTERNAL_NETWORK,
    ),
    body=Object(
        Field("server", _SERVER, required=True),
        Field("os:scheduler_hints", SCHEDULER_HINTS),
        Field("OS-SCH-HNT:scheduler_hints", SCHEDULER_HINTS),
    ),
    response={
        "type": "object",
        "oneOf": [
            {
                "properties": {"reservation_id": TEXT},
                "required": ["reservation_id"],
                "additionalProperties": False,
            },
            {"properties": {"server": _CREATED}, "required": ["server"], "additionalProperties": False},
        ],
    },
)

CARD: Final = Op(
    name="build",
    routes=(CREATE,),
    task=Task.SCHEDULING,
    action=Action.CREATE,
    rpc=("schedule_and_build_instances", "build_and_run_instance"),
)
