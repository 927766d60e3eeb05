"""One compute service's databases and hosts, run in turns by the peer and by us, and what is put into them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from tests.interop.mixed import Host, Mixed, Side

from kilonova.cloud.library import Running, Surroundings
from kilonova.cloud.rest import Rest, RestError, poll

DRIVER = "FakeDriverWithoutFakeNodes"
"""A fake host of the peer that knows after a restart which node it is."""
HOSTS = ("first", "second")
FAILING = "failing"
"""A third host, where every build fails. It is never started again: only its record is handed over."""
NEWEST = "2.104"
PLACEMENT = {"OpenStack-API-Version": "placement 1.36"}
PATIENCE = 120.0
TOO_MUCH = 700_000
"""MiB of a flavor that fits on one host, once."""
STATES: dict[str, tuple[str, str | None, Any]] = {
    "stopped": ("SHUTOFF", "os-stop", None),
    "shelved": ("SHELVED_OFFLOADED", "shelve", None),
    "shelved too": ("SHELVED_OFFLOADED", "shelve", None),
    "resized": ("VERIFY_RESIZE", "resize", {"flavorRef": "2"}),
    "resized too": ("VERIFY_RESIZE", "resize", {"flavorRef": "2"}),
    "paused": ("PAUSED", "pause", None),
    "suspended": ("SUSPENDED", "suspend", None),
    "rescued": ("RESCUE", "rescue", None),
    "trashed": ("SOFT_DELETED", None, None),
    "trashed too": ("SOFT_DELETED", None, None),
}
"""Servers by the state in which they are handed over: its name, the action that leads to it (None: DELETE)."""


COUNTED_EVERY = 10
"""Seconds between two counts of a host; so long it may say that a server has room on it which was deleted elsewhere."""


class Turn(Mixed):
    """All of one side: control plane and hosts."""

    def shared(self) -> dict[str, dict[str, Any]]:
        sections = super().shared()
        if self.control_side == "theirs":
            # Deferred deletion is not among the verbs that we have.
            sections["DEFAULT"]["reclaim_instance_interval"] = 7200
        else:
            # Often enough that every loop looks at all that was handed over, twice.
            sections["kilonova"] = {"reconcile_interval": 3, "reconcile_grace": 1}
            sections["DEFAULT"]["sync_power_state_interval"] = 5
        sections["DEFAULT"]["service_down_time"] = 300
        sections["DEFAULT"]["update_resources_interval"] = COUNTED_EVERY
        # Computes are not told of the API database, where server groups are.
        sections["workarounds"] = {"disable_group_policy_check_upcall": True}
        return sections


class Handover:
    """Who runs the compute service now, and requests to it."""

    def __init__(self, lab: Surroundings, peer: Path) -> None:
        self.lab = lab
        self.site = dataclasses.replace(lab.site, peer=peer)
        self.side: Side | None = None
        self.clients = {user: lab.rest(*user.split("@")) for user in ("admin@admin", "demo@demo", "admin@demo")}
        self.admin, self.demo = self.clients["admin@admin"], self.clients["demo@demo"]
        self.service: Turn
        self.running: Running
        self._turn = contextlib.ExitStack()

    # Turns

    def to(self, side: Side) -> None:
        """Let that side run the service: at first on new databases, later on those of the other side."""
        if side == self.side:
            return
        self.stop()
        hosts = [Host(name, side, DRIVER) for name in HOSTS]
        first = self.side is None
        if first:
            hosts.append(Host(FAILING, side, "FakeBuildAbortDriver"))
        self.service = Turn(self.site, self.lab.cloud.supervisor, side, hosts)
        if not first:
            self.take_over()
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        self.running = self._turn.enter_context(self.lab.running(self.service, keep=not first))
        self.side = side
        poll("services that say nothing", lambda: all(at > since for at in self.heard().values()), PATIENCE)

    def stop(self) -> None:
        self._turn.close()

    def take_over(self) -> None:
        """What an operator does: synchronise the schemas, then restart with the same configuration files."""
        self.service.configure()
        self.service.manage(["api_db", "sync"], ["db", "sync"])
        self.service.manage(["db", "sync", "--local_cell"], conf=self.service.cell_conf("cell1"))

    def heard(self) -> dict[str, str]:
        """When each running service last reported, by name and host."""
        listed = self.get("/os-services")["services"]
        return {f"{one['binary']}@{one['host']}": one["updated_at"] or "" for one in listed if one["host"] != FAILING}

    # Requests

    def url(self, path: str) -> str:
        return self.site.url("compute", f"/v2.1{path}")

    def get(self, path: str, version: str = NEWEST, user: str = "admin@admin") -> Any:
        return self.clients[user].get(self.url(path), **of(version))

    def post(self, path: str, body: Any, user: str = "demo@demo", version: str = NEWEST) -> Any:
        return self.clients[user].post(self.url(path), body, of(version))

    def put(self, path: str, body: Any, user: str = "admin@admin", version: str = NEWEST) -> Any:
        return self.clients[user].call("PUT", self.url(path), body, of(version))

    def ask(self, user: str, method: str, path: str, body: Any = None, version: str = NEWEST) -> tuple[int, Any]:
        """Status and document; of a refusal only the status, its words are each side's own."""
        client = self.clients[user]
        sent = {"X-Auth-Token": client.token, "Content-Type": "application/json"} | of(version)
        data = None if body is None else json.dumps(body).encode()
        try:
            code, _, answer = client.send(method, self.url(path), data, sent)
        except RestError as error:
            return error.code, None
        return code, json.loads(answer) if answer else None

    def act(self, server: str, action: str, value: Any = None, user: str = "demo@demo", version: str = NEWEST) -> Any:
        return self.post(f"/servers/{server}/action", {action: value}, user, version)

    def show(self, server: str) -> Any:
        return self.get(f"/servers/{server}")["server"]

    def until(self, server: str, status: str, also: Callable[[Any], bool] = lambda shown: True) -> Any:
        """The server, as soon as it rests in that status."""
        end = time.monotonic() + PATIENCE
        while True:
            shown = self.show(server)
            rests = shown["OS-EXT-STS:task_state"] is None
            if shown["status"] == status and rests and also(shown):
                return shown
            over = time.monotonic() > end or (rests and shown["status"] == "ERROR" != status)
            assert not over, f"{shown['status']} {shown['OS-EXT-STS:task_state']}, not {status}: {shown.get('fault')}"
            time.sleep(0.3)

    def gone(self, server: str) -> bool:
        return self.ask("admin@admin", "GET", f"/servers/{server}")[0] == 404

    def images(self, name: str) -> list[Any]:
        url = self.site.url("glance", f"/v2/images?{urllib.parse.urlencode({'name': name})}")
        return list(self.demo.get(url)["images"])

    def consumers(self) -> set[str]:
        """Who may hold something in Placement: servers, and resizes that wait for their user's word."""
        engine = sa.create_engine(self.running.cell_database)
        with engine.connect() as connection:
            servers = connection.execute(sa.text("SELECT uuid FROM instances WHERE deleted = 0")).scalars()
            moves = connection.execute(sa.text("SELECT uuid FROM migrations WHERE status = 'finished'")).scalars()
            found = {*servers, *moves}
        engine.dispose()
        return found

    # What other services hold

    def holdings(self) -> dict[str, Any]:
        """Allocations of every provider, ports with an owner and attachments of volumes."""
        base = self.site.url("placement", "/resource_providers")
        claims = {
            one["name"]: self.admin.get(f"{base}/{one['uuid']}/allocations", **PLACEMENT)["allocations"]
            for one in self.admin.get(base, **PLACEMENT)["resource_providers"]
        }
        ports = self.admin.get(self.site.url("neutron", "/v2.0/ports"))["ports"]
        kept = ("device_id", "device_owner", "binding:host_id", "binding:profile", "dns_name", "fixed_ips")
        volumes = f"/v3/{self.admin.project_id}"
        attached = self.admin.get(
            self.site.url("cinder", f"{volumes}/attachments/detail?all_tenants=1"),
            **{"OpenStack-API-Version": "volume 3.70"},
        )["attachments"]
        return {
            "claims": {host: {k: v["resources"] for k, v in held.items()} for host, held in claims.items()},
            "ports": {port["id"]: {name: port.get(name) for name in kept} for port in ports if port["device_id"]},
            "attachments": {one["id"]: (one["instance"], one["volume_id"], one["status"]) for one in attached},
        }


