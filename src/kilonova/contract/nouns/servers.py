"""Servers in REST: list, detail, show, update. Creation and deletion are verbs (`contract.ops`)."""

from typing import Any, Final

from kilonova.contract.cards import LEGACY_ONLY, Route
from kilonova.contract.fields import (
    INTEGER,
    LIMIT,
    NAME,
    NEXT_LINK,
    TEXT,
    URI,
    UUID,
    ByVersion,
    Field,
    Object,
    Shape,
    array,
    nullable,
    one_of,
    query,
)
from kilonova.contract.microversions import ALL, Versions, since, until
from kilonova.contract.states import HOST_STATUSES, POWER_STATE_NAMES, STATUS_MAP

SHOW_POLICY: Final = "os_compute_api:servers:show"
INDEX_POLICY: Final = "os_compute_api:servers:index"
DETAIL_POLICY: Final = "os_compute_api:servers:detail"
UPDATE_POLICY: Final = "os_compute_api:servers:update"
ALL_TENANTS_INDEX: Final = "os_compute_api:servers:index:get_all_tenants"
ALL_TENANTS_DETAIL: Final = "os_compute_api:servers:detail:get_all_tenants"
ALL_FILTERS: Final = "os_compute_api:servers:allow_all_filters"
EXTENDED_ATTRIBUTES: Final = "os_compute_api:os-extended-server-attributes"
FLAVOR_EXTRA_SPECS: Final = "os_compute_api:servers:show:flavor-extra-specs"
HOST_STATUS: Final = "os_compute_api:servers:show:host_status"
HOST_STATUS_UNKNOWN: Final = "os_compute_api:servers:show:host_status:unknown-only"
_SOFT: Final = (EXTENDED_ATTRIBUTES, FLAVOR_EXTRA_SPECS, HOST_STATUS, HOST_STATUS_UNKNOWN)

# ---------------------------------------------------------------- query

REGEX: Final = {"type": "string", "format": "regex"}
_REGEX_FILTERS: Final = (
    "access_ip_v4 access_ip_v6 auto_disk_config availability_zone config_drive created_at description"
    " display_description display_name flavor hostname ip ip6 kernel_id key_name launched_at locked_by name node"
    " power_state progress ramdisk_id reservation_id root_device_name terminated_at"
)
_TEXT_FILTERS: Final = (
    "all_tenants block_device_mapping deleted host image image_ref info_cache launch_index marker metadata"
    " pci_devices project_id security_groups services soft_deleted sort_dir status system_metadata task_state"
    " tenant_id user_id uuid vm_state"
)
TAG_FILTERS: Final = ("tags", "tags-any", "not-tags", "not-tags-any")
_SORT_KEYS: Final = (
    "access_ip_v4 access_ip_v6 auto_disk_config availability_zone config_drive created_at display_description"
    " display_name host hostname image_ref instance_type_id kernel_id key_name launch_index launched_at locked"
    " locked_by node power_state progress project_id ramdisk_id root_device_name task_state terminated_at"
    " updated_at user_id uuid vm_state"
)
_OLD_SORT_KEYS: Final = (
    " architecture cell_name cleaned default_ephemeral_device default_swap_device deleted deleted_at"
    " disable_terminate ephemeral_gb ephemeral_key_uuid id key_data launched_on memory_mb os_type reservation_id"
    " root_gb shutdown_terminate user_data vcpus vm_mode"
)


def _words(text: str) -> list[str]:
    return text.split()


SORT_KEYS: Final = frozenset(_words(_SORT_KEYS + _OLD_SORT_KEYS))


def _sort_key(keys: str) -> dict[str, Any]:
    return {"type": "string", "enum": _words(keys)}


