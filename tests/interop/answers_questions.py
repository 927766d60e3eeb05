"""What both sides are asked over the same databases, and where two answers differ."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.interop.answers_cloud import ADMINS, OTHERS, Answer, Pair
from tests.interop.documents import Allowed, unequal
from tests.ops.control_plane import PROJECT

JOE, ANN, ADMIN, HOME = f"joe:{PROJECT}", f"ann:{OTHERS}", f"admin:{ADMINS}", f"admin:{PROJECT}"
"""HOME: an administrator in joe's project."""
BOTH = (JOE, ADMIN)
NEWEST = 104
NOT_BUILT = 501
HEADERS = ("openstack-api-version", "x-openstack-nova-api-version", "vary", "location", "retry-after", "content-type")
PRESENT = ("x-openstack-request-id", "x-compute-request-id")


@dataclasses.dataclass(frozen=True)
class Question:
    """`version` is a minor one, the text of the version header, or None for no header."""

    path: str
    user: str | None = ADMIN
    version: int | str | None = NEWEST
    method: str = "GET"
    body: str | None = None
    more: tuple[tuple[str, str], ...] = ()
    prefix: str = "/v2.1"

    def headers(self) -> dict[str, str]:
        found = dict(self.more)
        if self.user is not None:
            found["X-Auth-Token"] = self.user
        if self.version is not None:
            named = f"compute 2.{self.version}" if isinstance(self.version, int) else self.version
            found["OpenStack-API-Version"] = named
        return found

    def __str__(self) -> str:
        who = (self.user or "nobody").partition(":")[0]
        return f"{self.version} {who} {self.method} {self.prefix}{self.path} {self.body or ''}"


def each(paths: Iterable[str], minors: Sequence[int] = (NEWEST,), users: Sequence[str] = BOTH) -> Iterator[Question]:
    for path, minor, user in itertools.product(paths, minors, users):
        yield Question(path, user, minor)


def send(method: str, path: str, body: Any = None, user: str = ADMIN, version: int = NEWEST) -> Question:
    return Question(path, user, version, method, None if body is None else json.dumps(body))


# ---------------------------------------------------------------- at many microversions


def around(*minors: int) -> tuple[int, ...]:
    """These versions, the ones before them, the first and the newest."""
    return tuple(sorted({1, NEWEST, *minors, *(minor - 1 for minor in minors if minor > 1)}))


OF_SERVERS = around(
    3, 4, 8, 9, 13, 15, 16, 19, 26, 36, 38, 47, 57, 63, 64, 66, 67, 69, 71, 73, 75, 79, 83, 90, 96, 98, 100
)
"""Where anything changes that is shown of a server; the rest likewise."""


def at_many_versions(names: Mapping[str, str]) -> Iterator[Question]:
    whole, group = names["whole h1"], names["apart"]
    yield from each(("/servers", "/servers/detail"), OF_SERVERS, (JOE,))
    yield from each(("/servers/detail?all_tenants=1&sort_key=display_name",), OF_SERVERS, (ADMIN,))
    shown = (whole, names["volume h2"], names["nowhere"], names["asked"])
    yield from each([f"/servers/{server}" for server in shown], OF_SERVERS, (JOE,))
    yield from each([f"/servers/{whole}"], OF_SERVERS, (ADMIN,))
    parts = ("metadata", "metadata/a", "tags", "tags/red", "ips", "ips/private", "os-interface")
    yield from each([f"/servers/{whole}/{part}" for part in parts], around(26, 70, 97), (JOE,))
    yield from each([f"/servers/{names['volume h1']}/os-volume_attachments"], around(70, 79, 89), (JOE,))
    yield from each([f"/servers/{whole}/os-instance-actions"], around(21, 51, 58, 62, 66, 84))
    flavors = ("/flavors", "/flavors/detail", "/flavors/specs", "/flavors/specs/os-extra_specs")
    yield from each(flavors, around(55, 57, 61, 75), (JOE,))
    yield from each(("/flavors/private", "/flavors/private/os-flavor-access"), around(55, 61, 75), (ADMIN,))
    keypairs = ("/os-keypairs", "/os-keypairs/key", "/os-keypairs?user_id=ann", "/os-keypairs?limit=1")
    yield from each(keypairs, around(2, 10, 35, 75, 92))
    yield from each(("/limits",), around(36, 39, 57))
    yield from each(("/os-server-groups", f"/os-server-groups/{group}"), around(13, 15, 64, 75), (JOE,))
    yield from each(("/os-services",), around(11, 53, 69, 75), (ADMIN,))
    aggregates = ("/os-aggregates", f"/os-aggregates/{names['racks']}", "/os-availability-zone/detail")
    yield from each(aggregates, around(41), (ADMIN,))
    hypervisors = ("/statistics", "/h1/search", "/h1/servers", "?with_servers=true", "?limit=1")
    yield from each([f"/os-hypervisors{one}" for one in hypervisors], around(28, 33, 53, 75, 88), (ADMIN,))
    yield from each(("/os-hypervisors", "/os-hypervisors/detail"), around(28, 33, 53, 75, 87)[:-1], (ADMIN,))
    yield from each(("/os-hypervisors/1", "/os-hypervisors/2"), (1, 27, 28, 52), (ADMIN,))
    quotas = ("", "/detail?user_id=joe", "/defaults")
    yield from each([f"/os-quota-sets/{PROJECT}{one}" for one in quotas], around(36, 50, 57), (ADMIN,))
    yield from each(("/os-quota-class-sets/default",), around(50, 57), (ADMIN,))
    yield from each([f"/os-simple-tenant-usage?{PERIOD}"], around(40, 75), (ADMIN,))
    gone = ("/os-hosts", "/images", "/os-networks", "/os-security-groups", "/os-cells", "/os-agents", "/extensions")
    yield from each(("/os-migrations", *gone), around(23, 36, 43, 59, 80), (ADMIN,))


