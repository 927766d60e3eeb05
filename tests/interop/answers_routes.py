"""Every route that stands, by a member and by an administrator, at each microversion at which anything of it changes.

`TABLE` says what is sent to each route; a route that is built and not there fails the test. Before each request the
records that it acts on are as they were, on both sides.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.contract import facts
from tests.contract.fact_sheets import shape
from tests.contract.schema_oracle import Oracle
from tests.interop.answers_cloud import Answer
from tests.interop.answers_questions import BOTH, NEWEST, PERIOD, PUBLIC_KEY, Question, around
from tests.ops.control_plane import PROJECT

from kilonova.api.routes import collect
from kilonova.contract import surface
from kilonova.contract.cards import Route

Names = Mapping[str, str]
Sent = tuple[str, Any]
"""A path and a body."""


@dataclasses.dataclass(frozen=True)
class ToRoute(Question):
    """A question to a route of the table."""

    route: Route | None = None


@dataclasses.dataclass(frozen=True)
class Databases:
    """The copies of both sides."""

    folders: tuple[Path, Path]

    def run(self, name: str, *statements: tuple[str, tuple[Any, ...]]) -> None:
        for folder in self.folders:
            with contextlib.closing(sqlite3.connect(folder / f"{name}.db", timeout=30)) as database, database:
                for text, values in statements:
                    database.execute(text, values)

    def server(self, uuid: str, vm_state: str = "active", task_state: str | None = None) -> None:
        """Put a server of cell1 into a state, unlocked and not deleted."""
        wanted = (vm_state, task_state, uuid)
        text = "UPDATE instances SET vm_state = ?, task_state = ?, locked = 0, locked_by = NULL, progress = 0"
        self.run("cell1", (f"{text}, deleted = 0, deleted_at = NULL WHERE uuid = ?", wanted))
        self.run("api", ("UPDATE instance_mappings SET queued_for_delete = 0 WHERE instance_uuid = ?", (uuid,)))

    def unlimited(self) -> None:
        """What is created at one microversion does not stand in the way of the next."""
        self.run(
            "api", ("UPDATE quotas SET hard_limit = -1", ()), ("UPDATE project_user_quotas SET hard_limit = -1", ())
        )
        self.run(
            "api",
            *(
                ("INSERT INTO quota_classes (class_name, resource, hard_limit) VALUES ('default', ?, -1)", (resource,))
                for resource in ("instances", "cores", "ram", "key_pairs", "server_groups", "server_group_members")
            ),
        )


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is sent to a route at a minor version, after `before` (given the databases and the names) was done."""

    sent: Callable[[Names, int], Iterable[Sent]]
    before: Callable[[Databases, Names], None] = lambda databases, names: None


def reads(*paths: str) -> Asked:
    """GET or DELETE without a body; `{name}` in a path is an id by its name."""
    return Asked(lambda names, n: [(_filled(path, names), None) for path in paths])


def writes(path: str, *bodies: Any) -> Asked:
    return Asked(lambda names, n: [(_filled(path, names), body) for body in bodies])


def acts(server: str, *bodies: Any, vm_state: str = "active") -> Asked:
    """Actions on a server in a state."""
    return Asked(
        lambda names, n: [(f"/servers/{names[server]}/action", body) for body in bodies],
        lambda databases, names: databases.server(names[server], vm_state),
    )


def _filled(path: str, names: Names) -> str:
    for name, value in names.items():
        path = path.replace("{" + name + "}", value)
    return path


def _servers_query() -> tuple[str, ...]:
    return (
        "",
        "?limit=2&sort_key=display_name&sort_key=uuid&sort_dir=asc&sort_dir=desc",
        "?status=ACTIVE",
        "?deleted=true",
        "?changes-since=2020-01-01",
        "?name=h1",
    )