_LISTING: Final = query(
    *(Field(name, REGEX) for name in _words(_REGEX_FILTERS)),
    *(Field(name, TEXT) for name in _words(_TEXT_FILTERS)),
    *(Field(name, REGEX, since(26)) for name in TAG_FILTERS),
    Field("changes-since", {"type": "string", "format": "date-time"}),
    Field("changes-before", {"type": "string", "format": "date-time"}, since(66)),
    Field("locked", TEXT, since(73)),
    Field("limit", LIMIT),
    Field("sort_key", ByVersion((until(74), _sort_key(_SORT_KEYS + _OLD_SORT_KEYS)), (ALL, _sort_key(_SORT_KEYS)))),
    lenient=until(74),
    patterns={"^_": TEXT},
)
# The legacy endpoint takes any parameter.
_LIST_QUERY: Final = ByVersion((LEGACY_ONLY, Object(*_LISTING.fields, extra=True)), (ALL, _LISTING))

# ---------------------------------------------------------------- response

POWER_STATE: Final = {"type": ["integer", "null"], "enum": [*POWER_STATE_NAMES, None]}
_MAYBE_TEXT: Final = nullable(TEXT)
_MAYBE_TIME: Final = {"type": ["string", "null"], "format": "date-time"}
_TIME: Final = {"type": "string", "format": "date-time"}
_OWNER: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}
LINKS: Final = array(
    Object(
        Field("href", URI, required=True),
        Field("rel", {"type": "string", "enum": ["self", "bookmark"]}, required=True),
    )
)
_STATUS: Final = {
    "type": "string",
    "enum": sorted({shown for by_task in STATUS_MAP.values() for shown in by_task.values()} | {"UNKNOWN"}),
}
_ADDRESS: Final = {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]}
_IP_VERSION: Final = {"type": "number", "enum": [4, 6]}
SCHEDULER_HINTS: Final = Object(
    Field("build_near_host_ip", _ADDRESS),
    Field("cidr", {"type": "string", "pattern": "^/[0-9a-f.:]+$"}),
    Field("different_cell", {"type": ["string", "array"], "items": TEXT}),
    Field("different_host", one_of(UUID, array(UUID))),
    Field("group", one_of(array(UUID), UUID)),
    Field("query", {"type": ["string", "object"]}),
    Field("same_host", {"type": ["string", "array"], "items": UUID}),
    Field("target_cell", NAME),
    extra=True,
)
_FLAVOR: Final = Object(
    Field("id", TEXT, until(46)),
    Field("links", LINKS, until(46)),
    *(Field(name, INTEGER, since(47), required=True) for name in ("disk", "ephemeral", "ram", "swap", "vcpus")),
    Field("extra_specs", Object(patterns={"^.+$": TEXT}), since(47)),
    Field("original_name", TEXT, since(47), required=True),
)
_IMAGE_PROPERTIES: Final = Object(patterns={"^[a-zA-Z0-9_:. ]{1,255}$": {"type": ["string", "null"], "maxLength": 255}})


def _image(*more: Field) -> Shape:
    return one_of({"type": "string", "const": ""}, Object(Field("id", UUID), Field("links", LINKS), *more))


def _addresses(name: str, extended: Versions) -> Object:
    address = Object(
        Field("addr", _ADDRESS, required=True),
        Field("version", _IP_VERSION, required=True),
        Field("OS-EXT-IPS:type", {"type": "string", "enum": ["fixed", "floating"]}, extended, required=True),
        Field("OS-EXT-IPS-MAC:mac_addr", {"type": "string"}, extended, required=True),
    )
    return Object(patterns={name: array(address)})


_VOLUME: Final = Object(
    Field("id", TEXT, required=True), Field("delete_on_termination", {"type": "boolean"}, since(3), required=True)
)
_FAULT: Final = Object(
    Field("code", INTEGER, required=True),
    Field("created", _TIME, required=True),
    Field("details", TEXT),
    Field("message", TEXT, required=True),
)
_DRIVE: Final = {"type": ["string", "null"], "enum": ["", "False", "True", None]}
_LOOSE_DRIVE: Final = {"type": ["string", "boolean", "null"]}
_HOST_STATUS: Final = {"type": "string", "enum": list(HOST_STATUSES)}
_SECURITY_GROUPS: Final = array(Object(Field("name", TEXT, required=True)))


def _later(versions: Versions, low: int) -> Versions:
    return Versions(tuple((max(start, low), high) for start, high in versions.ranges))