def of(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"compute {version}"}


@contextlib.contextmanager
def handover(lab: Surroundings, peer: Path) -> Iterator[Handover]:
    made = Handover(lab, peer)
    try:
        yield made
    finally:
        made.stop()


@dataclasses.dataclass
class World:
    """What was put into the databases, by our names for it."""

    servers: dict[str, str] = dataclasses.field(default_factory=dict)
    flavors: list[str] = dataclasses.field(default_factory=list)
    groups: dict[str, str] = dataclasses.field(default_factory=dict)
    keypairs: list[str] = dataclasses.field(default_factory=list)
    aggregates: list[int] = dataclasses.field(default_factory=list)
    volume: str = ""
    user: str = ""
    filled_at: str = ""
    """A moment (UTC) after which nothing was added; usage up to it does not grow any more."""


class Filling:
    """Puts one of everything into a cloud through its API."""

    def __init__(self, cloud: Handover) -> None:
        self.cloud = cloud
        self.world = World()
        demo: Rest = cloud.demo
        self.image = demo.get(cloud.site.url("glance", "/v2/images?name=guest"))["images"][0]["id"]
        self.network = demo.get(cloud.site.url("neutron", "/v2.0/networks?name=private"))["networks"][0]["id"]

    def fill(self) -> World:
        self.flavors()
        self.owned_things()
        self.hosts()
        self.quotas()
        self.servers()
        self.world.filled_at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        return self.world

    def flavors(self) -> None:
        cloud = self.cloud
        sizes = {"ram": 256, "vcpus": 1, "disk": 1}
        wanted: list[dict[str, Any]] = [
            {
                "id": "specs",
                "name": "with specs",
                "OS-FLV-EXT-DATA:ephemeral": 1,
                "swap": 64,
                "description": "all of it",
            },
            {"id": "ours", "name": "private", "os-flavor-access:is_public": False, "rxtx_factor": 2.0},
            {"id": "huge", "name": "huge", "ram": TOO_MUCH},
            {"id": "beyond", "name": "beyond", "ram": 2 * TOO_MUCH},
            {"id": "nodisk", "name": "nodisk", "disk": 0},
        ]
        for one in wanted:
            cloud.post("/flavors", {"flavor": sizes | one}, "admin@admin", "2.75")
        specs = {"hw_rng:allowed": "True", "quota:cpu_shares": "100", "quota:disk_read_iops_sec": "10"}
        cloud.post("/flavors/specs/os-extra_specs", {"extra_specs": specs}, "admin@admin")
        access = {"addTenantAccess": {"tenant": cloud.demo.project_id}}
        cloud.post("/flavors/ours/action", access, "admin@admin")
        self.world.flavors = ["1", "2", *(one["id"] for one in wanted)]

    def owned_things(self) -> None:
        cloud, world = self.cloud, self.world
        for name in ("key", "other"):
            cloud.post("/os-keypairs", {"keypair": {"name": name}}, version="2.53")
            world.keypairs.append(name)
        cloud.post("/os-keypairs", {"keypair": {"name": "admins"}}, "admin@admin", "2.53")
        world.user = cloud.get("/os-keypairs/key", user="demo@demo")["keypair"]["user_id"]
        for name, policy, rules in (
            ("apart", "anti-affinity", {"max_server_per_host": 2}),
            ("together", "affinity", None),
            ("empty", "soft-anti-affinity", None),
        ):
            body = {"name": name, "policy": policy} | ({"rules": rules} if rules else {})
            made = cloud.post("/os-server-groups", {"server_group": body})["server_group"]
            world.groups[name] = made["id"]

    def hosts(self) -> None:
        """`first` in a zone of its own, `failing` out of the way."""
        cloud = self.cloud
        self.failing({"status": "disabled", "disabled_reason": "fails"})
        for name, zone, host in (("racks", "zone-1", "first"), ("fast", None, "second"), ("none", None, None)):
            body = {"name": name} | ({"availability_zone": zone} if zone else {})
            made = cloud.post("/os-aggregates", {"aggregate": body}, "admin@admin")["aggregate"]["id"]
            self.world.aggregates.append(made)
            if host:
                cloud.post(f"/os-aggregates/{made}/action", {"add_host": {"host": host}}, "admin@admin")
            metadata = {"set_metadata": {"metadata": {"of": name, "n": "1"}}}
            cloud.post(f"/os-aggregates/{made}/action", metadata, "admin@admin")

    def quotas(self) -> None:
        cloud, project = self.cloud, self.cloud.demo.project_id
        cloud.put(f"/os-quota-sets/{project}", {"quota_set": {"instances": 60, "ram": -1, "key_pairs": 30}})
        cloud.put(f"/os-quota-sets/{project}?user_id={self.world.user}", {"quota_set": {"instances": 50, "cores": 90}})
        cloud.put("/os-quota-class-sets/default", {"quota_class_set": {"instances": 80, "metadata_items": 100}})

    # Servers

    def create(self, name: str, user: str = "demo@demo", **more: Any) -> str:
        base = {"name": name, "flavorRef": "1", "imageRef": self.image, "networks": [{"uuid": self.network}]}
        hints = more.pop("hints", None)
        body: dict[str, Any] = {"server": {k: v for k, v in (base | more).items() if v is not None}}
        if hints:
            body["os:scheduler_hints"] = hints
        made: str = self.cloud.post("/servers", body, user)["server"]["id"]
        self.world.servers[name] = made
        return made

    def servers(self) -> None:
        self.plain_ones()
        self.with_volumes()
        self.failed_ones()
        self.in_other_states()
        self.marks()

    def plain_ones(self) -> None:
        cloud, groups = self.cloud, self.world.groups
        port = self.port()
        self.create(
            "active",
            networks=[{"uuid": self.network}, {"port": port}],
            metadata={"a": "1", "b": "2"},
            tags=["red", "blue"],
            description="of all kinds",
            key_name="key",
            config_drive=True,
            user_data="aGVsbG8=",
            hostname="guest",
            flavorRef="specs",
            availability_zone="zone-1",
            hints={"group": groups["together"]},
        )
        self.create("twins", min_count=2, max_count=2, hints={"group": groups["apart"]})
        for name in (*STATES, "ended", "resetted"):
            more = {"accessIPv4": "192.0.2.9"} if name == "stopped" else {}
            self.create(name, metadata={"of": name}, **more)
        self.create("private", flavorRef="ours", tags=["red"])
        self.create("admins", "admin@admin", networks="none")
        self.create("by admin", "admin@demo", host="second", networks="none")
        del self.world.servers["twins"]
        for one in cloud.get("/servers?all_tenants=1&name=twins")["servers"]:
            self.world.servers[one["name"]] = one["id"]
        for server in self.world.servers.values():
            cloud.until(server, "ACTIVE")

    def port(self) -> str:
        body = {"port": {"network_id": self.network, "name": "own", "admin_state_up": True}}
        made: str = self.cloud.demo.post(self.cloud.site.url("neutron", "/v2.0/ports"), body)["port"]["id"]
        return made

    def volume_of(self, name: str) -> str:
        url = self.cloud.site.url("cinder", f"/v3/{self.cloud.demo.project_id}/volumes")
        made: str = self.cloud.demo.post(url, {"volume": {"name": name, "size": 1}})["volume"]["id"]
        found = lambda: self.cloud.demo.get(f"{url}/{made}")["volume"]["status"] == "available"  # noqa: E731
        poll(f"volume {name} is not available", found, PATIENCE)
        return made

    def with_volumes(self) -> None:
        cloud, world = self.cloud, self.world
        root = {
            "boot_index": 0,
            "source_type": "image",
            "destination_type": "volume",
            "uuid": self.image,
            "volume_size": 1,
            "delete_on_termination": True,
        }
        rooted = [
            self.create(name, imageRef=None, flavorRef="nodisk", block_device_mapping_v2=[root])
            for name in ("from volume", "from volume too")
        ]
        world.volume = self.volume_of("data")
        active = world.servers["active"]
        attachment = {"volumeId": world.volume, "delete_on_termination": False}
        cloud.post(f"/servers/{active}/os-volume_attachments", {"volumeAttachment": attachment})
        for server in rooted:
            cloud.until(server, "ACTIVE")
        poll("no volume is attached", lambda: cloud.show(active)["os-extended-volumes:volumes_attached"], PATIENCE)

    def failed_ones(self) -> None:
        """Without a host, on a host that fails, and a resize for which there is no host."""
        cloud = self.cloud
        cloud.until(self.create("nowhere", flavorRef="beyond", tags=["red"]), "ERROR")
        self.failing({"status": "enabled"})
        cloud.until(self.create("aborted", "admin@demo", host=FAILING), "ERROR")
        self.failing({"status": "disabled", "disabled_reason": "fails"}, {"forced_down": True})
        cloud.running.stop(f"nova-compute-{FAILING}")
        resized = self.world.servers["stopped"]
        cloud.act(resized, "resize", {"flavorRef": "beyond"})
        cloud.until(resized, "ACTIVE")

    def failing(self, *changes: dict[str, Any]) -> None:
        """Change the service of the host that fails."""
        listed = self.cloud.get("/os-services?binary=nova-compute")["services"]
        service = next(one["id"] for one in listed if one["host"] == FAILING)
        for body in changes:
            self.cloud.put(f"/os-services/{service}", body)

    def in_other_states(self) -> None:
        cloud, servers = self.cloud, self.world.servers
        cloud.act(servers["resetted"], "os-resetState", {"state": "error"}, "admin@admin")
        for name, (_, action, value) in STATES.items():
            if action:
                cloud.act(servers[name], action, value)
            else:
                cloud.demo.call("DELETE", cloud.url(f"/servers/{servers[name]}"))
        for name, (status, _, _) in STATES.items():
            cloud.until(servers[name], status)
        cloud.act(servers["ended"], "forceDelete")
        poll("the ended server is still there", lambda: cloud.gone(servers["ended"]), PATIENCE)

    def marks(self) -> None:
        """A lock with its reason, and a rename."""
        cloud, servers = self.cloud, self.world.servers
        cloud.act(servers["private"], "lock", {"locked_reason": "ours"})
        cloud.act(servers["twins-2"], "lock", None, "admin@admin")
        cloud.put(f"/servers/{servers['twins-1']}", {"server": {"name": "renamed"}}, "demo@demo")