def _new_servers(names: Names, n: int) -> Iterable[Sent]:
    plain: dict[str, Any] = {"name": f"new-{n}", "flavorRef": "small", "imageRef": names["image"]}
    if n >= 37:
        plain["networks"] = "none"
    whole = plain | {"metadata": {"a": "b"}, "key_name": "key", "user_data": "aGVsbG8=", "config_drive": True}
    extras = {
        19: {"description": "of this version"},
        52: {"tags": ["a", "b"]},
        63: {"trusted_image_certificates": ["c1"]},
        74: {"host": "h1"},
        90: {"hostname": f"new-{n}"},
        94: {"hostname": f"new-{n}.example.org"},
    }
    bodies = [plain, whole, *(plain | more for more in extras.values())]
    hints = {"server": plain, "os:scheduler_hints": {"group": names["near"]}}
    many = plain | {"min_count": 2, "max_count": 2, "return_reservation_id": True}
    zone = plain | {"availability_zone": "zone-1"}
    networks = plain | {"networks": [{"uuid": names["network"]}]}
    return [
        ("/servers", body if "server" in body else {"server": body}) for body in (*bodies, hints, many, zone, networks)
    ]


def _changed_server(names: Names, n: int) -> Iterable[Sent]:
    path = f"/servers/{names['whole h1']}"
    changes = ({"name": f"at {n}"}, {"description": f"d{n}"}, {"hostname": f"at-{n}"}, {"accessIPv4": "192.0.2.7"})
    return [
        (path, {"server": change}) for change in (*changes, {"OS-DCF:diskConfig": "MANUAL"}, {"accessIPv6": "fe80::1"})
    ]


def _key(names: Names, n: int) -> Iterable[Sent]:
    key = {"name": f"route-{n}", "public_key": PUBLIC_KEY}
    bodies = (key, key | {"name": f"typed-{n}", "type": "ssh"}, key | {"name": f"anns-{n}", "user_id": "ann"})
    return [("/os-keypairs", {"keypair": body}) for body in bodies]


def _flavor(names: Names, n: int) -> Iterable[Sent]:
    flavor = {"name": f"r{n}", "id": f"r{n}", "ram": 64, "vcpus": 1, "disk": 0}
    other = flavor | {
        "name": f"q{n}",
        "id": f"q{n}",
        "swap": 1,
        "description": "d",
        "os-flavor-access:is_public": False,
    }
    return [("/flavors", {"flavor": flavor}), ("/flavors", {"flavor": other})]