def _server(whole: Versions, *more: Field, loose: bool = False) -> Object:
    """A server; ``whole`` are the versions that show more than the basic members, ``loose`` is said of updates."""
    text = {"OS-EXT-SRV-ATTR:" + name for name in ("kernel_id", "ramdisk_id", "reservation_id", "root_device_name")}
    extended = _later(whole, 3)
    return Object(
        Field("id", TEXT if loose else UUID, required=True),
        Field("name", _MAYBE_TEXT, required=True),
        Field("status", _STATUS, required=True),
        Field("tenant_id", _OWNER, required=True),
        Field("user_id", _OWNER, required=True),
        Field("metadata", Object(patterns={"^.+$": TEXT}), required=True),
        Field("hostId", TEXT, required=True),
        Field("image", _image(Field("properties", _IMAGE_PROPERTIES, since(98))), required=True),
        Field("flavor", _FLAVOR, required=True),
        Field("created", _TIME, required=True),
        Field("updated", _TIME, required=True),
        Field("addresses", _addresses("^.+$" if loose else "^.*$", whole), required=True),
        Field("accessIPv4", {"type": "string", "oneOf": [{"format": "ipv4"}, {"const": ""}]}, required=True),
        Field("accessIPv6", {"type": "string", "oneOf": [{"format": "ipv6"}, {"const": ""}]}, required=True),
        Field("links", LINKS, required=True),
        Field("OS-DCF:diskConfig", TEXT, required=True),
        Field("progress", {"type": ["null", "number"]}),
        Field("fault", _FAULT),
        Field("OS-EXT-AZ:availability_zone", TEXT, whole, required=True),
        Field("config_drive", _LOOSE_DRIVE if loose else _DRIVE, whole, required=True),
        Field("key_name", _MAYBE_TEXT, whole, required=not loose),
        Field("OS-SRV-USG:launched_at", _MAYBE_TIME, whole, required=True),
        Field("OS-SRV-USG:terminated_at", _MAYBE_TIME, whole, required=True),
        Field("security_groups", _SECURITY_GROUPS, whole),
        Field("OS-EXT-SRV-ATTR:host", _MAYBE_TEXT, whole),
        Field("OS-EXT-SRV-ATTR:instance_name", TEXT, whole),
        Field("OS-EXT-SRV-ATTR:hypervisor_hostname", _MAYBE_TEXT, whole),
        Field("OS-EXT-SRV-ATTR:hostname", TEXT, extended, required=False if loose else since(90)),
        Field("OS-EXT-SRV-ATTR:launch_index", INTEGER if loose else nullable(INTEGER), extended),
        *(Field(name, _MAYBE_TEXT, extended) for name in sorted(text)),
        Field(
            "OS-EXT-SRV-ATTR:user_data",
            {"type": ["string", "null"], "format": "base64", "maxLength": 65535},
            extended,
        ),
        Field("OS-EXT-STS:task_state", _MAYBE_TEXT, whole, required=True),
        Field("OS-EXT-STS:vm_state", _MAYBE_TEXT, whole, required=True),
        Field("OS-EXT-STS:power_state", POWER_STATE, whole, required=True),
        Field("os-extended-volumes:volumes_attached", array(_VOLUME), whole, required=True),
        Field("host_status", TEXT if loose else _HOST_STATUS, _later(whole, 16)),
        Field("locked", {"type": "boolean"}, since(9), required=True),
        Field("description", _MAYBE_TEXT, since(19), required=True),
        Field("tags", array(TEXT, maxItems=50), since(26), required=True),
        Field("trusted_image_certificates", {"type": ["array", "null"], "items": TEXT}, since(63), required=True),
        Field("locked_reason", _MAYBE_TEXT, since(73), required=True),
        Field("pinned_availability_zone", _MAYBE_TEXT, since(96), required=True),
        Field("scheduler_hints", SCHEDULER_HINTS, since(100), required=True),
        *more,
    )