PERIOD = "start=2020-01-01T00:00:00&end=2020-02-01T00:00:00"


WRITTEN = (
    1, 2, 10, 11, 13, 15, 19, 26, 32, 33, 36, 37, 42, 52, 54, 55, 57, 60, 63, 64, 73, 74, 79, 90, 92, 94, 96, 102,
    NEWEST,
)  # fmt: skip


def written_at_many_versions(names: Mapping[str, str]) -> Iterator[Question]:
    """Requests whose answers, or whose being taken, changed: what they leave behind is the same on both sides."""
    for n in (1, 10, 11, 52, 53):
        yield send("PUT", "/os-services/disable", {"host": "h1", "binary": "nova-compute"}, ADMIN, n)
        yield send("PUT", "/os-services/enable", {"host": "h1", "binary": "nova-compute"}, ADMIN, n)
        down = {"host": "h1", "binary": "nova-compute", "forced_down": False}
        yield send("PUT", "/os-services/force-down", down, ADMIN, n)
    for n in WRITTEN:
        yield send("PUT", f"/servers/{names['whole h1']}", {"server": {"name": f"at {n}"}}, JOE, n)
        yield send("PUT", f"/servers/{names['whole h1']}", {"server": {"description": f"at {n}"}}, JOE, n)
        yield send("PUT", f"/servers/{names['whole h1']}", {"server": {"hostname": f"at-{n}"}}, JOE, n)
        key = {"name": f"key-{n}", "public_key": PUBLIC_KEY}
        yield send("POST", "/os-keypairs", {"keypair": key}, JOE, n)
        yield send("POST", "/os-keypairs", {"keypair": key | {"name": f"typed-{n}", "type": "ssh"}}, JOE, n)
        yield send("POST", "/os-keypairs", {"keypair": key | {"user_id": "ann"}}, ADMIN, n)
        yield send("DELETE", f"/os-keypairs/key-{n}", None, JOE, n)
        flavor = {"name": f"f{n}", "id": f"f{n}", "ram": 64, "vcpus": 1, "disk": 0}
        yield send("POST", "/flavors", {"flavor": flavor}, ADMIN, n)
        yield send("POST", "/flavors", {"flavor": flavor | {"description": "d"}}, ADMIN, n)
        yield send("PUT", f"/flavors/f{n}", {"flavor": {"description": "new"}}, ADMIN, n)
        yield send("POST", f"/flavors/f{n}/os-extra_specs", {"extra_specs": {"hw:cpu_policy": "no such"}}, ADMIN, n)
        yield send("DELETE", f"/flavors/f{n}", None, ADMIN, n)
        for more in ({"policies": ["affinity"]}, {"policy": "affinity"}, {"policies": ["soft-affinity"]}):
            yield send("POST", "/os-server-groups", {"server_group": {"name": f"g{n}"} | more}, JOE, n)
        yield send("POST", "/os-aggregates", {"aggregate": {"name": f"a{n}"}}, ADMIN, n)
        quota = {"instances": 40 + n % 5, "networks": 5, "force": True}
        yield send("PUT", f"/os-quota-sets/{PROJECT}", {"quota_set": {"instances": 40 + n % 5}}, ADMIN, n)
        yield send("PUT", f"/os-quota-sets/{PROJECT}", {"quota_set": {"fixed_ips": 40 + n % 5}}, ADMIN, n)
        yield send("PUT", f"/os-quota-sets/{PROJECT}", {"quota_set": quota}, ADMIN, n)
        yield send("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"injected_files": 6}}, ADMIN, n)
        yield send("PUT", f"/servers/{names['whole h1']}/tags/t{n % 3}", None, JOE, n)
        yield send("POST", f"/servers/{names['stopped h1']}/action", {"lock": {"locked_reason": "r"}}, ADMIN, n)
        yield send("POST", f"/servers/{names['stopped h1']}/action", {"unlock": None}, ADMIN, n)
        yield send("POST", f"/servers/{names['nowhere']}/action", {"os-getConsoleOutput": {}}, ADMIN, n)
        for body in REFUSED_SERVERS:
            yield send("POST", "/servers", body, JOE, n)


PUBLIC_KEY = (
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDQcF5JQU3a9FFcN8s4rQ0KEDqOuF1V+SSPYA6eVCWZ0FjBVYZGEHqNoNoKcP5bOgJCr+Sq"
    "gZl5+VYMW6oQzjZ7FQZ0tRX1gQPxDs4IkjKWS3bC9zL2Yx+Ci2yXG3oFqJ8iTz5qvTz9QnoXqKjVQ7gFq2Y0mzV4mYfHqf5sJm0xcQ== joe"
)
_NO_FLAVOR = {"name": "refused", "flavorRef": "none", "imageRef": ""}
REFUSED_SERVERS: tuple[dict[str, Any], ...] = tuple(
    {"server": _NO_FLAVOR | more}
    for more in (
        {},
        {"networks": "none"},
        {"description": "d"},
        {"tags": ["t"]},
        {"hostname": "h"},
        {"host": "h1"},
        {"trusted_image_certificates": ["c"]},
        {"personality": []},
        {"user_data": "aGVsbG8="},
        {"block_device_mapping_v2": [{"boot_index": 0, "uuid": "x", "source_type": "volume", "tag": "t"}]},
        {"networks": [{"uuid": "0d0d0d0d-0d0d-4d0d-8d0d-0d0d0d0d0d0d", "tag": "t"}]},
        {"name": "x" * 256},
        {"availability_zone": ""},
        {"security_groups": [{"name": ""}]},
    )
)


# ---------------------------------------------------------------- cells that are away


def lists_with_lost_cells(names: Mapping[str, str]) -> Iterator[Question]:
    """Lists of servers, whichever cells are away."""
    minors = (1, 68, 69, 71, 96, NEWEST)
    users = (JOE, ADMIN)
    yield from each(("/servers", "/servers/detail"), minors, users)
    yield from each(("/servers?all_tenants=1", "/servers/detail?all_tenants=1"), minors, (ADMIN,))
    yield from each(("/servers", "/servers/detail"), (69, NEWEST), (HOME,))
    away, here = names["plain h2"], names["plain h1"]
    queries = (
        *("limit=1", "limit=3", "limit=100", "limit=0", f"marker={away}", f"marker={here}", f"marker={here}&limit=2"),
        *("sort_key=display_name&sort_dir=asc", "sort_key=uuid", "sort_dir=asc", "sort_key=host", "name=plain"),
        *("status=ACTIVE", "status=SHUTOFF", "tags=red", "metadata=%7B%22a%22:%221%22%7D", "changes-since=2020-01-01"),
        *("changes-before=2099-01-01", "deleted=true", "flavor=small", "flavor=none", "host=h2", "locked=true"),
        *("ip=10", "all_tenants=0", f"project_id={PROJECT}", f"project_id={PROJECT}&all_tenants=1", "user_id=ann"),
        *("user_id=joe&all_tenants=1", f"tenant_id={PROJECT}&all_tenants=1", f"uuid={away}", "unknown=1"),
        *("reservation_id=r-1", "all_tenants=1&limit=2", "all_tenants=1&name=plain", "all_tenants=no", "status=WRONG"),
    )
    for query in queries:
        yield from each((f"/servers?{query}", f"/servers/detail?{query}"), (NEWEST,), users)


def of_lost_cells(names: Mapping[str, str]) -> Iterator[Question]:
    """All else that can be read."""
    minors, users, away = (1, 68, 69, 71, 96, NEWEST), (JOE, ADMIN), names["plain h2"]
    for name in ("whole h1", "whole h2", "volume h2", "locked h2", "gone h2", "anns h2", "nowhere", "asked"):
        server = names[name]
        yield from each([f"/servers/{server}"], minors, users)
        parts = ("metadata", "metadata/a", "tags", "tags/red", "ips", "ips/private", "os-instance-actions", "topology")
        yield from each([f"/servers/{server}/{part}" for part in parts], (69,))
        yield from each([f"/servers/{server}/os-instance-actions/req-{'0' * 8}-0000-0000-0000-{'0' * 12}"])
        yield from each([f"/servers/{server}/{part}" for part in ("os-interface", "os-volume_attachments")])
    yield from each(("/os-services",), (1, 11, 53, 68, 69, NEWEST), (ADMIN,))
    services = ("binary=nova-compute", "host=h2", "host=h1", "host=h1&binary=nova-compute", "host=none")
    yield from each([f"/os-services?{query}" for query in services], (68, 69, NEWEST), (ADMIN,))
    hypervisors = (
        *("", "/statistics", "/h2/search", "/h1/search", "/h2/servers", "/1", "/2", "/9", "?limit=1", "?marker=1"),
        *("?limit=5&marker=2", "?with_servers=true", "?hypervisor_hostname_pattern=h2", "/detail"),
        "?hypervisor_hostname_pattern=h1&with_servers=true",
    )
    yield from each([f"/os-hypervisors{one}" for one in hypervisors], (1, 33, 52, 53, 69, 87), (ADMIN,))
    yield from each(("/limits", "/limits?reserved=1", f"/limits?tenant_id={PROJECT}"), (1, 69, NEWEST))
    for usage in (f"?{PERIOD}", f"?{PERIOD}&detailed=1", f"/{PROJECT}?{PERIOD}", f"/{PROJECT}?{PERIOD}&limit=2"):
        yield from each([f"/os-simple-tenant-usage{usage}"], (1, 40, 69, NEWEST))
    yield from each([f"/os-simple-tenant-usage/{PROJECT}?{PERIOD}&marker={away}"], (40, NEWEST))
    groups = ("", "?all_projects=1", f"/{names['apart']}", f"/{names['near']}")
    yield from each([f"/os-server-groups{one}" for one in groups], (1, 64, 69, NEWEST))
    yield from each(("/os-migrations", f"/servers/{away}/migrations"), (1, 69, NEWEST), (ADMIN,))
    quotas = (f"/os-quota-sets/{PROJECT}", f"/os-quota-sets/{PROJECT}/detail")
    yield from each((*quotas, f"{quotas[1]}?user_id=joe"), (1, 69, NEWEST), (ADMIN,))
    yield from each(("/os-availability-zone", "/os-availability-zone/detail"), (1, 69, NEWEST))
    yield from each(("/os-aggregates", f"/os-aggregates/{names['fast']}", "/os-keypairs", "/flavors/detail"))


def to_lost_servers(names: Mapping[str, str]) -> Iterator[Question]:
    """Changes of servers whose cell is away, and of what is beside them."""
    for name, n in itertools.product(("plain h2", "anns h2"), (1, 69, NEWEST)):
        path = f"/servers/{names[name]}"
        for user in BOTH:
            yield send("PUT", path, {"server": {"name": "new"}}, user, n)
            yield send("POST", f"{path}/metadata", {"metadata": {"x": "y"}}, user, n)
            yield send("PUT", f"{path}/metadata", {"metadata": {"x": "y"}}, user, n)
            yield send("PUT", f"{path}/metadata/x", {"meta": {"x": "y"}}, user, n)
            yield send("DELETE", f"{path}/metadata/a", None, user, n)
            yield send("PUT", f"{path}/tags/t", None, user, n)
            yield send("PUT", f"{path}/tags", {"tags": ["t"]}, user, n)
            yield send("DELETE", f"{path}/tags/red", None, user, n)
            yield send("DELETE", f"{path}/tags", None, user, n)
            for action in ACTIONS:
                yield send("POST", f"{path}/action", action, user, n)
            yield send("DELETE", path, None, user, n)
    event = {"name": "network-changed", "server_uuid": names["plain h2"]}
    here = event | {"server_uuid": names["plain h1"]}
    for events in ([event], [event, here]):
        yield send("POST", "/os-server-external-events", {"events": events})
    for n in (1, 52, 53, NEWEST):
        yield send("PUT", "/os-services/disable", {"host": "h2", "binary": "nova-compute"}, ADMIN, n)
        yield send("PUT", "/os-services/2", {"status": "disabled"}, ADMIN, n)
        yield send("DELETE", "/os-services/2", None, ADMIN, n)
        yield send("POST", f"/os-aggregates/{names['none']}/action", {"add_host": {"host": "h2"}}, ADMIN, n)
        yield send("POST", f"/os-aggregates/{names['fast']}/action", {"remove_host": {"host": "h2"}}, ADMIN, n)
        yield send("PUT", f"/os-quota-sets/{PROJECT}", {"quota_set": {"cores": 1}}, ADMIN, n)
        yield send("DELETE", f"/os-server-groups/{names['near']}", None, JOE, n)


ACTIONS: tuple[dict[str, Any], ...] = (
    {"os-start": None},
    {"os-stop": None},
    {"reboot": {"type": "SOFT"}},
    {"lock": None},
    {"unlock": None},
    {"os-resetState": {"state": "active"}},
    {"os-getConsoleOutput": {}},
    {"forceDelete": None},
)


# ---------------------------------------------------------------- what is wrong


def wrong(names: Mapping[str, str]) -> Iterator[Question]:
    yield from _wrong_versions()
    yield from _wrong_ids(names)
    yield from _wrong_queries(names)
    yield from _wrong_bodies(names)
    yield from _others(names)


def _wrong_versions() -> Iterator[Question]:
    for version in (
        *("compute 2.0", "compute 2.105", "compute 2.999", "compute 3.0", "compute 1.1", "compute 2", "compute 2.01"),
        *("compute latest", "compute LATEST", "compute", "", "nonsense", "compute 2.x", "compute -2.1", "volume 3.70"),
        *("volume 3.70,compute 2.10", "compute 2.10, volume 3.70", "compute 2.10,compute 2.20", "COMPUTE 2.10"),
        *("compute  2.10", "compute\t2.10", " compute 2.10 ", "2.10", "compute 2.10 2.20", "compute 2.1.1", None),
    ):
        for path in ("/flavors", "/servers", "/no/such/path", "/servers/none"):
            yield Question(path, JOE, version)
        yield Question("", None, version)
        yield Question("/", None, version)
        yield Question("/", None, version, prefix="")
        yield Question("/flavors", JOE, version, prefix="/v2")
    for older in ("2.1", "2.10", "2.104", "2.105", "latest", "nonsense", "1.0", ""):
        yield Question("/os-keypairs", JOE, None, more=(("X-OpenStack-Nova-API-Version", older),))
        yield Question("/os-keypairs", JOE, 2, more=(("X-OpenStack-Nova-API-Version", older),))
        yield Question("/os-keypairs", JOE, "volume 3.1", more=(("X-OpenStack-Nova-API-Version", older),))
    yield Question("/flavors", None)


BAD_IDS = ("none", "0", "-1", "00000000-0000-0000-0000-000000000000", "%20", "a%2Fb", "x" * 300, "%C3%A9", "%00", "1.5")


def _wrong_ids(names: Mapping[str, str]) -> Iterator[Question]:
    whole = names["whole h1"]
    for bad in BAD_IDS:
        paths = (
            *(f"/servers/{bad}", f"/servers/{bad}/metadata", f"/servers/{bad}/tags", f"/servers/{bad}/ips"),
            *(f"/servers/{bad}/os-instance-actions", f"/servers/{whole}/os-instance-actions/{bad}"),
            *(f"/servers/{whole}/metadata/{bad}", f"/servers/{whole}/tags/{bad}", f"/servers/{whole}/ips/{bad}"),
            *(f"/flavors/{bad}", f"/flavors/{bad}/os-extra_specs", f"/flavors/specs/os-extra_specs/{bad}"),
            *(f"/flavors/{bad}/os-flavor-access", f"/os-keypairs/{bad}", f"/os-server-groups/{bad}"),
            *(f"/os-aggregates/{bad}", f"/os-hypervisors/{bad}", f"/os-hypervisors/{bad}/search"),
            *(f"/os-hypervisors/{bad}/servers", f"/os-services/{bad}", f"/os-quota-sets/{bad}"),
            *(f"/os-quota-sets/{bad}/detail", f"/os-quota-class-sets/{bad}", f"/os-simple-tenant-usage/{bad}"),
            *(f"/os-keypairs/key?user_id={bad}", f"/{bad}/servers", f"/no-such/{bad}"),
        )
        yield from each(paths, (1, 52, NEWEST), (ADMIN,))
        for path in (
            *(f"/servers/{bad}", f"/flavors/{bad}", f"/os-keypairs/{bad}", f"/os-server-groups/{bad}"),
            *(f"/os-aggregates/{bad}", f"/os-services/{bad}", f"/servers/{whole}/metadata/{bad}"),
            *(f"/servers/{whole}/tags/{bad}", f"/flavors/specs/os-extra_specs/{bad}", f"/os-quota-sets/{bad}"),
        ):
            yield send("DELETE", path)
            yield send("DELETE", path, version=1)
        yield send("POST", f"/servers/{bad}/action", {"os-stop": None})
        yield send("PUT", f"/servers/{bad}", {"server": {"name": "n"}})
        yield send("PUT", f"/os-aggregates/{bad}", {"aggregate": {"name": "n"}})
        yield send("PUT", f"/os-services/{bad}", {"status": "enabled"})
        yield send("PUT", f"/flavors/{bad}", {"flavor": {"description": "n"}})
        yield send("PUT", f"/os-quota-class-sets/{bad}", {"quota_class_set": {"cores": 1}})
        yield send("POST", f"/os-aggregates/{names['racks']}/action", {"add_host": {"host": bad}})


BAD_QUERIES = (
    *("limit=-1", "limit=x", "limit=", "limit=1.5", "limit=99999999999999999999", "limit=1&limit=2", "marker=none"),
    *("marker=", "marker=1&marker=2", "sort_key=none", "sort_dir=up", "sort_key=uuid&sort_dir=asc&sort_dir=asc"),
    *("unknown=1", "all_tenants=x", "all_tenants=", "deleted=x", "changes-since=x", "changes-before=x", "status="),
    *("status=WRONG", "tags=", "locked=x", "user_id=", "project_id=x", "flavor=", "image=x", "ip=(", "name=(", "ip6=["),
    *("changes-since=2022-01-01&changes-before=2021-01-01", "all_projects=x", "with_servers=x", "is_public=x"),
    *("minRam=x", "minDisk=-1", "minRam=-1", "hypervisor_hostname_pattern=", "binary=", "host=", "tenant_id=none"),
    *("reserved=x", "start=x", "end=x", "start=2022-01-01&end=2021-01-01", "detailed=x", "_x=1", "metadata=x"),
    *("metadata=%7B", "name=%FF", "name=%C3%A9", "name", "=", "&&", "limit=%31", "offset=1", "name=a&name=b"),
    *("power_state=x", "task_state=None", "vm_state=x", "launched_at=x", "created_at=x", "progress=x", "key_name="),
    *("config_drive=x", "availability_zone=", "description=x", "reservation_id=", "uuid=x", "host=h1&host=h2"),
    *("soft_deleted=x", "block_device_mapping=x", "services=x", "node=h1", "cell_name=x", "hidden=x", "not-tags=a"),
)


def _wrong_queries(names: Mapping[str, str]) -> Iterator[Question]:
    paths = (
        *("/servers", "/servers/detail", "/flavors/detail", "/os-keypairs", "/os-server-groups", "/os-aggregates"),
        *("/os-hypervisors", "/os-services", f"/os-quota-sets/{PROJECT}", "/limits"),
        *(
            "/os-availability-zone",
            f"/servers/{names['whole h1']}",
            f"/servers/{names['whole h1']}/os-instance-actions",
        ),
    )
    for path, query in itertools.product(paths, BAD_QUERIES):
        for minor in (1, 83) if path == "/servers" else (75,):
            yield Question(f"{path}?{query}", JOE if path.startswith(("/servers", "/limits")) else ADMIN, minor)
        if path in ("/servers", "/servers/detail"):
            yield Question(f"{path}?all_tenants=1&{query}", ADMIN)
    usage = (f"/os-simple-tenant-usage?{PERIOD}", f"/os-simple-tenant-usage/{PROJECT}?{PERIOD}")
    for path, query in itertools.product(usage, BAD_QUERIES):
        yield from each([f"{path}&{query}"], (75,), (ADMIN,))
    yield from each(("/servers?host=h1", "/servers?sort_key=host", "/servers?sort_key=node", "/servers?deleted=1"))


BODIES = ("", "{", "[]", "null", "1", '"x"', "{}", '{"a": 1, "b": 2}', '{"unknown": {}}', "\udcff", '{"server": null}')
WRITABLE = (
    *(("POST", path) for path in ("/servers", "/flavors", "/os-keypairs", "/os-server-groups", "/os-aggregates")),
    *(("POST", path) for path in ("/servers/{whole h1}/action", "/servers/{whole h1}/metadata")),
    *(("PUT", path) for path in ("/servers/{whole h1}", "/servers/{whole h1}/metadata", "/servers/{whole h1}/tags")),
    *(("PUT", path) for path in ("/servers/{whole h1}/metadata/a", "/os-aggregates/{racks}", "/flavors/small")),
    *(("PUT", path) for path in (f"/os-quota-sets/{PROJECT}", "/os-quota-class-sets/default", "/os-services/disable")),
    *(("POST", path) for path in ("/os-aggregates/{racks}/action", "/flavors/small/action")),
    *(("POST", path) for path in ("/flavors/small/os-extra_specs", "/os-server-external-events")),
    ("PUT", "/flavors/small/os-extra_specs/a"),
)


def _wrong_bodies(names: Mapping[str, str]) -> Iterator[Question]:
    for (method, template), body in itertools.product(WRITABLE, BODIES[:9]):
        path = re.sub(r"\{(.*?)\}", lambda found: names[found[1]], template)
        for minor in (1, NEWEST):
            yield Question(path, ADMIN, minor, method, body)
    for kind in ("text/plain", "application/xml", "application/json; charset=utf-8"):
        body = json.dumps({"aggregate": {"name": "racks"}})
        yield Question("/os-aggregates", ADMIN, NEWEST, "POST", body, (("Content-Type", kind),))
    for accept in ("text/html", "application/xml", "application/json", "*/*", "application/vnd.openstack.compute+json"):
        yield Question("/os-aggregates", ADMIN, NEWEST, more=(("Accept", accept),))
    yield Question("/os-aggregates", ADMIN, NEWEST, "POST", json.dumps({"aggregate": {"name": "x" * 120000}}))


def _others(names: Mapping[str, str]) -> Iterator[Question]:
    """What a stranger, or a user who is no administrator, is told; methods and paths that there are not."""
    for name in ("whole h1", "nowhere", "asked", "gone h1"):
        base = f"/servers/{names[name]}"
        parts = ("", "/metadata", "/tags", "/ips", "/os-instance-actions")
        yield from each([f"{base}{part}" for part in parts], (1, NEWEST), (ANN, JOE, ADMIN))
        for action in ACTIONS[:-1]:
            yield send("POST", f"{base}/action", action, ANN)
        yield send("DELETE", base, None, ANN)
    operators = ("/os-services", "/os-aggregates", "/os-hypervisors", "/os-quota-sets/" + OTHERS, "/os-migrations")
    yield from each((*operators, "/os-quota-class-sets/default", "/os-availability-zone/detail"), (1, NEWEST), (JOE,))
    yield from each(("/servers?all_tenants=1", "/os-simple-tenant-usage", "/limits?tenant_id=x"), (1, NEWEST), (JOE,))
    for path in ("/flavors/private", "/flavors/private/os-flavor-access", "/os-keypairs?user_id=ann"):
        yield from each([path], (1, 10, NEWEST), (JOE, ANN, ADMIN))
    for method in ("PATCH", "HEAD", "OPTIONS", "PUT", "DELETE"):
        for path in ("/servers", "/flavors", "/os-aggregates", "/os-keypairs/key", "/no-such"):
            yield Question(path, ADMIN, NEWEST, method, "{}" if method in ("PUT", "PATCH") else None)
    for prefix in ("/v2.1/" + ADMINS, "/v2.1/" + PROJECT, "/v2/" + ADMINS, "/v2", "/v3", "/v2.1/other", "/v2.1/beef"):
        for path in ("/flavors", "/servers", "", "/"):
            yield Question(path, ADMIN, NEWEST, prefix=prefix)


# ---------------------------------------------------------------- comparing


@dataclasses.dataclass(frozen=True)
class Difference:
    question: Question
    field: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.question}\n    {self.field}: {self.theirs!r:.300}, ours {self.ours!r:.300}"