SERVER = "/servers/{whole h1}"
VOLATILE = {"state": "active"}
TABLE: Mapping[str, Asked] = {
    "GET /servers": reads(*(f"/servers{q}" for q in _servers_query()), "/servers?all_tenants=1"),
    "GET /servers/detail": reads(*(f"/servers/detail{q}" for q in _servers_query()), "/servers/detail?all_tenants=1"),
    "GET /servers/{id}": reads(*(f"/servers/{{{name}}}" for name in ("whole h1", "volume h2", "nowhere", "gone h1"))),
    "POST /servers": Asked(_new_servers),
    "PUT /servers/{id}": Asked(_changed_server),
    "DELETE /servers/{id}": Asked(
        lambda names, n: [(f"/servers/{names['plain h1']}", None)],
        lambda databases, names: databases.server(names["plain h1"]),
    ),
    "POST /servers/{id}/action #forceDelete": acts("plain h1", {"forceDelete": None}),
    "POST /servers/{id}/action #lock": acts("plain h1", {"lock": None}, {"lock": {"locked_reason": "r"}}),
    "POST /servers/{id}/action #unlock": acts("plain h1", {"unlock": None}),
    "POST /servers/{id}/action #os-getConsoleOutput": acts(
        "plain h1", {"os-getConsoleOutput": {"length": "x"}}, vm_state="building"
    ),
    "POST /servers/{id}/action #os-resetState": acts(
        "plain h1", {"os-resetState": VOLATILE}, {"os-resetState": {"state": "no"}}
    ),
    "POST /servers/{id}/action #os-start": acts("stopped h1", {"os-start": None}, vm_state="stopped"),
    "POST /servers/{id}/action #os-stop": acts("plain h1", {"os-stop": None}),
    "POST /servers/{id}/action #reboot": acts("plain h1", {"reboot": {"type": "SOFT"}}, {"reboot": {"type": "hard"}}),
    "GET /servers/{server_id}/ips": reads(f"{SERVER}/ips"),
    "GET /servers/{server_id}/ips/{id}": reads(f"{SERVER}/ips/private", f"{SERVER}/ips/none"),
    "GET /servers/{server_id}/metadata": reads(f"{SERVER}/metadata"),
    "GET /servers/{server_id}/metadata/{id}": reads(f"{SERVER}/metadata/a", f"{SERVER}/metadata/none"),
    "POST /servers/{server_id}/metadata": writes(f"{SERVER}/metadata", {"metadata": {"a": "1", "c": "3"}}),
    "PUT /servers/{server_id}/metadata": writes(f"{SERVER}/metadata", {"metadata": {"a": "1", "b": "2"}}),
    "PUT /servers/{server_id}/metadata/{id}": writes(
        f"{SERVER}/metadata/a", {"meta": {"a": "1"}}, {"meta": {"b": "1"}}
    ),
    "DELETE /servers/{server_id}/metadata/{id}": reads(f"{SERVER}/metadata/b", f"{SERVER}/metadata/none"),
    "GET /servers/{server_id}/tags": reads(f"{SERVER}/tags"),
    "GET /servers/{server_id}/tags/{id}": reads(f"{SERVER}/tags/red", f"{SERVER}/tags/none"),
    "PUT /servers/{server_id}/tags": writes(f"{SERVER}/tags", {"tags": ["red", "blue"]}),
    "PUT /servers/{server_id}/tags/{id}": writes(f"{SERVER}/tags/green", None),
    "DELETE /servers/{server_id}/tags/{id}": reads(f"{SERVER}/tags/green", f"{SERVER}/tags/none"),
    "DELETE /servers/{server_id}/tags": reads("/servers/{plain h1}/tags"),
    "GET /servers/{server_id}/os-instance-actions": reads(f"{SERVER}/os-instance-actions"),
    "GET /servers/{server_id}/os-instance-actions/{id}": reads(f"{SERVER}/os-instance-actions/{{action}}"),
    "GET /extensions": reads("/extensions"),
    "GET /extensions/{id}": reads("/extensions/os-keypairs", "/extensions/none"),
    "GET /flavors": reads("/flavors", "/flavors?limit=1", "/flavors?is_public=None"),
    "GET /flavors/detail": reads("/flavors/detail", "/flavors/detail?sort_key=name"),
    "GET /flavors/{id}": reads("/flavors/specs", "/flavors/private", "/flavors/none"),
    "POST /flavors": Asked(_flavor),
    "PUT /flavors/{id}": writes("/flavors/small", {"flavor": {"description": "new"}}),
    "DELETE /flavors/{id}": Asked(lambda names, n: [(f"/flavors/r{n}", None), ("/flavors/none", None)]),
    "GET /flavors/{flavor_id}/os-extra_specs": reads("/flavors/specs/os-extra_specs"),
    "GET /flavors/{flavor_id}/os-extra_specs/{id}": reads("/flavors/specs/os-extra_specs/hw_rng:allowed"),
    "POST /flavors/{flavor_id}/os-extra_specs": writes(
        "/flavors/specs/os-extra_specs",
        {"extra_specs": {"hw:cpu_policy": "shared"}},
        {"extra_specs": {"hw:cpu_policy": "x"}},
    ),
    "PUT /flavors/{flavor_id}/os-extra_specs/{id}": writes(
        "/flavors/specs/os-extra_specs/hw:cpu_policy", {"hw:cpu_policy": "dedicated"}, {"hw:cpu_policy": "x"}
    ),
    "DELETE /flavors/{flavor_id}/os-extra_specs/{id}": reads("/flavors/specs/os-extra_specs/hw:cpu_policy"),
    "GET /flavors/{flavor_id}/os-flavor-access": reads(
        "/flavors/private/os-flavor-access", "/flavors/small/os-flavor-access"
    ),
    "POST /flavors/{id}/action #addTenantAccess": Asked(
        lambda names, n: [
            (f"/flavors/{flavor}/action", {"addTenantAccess": {"tenant": PROJECT}}) for flavor in ("private", "small")
        ]
    ),
    "POST /flavors/{id}/action #removeTenantAccess": Asked(
        lambda names, n: [
            (f"/flavors/{flavor}/action", {"removeTenantAccess": {"tenant": PROJECT}})
            for flavor in ("private", "small")
        ]
    ),
    "GET /limits": reads("/limits"),
    "GET /os-aggregates": reads("/os-aggregates"),
    "GET /os-aggregates/{id}": reads("/os-aggregates/{racks}"),
    "POST /os-aggregates": Asked(lambda names, n: [("/os-aggregates", {"aggregate": {"name": f"new-{n}"}})]),
    "PUT /os-aggregates/{id}": writes("/os-aggregates/{none}", {"aggregate": {"name": "none"}}),
    "DELETE /os-aggregates/{id}": reads("/os-aggregates/{racks}", "/os-aggregates/99999"),
    "POST /os-aggregates/{id}/action #add_host": writes("/os-aggregates/{none}/action", {"add_host": {"host": "h9"}}),
    "POST /os-aggregates/{id}/action #remove_host": writes(
        "/os-aggregates/{none}/action", {"remove_host": {"host": "h9"}}
    ),
    "POST /os-aggregates/{id}/action #set_metadata": writes(
        "/os-aggregates/{none}/action",
        {"set_metadata": {"metadata": {"k": "v"}}},
        {"set_metadata": {"metadata": {"k": None}}},
    ),
    "GET /os-availability-zone": reads("/os-availability-zone"),
    "GET /os-availability-zone/detail": reads("/os-availability-zone/detail"),
    "GET /os-hypervisors": reads("/os-hypervisors", "/os-hypervisors?limit=1", "/os-hypervisors?with_servers=true"),
    "GET /os-hypervisors/detail": reads("/os-hypervisors/detail"),
    "GET /os-hypervisors/statistics": reads("/os-hypervisors/statistics"),
    "GET /os-hypervisors/{id}": reads(
        "/os-hypervisors/1", "/os-hypervisors/{node}", "/os-hypervisors/{node}?with_servers=true"
    ),
    "GET /os-hypervisors/{id}/search": reads("/os-hypervisors/h1/search"),
    "GET /os-hypervisors/{id}/servers": reads("/os-hypervisors/h1/servers"),
    "GET /os-hypervisors/{id}/uptime": reads("/os-hypervisors/99/uptime"),
    "GET /os-keypairs": reads("/os-keypairs", "/os-keypairs?limit=1", "/os-keypairs?user_id=ann"),
    "GET /os-keypairs/{id}": reads("/os-keypairs/key", "/os-keypairs/anns?user_id=ann"),
    "POST /os-keypairs": Asked(_key),
    "DELETE /os-keypairs/{id}": Asked(
        lambda names, n: [(f"/os-keypairs/route-{n}", None), (f"/os-keypairs/anns-{n}?user_id=ann", None)]
    ),
    "GET /os-quota-class-sets/{id}": reads("/os-quota-class-sets/default"),
    "PUT /os-quota-class-sets/{id}": writes(
        "/os-quota-class-sets/default", {"quota_class_set": {"metadata_items": 100}}
    ),
    "GET /os-quota-sets/{id}": reads(f"/os-quota-sets/{PROJECT}", f"/os-quota-sets/{PROJECT}?user_id=joe"),
    "GET /os-quota-sets/{id}/defaults": reads(f"/os-quota-sets/{PROJECT}/defaults"),
    "GET /os-quota-sets/{id}/detail": reads(f"/os-quota-sets/{PROJECT}/detail"),
    "PUT /os-quota-sets/{id}": writes(
        f"/os-quota-sets/{PROJECT}", {"quota_set": {"metadata_items": 90}}, {"quota_set": {"fixed_ips": -1}}
    ),
    "DELETE /os-quota-sets/{id}": reads("/os-quota-sets/" + "0f" * 16),
    "GET /os-server-groups": reads("/os-server-groups", "/os-server-groups?all_projects=1"),
    "GET /os-server-groups/{id}": reads("/os-server-groups/{apart}"),
    "POST /os-server-groups": Asked(
        lambda names, n: [
            ("/os-server-groups", {"server_group": {"name": f"n{n}"} | more})
            for more in (
                {"policies": ["affinity"]},
                {"policy": "affinity"},
                {"policies": ["soft-affinity"]},
                {"policy": "anti-affinity", "rules": {"max_server_per_host": 3}},
            )
        ]
    ),
    "DELETE /os-server-groups/{id}": reads("/os-server-groups/00000000-0000-4000-8000-000000000000"),
    "GET /os-services": reads("/os-services", "/os-services?host=h1", "/os-services?binary=nova-compute"),
    "PUT /os-services/{id}": Asked(
        lambda names, n: [
            ("/os-services/disable", {"host": "h1", "binary": "nova-compute"}),
            ("/os-services/disable-log-reason", {"host": "h1", "binary": "nova-compute", "disabled_reason": "r"}),
            ("/os-services/enable", {"host": "h1", "binary": "nova-compute"}),
            ("/os-services/force-down", {"host": "h1", "binary": "nova-compute", "forced_down": False}),
            (f"/os-services/{names['service']}", {"status": "disabled", "disabled_reason": "r"}),
            (f"/os-services/{names['service']}", {"status": "enabled"}),
        ]
    ),
    "DELETE /os-services/{id}": reads("/os-services/99999", "/os-services/00000000-0000-4000-8000-000000000000"),
    "GET /os-simple-tenant-usage": reads(
        f"/os-simple-tenant-usage?{PERIOD}", f"/os-simple-tenant-usage?{PERIOD}&detailed=1"
    ),
    "GET /os-simple-tenant-usage/{id}": reads(f"/os-simple-tenant-usage/{PROJECT}?{PERIOD}"),
    "POST /os-server-external-events": writes(
        "/os-server-external-events",
        {"events": [{"name": "network-changed", "server_uuid": "{whole h1}", "tag": "p"}]},
        {"events": [{"name": "volume-extended", "server_uuid": "{whole h1}", "tag": "v"}]},
    ),
}
LATE = ("DELETE /flavors/{id}", "DELETE /os-keypairs/{id}", "POST /servers")
"""After those that make what they take, or after whatever counts what they leave behind."""