_GROUPS: Final = Field("server_groups", array(UUID, maxLength=1), since(71), required=True)
SERVER: Final = _server(ALL, _GROUPS)
IN_DETAIL: Final = _server(ALL)
# An update answered with less until 2.75.
UPDATED: Final = _server(since(75), _GROUPS, loose=True)

# What is known of a server whose cell does not answer.
_DOWN: Final = (
    Field("id", UUID, required=True),
    Field("links", LINKS, required=True),
    Field("status", {"type": "string", "const": "UNKNOWN"}, required=True),
)
_DOWN_IN_DETAIL: Final = (
    *_DOWN,
    Field("created", _TIME, required=True),
    Field("tenant_id", _OWNER, required=True),
)
_DOWN_SHOWN: Final = (
    *_DOWN_IN_DETAIL,
    Field("user_id", _OWNER, required=True),
    Field("flavor", _FLAVOR, required=True),
    Field("image", _image(), required=True),
    Field("OS-EXT-AZ:availability_zone", TEXT, required=True),
    Field("OS-EXT-STS:power_state", POWER_STATE, required=True),
    _GROUPS,
)
_BRIEF: Final = Object(
    Field("id", UUID, required=True), Field("name", TEXT, required=True), Field("links", LINKS, required=True)
)


def _or_down(server: Object, down: tuple[Field, ...]) -> ByVersion:
    return ByVersion((until(68), server), (ALL, one_of(server, Object(*down))))


def _listing(entry: Shape) -> Object:
    return Object(Field("servers", array(entry), required=True), Field("servers_links", NEXT_LINK))


# ---------------------------------------------------------------- routes

LIST: Final = Route(
    method="GET",
    path="/servers",
    errors=(400, 403),
    policies=(INDEX_POLICY, ALL_TENANTS_INDEX),
    soft=(ALL_FILTERS,),
    query=_LIST_QUERY,
    response=_listing(_or_down(_BRIEF, _DOWN)),
)
DETAIL: Final = Route(
    method="GET",
    path="/servers/detail",
    errors=(400, 403),
    policies=(DETAIL_POLICY, ALL_TENANTS_DETAIL),
    soft=(*_SOFT, ALL_FILTERS),
    query=_LIST_QUERY,
    response=_listing(_or_down(IN_DETAIL, _DOWN_IN_DETAIL)),
)
SHOW: Final = Route(
    method="GET",
    path="/servers/{id}",
    errors=(404,),
    policies=(SHOW_POLICY,),
    soft=_SOFT,
    query=ByVersion((LEGACY_ONLY, {}), (ALL, query(lenient=until(101)))),
    response=Object(Field("server", _or_down(SERVER, _DOWN_SHOWN), required=True)),
)

DISK_CONFIG: Final = {"type": "string", "enum": ["AUTO", "MANUAL"]}
SERVER_NAME: Final = ByVersion(
    (LEGACY_ONLY, {"type": "string", "minLength": 1, "maxLength": 255, "format": "name_with_leading_trailing_spaces"}),
    (ALL, NAME),
)
DESCRIPTION: Final = {"type": ["string", "null"], "minLength": 0, "maxLength": 255, "format": "printable"}
HOSTNAME: Final = ByVersion(
    (
        until(93),
        {"type": "string", "minLength": 2, "maxLength": 63, "pattern": "^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$"},
    ),
    (ALL, {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-._]*$"}),
)
UPDATE: Final = Route(
    method="PUT",
    path="/servers/{id}",
    errors=(404, 409),
    policies=(UPDATE_POLICY,),
    soft=_SOFT,
    body=Object(
        Field(
            "server",
            Object(
                Field("name", SERVER_NAME),
                Field("OS-DCF:diskConfig", DISK_CONFIG),
                Field("accessIPv4", {"type": "string", "format": "ipv4"}),
                Field("accessIPv6", {"type": "string", "format": "ipv6"}),
                Field("description", DESCRIPTION, since(19)),
                Field("hostname", HOSTNAME, since(90)),
                Field(
                    "pinned_availability_zone",
                    {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
                    since(104),
                ),
            ),
            required=True,
        )
    ),
    response=Object(Field("server", UPDATED, required=True)),
)