@dataclasses.dataclass
class Compared:
    differences: list[Difference] = dataclasses.field(default_factory=list)
    asked: int = 0
    not_built: set[str] = dataclasses.field(default_factory=set)

    def told(self, most: int = 60) -> str:
        """The differences, of the same kind at several versions one; an id is like another."""
        kinds: dict[tuple[str, str], list[Difference]] = {}
        for one in self.differences:
            question = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b\d+\b", "N", str(one.question))
            kinds.setdefault((question, re.sub(r"\[\d+\]", "[]", one.field)), []).append(one)
        lines = [
            f"{found[0]}\n    at {', '.join(str(one.question.version) for one in found)}"
            for found in list(kinds.values())[:most]
        ]
        head = f"{len(self.differences)} differences in {len(kinds)} kinds among {self.asked} answers:"
        return "\n".join([head, *lines])


def compare(
    pair: Pair,
    asked: Iterable[Question],
    allowed: Sequence[Allowed] = (),
    invalid: Callable[[Question, Answer], str | None] = lambda question, answer: None,
) -> Compared:
    """Ask both sides one after the other, in the order of the questions.

    `invalid` says what is wrong with an answer of ours, whatever the peer says.
    """
    found, began = Compared(), datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
    for question in asked:
        sent = (question.method, question.prefix + question.path, question.headers(), question.body)
        theirs, ours = pair.theirs.ask(*sent), pair.ours.ask(*sent)
        if ours.status == NOT_BUILT != theirs.status:
            found.not_built.add(f"{question}: {theirs.status}, ours {ours.body}")
            continue
        found.asked += 1
        if wrong := invalid(question, ours):
            found.differences.append(Difference(question, "schema", None, wrong))
        if _no_such_request(theirs, ours) or _only_the_peer_fails(theirs, ours):
            continue
        for field, old, new in unequal("", comparable(theirs, began), comparable(ours, began)):
            if not any(one.covers(str(question), field) for one in allowed):
                found.differences.append(Difference(question, field, old, new))
    return found