def missing() -> set[str]:
    """Routes that stand and that nothing is sent to, and the other way round."""
    return set(standing()) ^ set(TABLE)


def standing() -> Mapping[str, Route]:
    """Every route that is built, by its key."""
    return {binding.route.key: binding.route for binding in collect()}


def changing(route: Route) -> tuple[int, ...]:
    """The minor versions at which anything of a route changes, those before them, the first and the newest."""
    key = shape(f"{route.method} {route.path}") + (f" #{route.action}" if route.action else "")
    found = {
        int(each["version"].split(".")[1]) for each in facts.load("microversions")["versions"] if key in _named(each)
    }
    return around(*found)


def _named(version: Mapping[str, Any]) -> set[str]:
    """The routes that a microversion touches."""
    found: set[str] = set()
    for kind, touched in version.items():
        if kind != "version" and isinstance(touched, list | dict):
            found |= {shape(str(route)) for route in touched}
    return found


def every_route(names: Names, databases: Databases) -> Iterator[Question]:
    databases.unlimited()
    built = standing()
    for key in [*(key for key in TABLE if key not in LATE), *LATE]:
        route, asked = built[key], TABLE[key]
        for n in changing(route):
            for user in BOTH:
                for path, body in asked.sent(names, n):
                    asked.before(databases, names)
                    text = None if body is None else _text(body, names)
                    yield ToRoute(path, user, n, route.method, text, route=route)


def gone() -> Iterator[Question]:
    """Routes that were removed for good, at both ends of what there is."""
    for method, path, action in sorted(surface.removed(), key=str):
        filled = re.sub(r"\{\w+\}", "1", path)
        for n, user in itertools.product((1, NEWEST), BOTH):
            yield Question(filled, user, n, method, json.dumps({action: {}}) if action else None)


class Valid:
    """Whether our answers are what the contract's schemas say."""

    def __init__(self) -> None:
        self._oracle = Oracle()
        self._routes = {(r.method, shape(r.path), r.action): r for r in self._oracle.routes}

    def __call__(self, question: Question, answer: Answer) -> str | None:
        if not isinstance(question, ToRoute) or question.route is None or answer.status >= 300:
            return None
        route, n = question.route, question.version
        spans = self._routes[route.method, shape(route.path), route.action].parts["response"]
        span = next((span for span in spans if isinstance(n, int) and span.low <= n <= span.high), None)
        return None if span is None or answer.body is None else self._oracle.error(span.schema, answer.body)


def _text(body: Any, names: Names) -> str:
    return _filled(json.dumps(body), names)
