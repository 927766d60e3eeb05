"""All that is asked about a cloud, and where two answers differ."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.interop.documents import Allowed, unequal
from tests.interop.takeover import FAILING, HOSTS, NEWEST, Handover, World

ADMIN, OWNER = "admin@admin", "demo@demo"
BOTH = (ADMIN, OWNER)
SHOWN = (1, 3, 9, 16, 19, 26, 47, 63, 69, 71, 73, 75, 79, 83, 85, 90, 96, 98, 100, 104)
"""Minor versions at which what is shown of a server changes."""
THOROUGH = ("active", "nowhere", "shelved", "trashed")
"""Servers of which everything is asked at all those versions."""
LISTED = (1, 16, 47, 69, 73, 90, 104)

SERVER_QUERIES = (
    *(f"status={s}" for s in ("ACTIVE", "error", "SHUTOFF", "SHELVED_OFFLOADED", "VERIFY_RESIZE", "PAUSED", "WRONG")),
    *("status=ACTIVE&status=SHUTOFF", "status=SOFT_DELETED", "status=DELETED", "vm_state=active", "vm_state=resized"),
    *("deleted=true", "deleted=false", "changes-since=2020-01-01T00:00:00Z", "changes-before=2020-01-01T00:00:00Z"),
    *("name=active", "name=ed%24", "name=%5Er", "name=renamed", "description=kinds", "hostname=guest"),
    *("host=first", "node=second", "host=failing", "flavor=1", "flavor=specs", "flavor=nothing", "key_name=key"),
    *("tags=red", "tags=red,blue", "tags-any=red,blue", "not-tags=red", "not-tags-any=red,blue", "locked=true"),
    *("locked=false", "availability_zone=zone-1", "availability_zone=nova", "config_drive=true", "config_drive=false"),
    *("power_state=1", "power_state=4", "task_state=spawning", "progress=0", "launch_index=1", "ip=1", "ip6=f"),
    *("access_ip_v4=192.0.2.9", "metadata=%7B%22of%22:%22paused%22%7D", "root_device_name=/dev/vda", "limit=3"),
    *("soft_deleted=true", "ramdisk_id=", "unknown=1", "changes-since=nonsense", "sort_key=nonsense", "limit=-1"),
    *(
        f"sort_key={key}&sort_dir={direction}"
        for key in (
            "created_at",
            "display_name",
            "uuid",
            "host",
            "vm_state",
            "instance_type_id",
            "launched_at",
            "locked",
        )
        for direction in ("asc", "desc")
    ),
    "sort_key=vm_state&sort_dir=asc&sort_key=display_name&sort_dir=desc",
)
PEER_FAILS = re.compile(r"sort_key=(host|launched_at)&")
"""The peer answers 500: it cannot put servers without a host, or never launched, in an order."""


@dataclasses.dataclass(frozen=True, order=True)
class Question:
    path: str
    user: str = ADMIN
    version: str = NEWEST

    def __str__(self) -> str:
        return f"{self.version} {self.user} GET {self.path}"


Answers = dict[Question, tuple[int, Any]]


def each(paths: Iterable[str], minors: Sequence[int] = (104,), users: Sequence[str] = BOTH) -> Iterator[Question]:
    for path, minor, user in itertools.product(paths, minors, users):
        yield Question(path, user, f"2.{minor}")


def questions(cloud: Handover, world: World) -> list[Question]:
    """Once each, in a fixed order."""
    parts = (
        servers(world),
        server_lists(cloud, world),
        actions(cloud, world),
        flavors(world),
        owned(world),
        hosts(cloud, world),
        quotas(cloud, world),
        usage(cloud, world),
    )
    return list(dict.fromkeys(itertools.chain(*parts)))


def servers(world: World) -> Iterator[Question]:
    for name, server in world.servers.items():
        base = f"/servers/{server}"
        if name in THOROUGH:
            yield from each([base], SHOWN, (ADMIN,) if name != "active" else BOTH)
            parts = ("metadata", "metadata/of", "tags", "tags/red", "ips", "ips/private", "ips/nowhere")
            yield from each([f"{base}/{part}" for part in parts], users=(OWNER,))
        else:
            yield from each([base])
            yield from each([f"{base}/{part}" for part in ("metadata", "ips")], users=(OWNER,))


def server_lists(cloud: Handover, world: World) -> Iterator[Question]:
    yield from each(("/servers", "/servers/detail"), LISTED, (OWNER,))
    yield from each(("/servers?all_tenants=1", "/servers/detail?all_tenants=1"), LISTED, (ADMIN,))
    more = [
        *SERVER_QUERIES,
        f"project_id={cloud.demo.project_id}",
        f"user_id={world.user}",
        f"uuid={world.servers['active']}",
        f"marker={world.servers['stopped']}&limit=4",
        f"marker={world.servers['nowhere']}&limit=4",
        "marker=00000000-0000-0000-0000-000000000000",
    ]
    for n, query in enumerate(more):
        yield Question(f"/servers?{query}", OWNER) if n % 2 else Question(f"/servers/detail?{query}&all_tenants=1")
    yield from each([f"/servers?{query}" for query in more[::5]], (1, 25), (OWNER,))


def actions(cloud: Handover, world: World) -> Iterator[Question]:
    for name, server in world.servers.items():
        base, thorough = f"/servers/{server}/os-instance-actions", name in ("active", "stopped")
        yield from each([base], (1, 21, 51, 58, 66, 104) if thorough else (104,))
        code, listed = cloud.ask(ADMIN, "GET", base)
        for one in listed["instanceActions"] if code == 200 else ():
            yield from each(
                [f"{base}/{one['request_id']}"], (1, 51, 62, 84) if thorough else (104,), BOTH if thorough else (ADMIN,)
            )
    some = f"/servers/{world.servers['active']}/os-instance-actions"
    yield from each((f"{some}?limit=2", f"{some}?changes-since=2020-01-01T00:00:00Z", f"{some}/req-none"))


def flavors(world: World) -> Iterator[Question]:
    queries = (
        "",
        "?is_public=none",
        "?is_public=false",
        "?minRam=300",
        "?minDisk=5",
        "?sort_key=memory_mb&sort_dir=desc",
    )
    pages = ("?limit=2", "?marker=2&limit=2", "?marker=none", "?sort_key=nonsense")
    yield from each([f"/flavors/detail{q}" for q in (*queries, *pages)])
    yield from each(("/flavors?is_public=none", "/flavors/detail?is_public=none"), (1, 55, 61, 75, 104))
    for flavor in (*world.flavors, "none"):
        base = f"/flavors/{flavor}"
        yield from each([base], (1, 55, 61, 75, 104))
        yield from each(
            [f"{base}/os-extra_specs", f"{base}/os-extra_specs/quota:cpu_shares", f"{base}/os-flavor-access"]
        )


def owned(world: World) -> Iterator[Question]:
    """Keypairs and server groups."""
    yield from each(("/os-keypairs",), (1, 2, 10, 35, 92, 104))
    yield from each(
        (f"/os-keypairs?user_id={world.user}", "/os-keypairs?limit=1", "/os-keypairs?marker=key"), (35, 104)
    )
    yield from each([f"/os-keypairs/{name}" for name in (*world.keypairs, "none")], (1, 2, 10, 104))
    yield from each([f"/os-keypairs/key?user_id={world.user}"], (10, 104))
    yield from each(("/os-server-groups", "/os-server-groups?all_projects=1"), (1, 13, 15, 64, 104))
    yield from each(("/os-server-groups?limit=3", "/os-server-groups?limit=4&all_projects=true"))
    yield from each([f"/os-server-groups/{group}" for group in world.groups.values()], (1, 13, 64, 104))


def hosts(cloud: Handover, world: World) -> Iterator[Question]:
    """Aggregates, zones, services and hypervisors."""
    yield from each(("/os-aggregates", *(f"/os-aggregates/{one}" for one in world.aggregates)), (1, 41, 104))
    yield from each(("/os-availability-zone", "/os-availability-zone/detail"), (1, 104))
    named = (*HOSTS, FAILING)
    services = ("", "?binary=nova-compute", *(f"?host={host}" for host in named), "?host=none")
    yield from each(("/os-services",), (1, 11, 53, 69, 104))
    yield from each([f"/os-services{q}" for q in services], users=(ADMIN,))
    lists = (
        "",
        "/detail",
        "/statistics",
        *(f"/{host}/{part}" for host in (*named, "none") for part in ("search", "servers")),
    )
    yield from each([f"/os-hypervisors{q}" for q in lists], (1, 52, 104), (ADMIN,))
    yield from each(("/os-hypervisors", "/os-hypervisors/detail"), (28, 33, 53, 87, 88), (ADMIN,))
    queries = ("limit=1", "hypervisor_hostname_pattern=f", "with_servers=true", "hypervisor_hostname_pattern=none")
    yield from each([f"/os-hypervisors{d}?{q}" for d in ("", "/detail") for q in queries], (53, 104), (ADMIN,))
    for minor in (52, 104):
        for one in cloud.get("/os-hypervisors", f"2.{minor}")["hypervisors"]:
            paths = (f"/os-hypervisors/{one['id']}", f"/os-hypervisors/{one['id']}?with_servers=true")
            yield from each(paths, (1, 52) if minor == 52 else (53, 87, 104), (ADMIN,))


def quotas(cloud: Handover, world: World) -> Iterator[Question]:
    minors = (1, 36, 50, 57, 104)
    for project in (cloud.demo.project_id, cloud.admin.project_id):
        base = f"/os-quota-sets/{project}"
        user = f"?user_id={world.user}"
        paths = (base, f"{base}{user}", f"{base}/detail", f"{base}/detail{user}", f"{base}/defaults")
        yield from each(paths, minors, (ADMIN,))
        yield from each(paths, users=(OWNER,))
    yield from each(("/os-quota-class-sets/default", "/os-quota-class-sets/other"), minors, (ADMIN,))
    yield from each(
        ("/limits", f"/limits?tenant_id={cloud.demo.project_id}", "/limits?reserved=1"), (1, 36, 39, 57, 104)
    )


def usage(cloud: Handover, world: World) -> Iterator[Question]:
    for path in ("/os-simple-tenant-usage", f"/os-simple-tenant-usage/{cloud.demo.project_id}"):
        for period in (
            f"start=2020-01-01T00:00:00&end={world.filled_at}",
            "start=2020-01-01T00:00:00&end=2020-02-01T00:00:00",
        ):
            yield from each(
                (f"{path}?{period}", f"{path}?{period}&detailed=1", f"{path}?{period}&limit=2"), (1, 40, 104)
            )


def ask_all(cloud: Handover, asked: Sequence[Question]) -> Answers:
    with concurrent.futures.ThreadPoolExecutor(4, "ask") as pool:
        answers = pool.map(lambda q: cloud.ask(q.user, "GET", q.path, version=q.version), asked)
        return dict(zip(asked, answers, strict=True))


@dataclasses.dataclass(frozen=True)
class Difference:
    question: Question
    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.question}\n    {self.field}: {self.before!r} became {self.after!r}"


def differences(before: Answers, after: Answers, allowed: Sequence[Allowed] = ()) -> list[Difference]:
    """In the order of the questions, without what only one side can answer."""
    found = []
    for question, answer in before.items():
        if PEER_FAILS.search(question.path):
            continue
        for field, old, new in unequal("", _document(answer), _document(after[question])):
            if not any(one.covers(question.path, field) for one in allowed):
                found.append(Difference(question, field, old, new))
    return found


def _document(answer: tuple[int, Any]) -> dict[str, Any]:
    code, document = answer
    return {"status code": code} if document is None else {"status code": code, **_in_order(document)}


def _in_order(document: dict[str, Any]) -> dict[str, Any]:
    """Server groups and their members: the peer reads them in no order."""
    if "server_groups" in document:
        groups = sorted(document["server_groups"], key=lambda group: str(group["id"]))
        return document | {"server_groups": [group | {"members": sorted(group["members"])} for group in groups]}
    if "server_group" in document:
        group = document["server_group"]
        return {"server_group": group | {"members": sorted(group["members"])}}
    return document