def _no_such_request(theirs: Answer, ours: Answer) -> bool:
    """A path or a method that there is not: the peer says so as text, ours as a fault (docs/api.md)."""
    return theirs.status == 404 and "text" in (theirs.body or ()) and ours.status in (404, 405)


def _only_the_peer_fails(theirs: Answer, ours: Answer) -> bool:
    """Where a cell is lost, ours shows what the others have. To say that there is none would be another thing."""
    return theirs.status == 500 and ours.status < 400


def comparable(answer: Answer, began: datetime.datetime) -> dict[str, Any]:
    """Status, headers and document; of a refusal its kind, since its words are each side's own.

    A time after `began` is the time of the request, which each side got a little later or earlier.

    What has no content has no type of content that anybody asks for.
    """
    headers = {name: ", ".join(answer.headers.get(name, [])) or None for name in HEADERS}
    headers |= {name: bool(answer.headers.get(name)) for name in PRESENT}
    if answer.body is None:
        headers["content-type"] = None
    return {"status": answer.status, "headers": headers, "body": _times(_document(answer.body), began)}


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?")


def _times(value: Any, began: datetime.datetime) -> Any:
    if isinstance(value, Mapping):
        return {key: _times(each, began) for key, each in value.items()}
    if isinstance(value, list):
        return [_times(each, began) for each in value]
    if isinstance(value, str) and _TIME.fullmatch(value):
        return "now" if datetime.datetime.fromisoformat(value.removesuffix("Z")) >= began else value
    return value


def _document(body: Any) -> Any:
    if not isinstance(body, Mapping):
        return body
    if len(body) == 1:
        ((kind, inner),) = body.items()
        if isinstance(inner, Mapping) and {"code", "message"} <= inner.keys():
            return {kind: {**inner, "message": "..."}}
    return _in_order(body)


def _in_order(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the peer reads in no order: members of server groups, servers of several lost cells."""
    if "servers" in body:
        lost = sorted((one for one in body["servers"] if one.get("status") == "UNKNOWN"), key=lambda one: one["id"])
        return {**body, "servers": lost + [one for one in body["servers"] if one.get("status") != "UNKNOWN"]}
    if "server_groups" in body:
        groups = sorted(body["server_groups"], key=lambda group: str(group["id"]))
        return {**body, "server_groups": [group | {"members": sorted(group["members"])} for group in groups]}
    if "server_group" in body:
        return {"server_group": body["server_group"] | {"members": sorted(body["server_group"]["members"])}}
    return body
