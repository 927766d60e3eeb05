"""Databases with one of everything in two cells, and the APIs of both sides over copies of them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.fakes import Cloud
from tests.interop.fake_over_http import served
from tests.interop.wsgi_ask import ask
from tests.ops.control_plane import CELL, PROJECT, ControlPlane

from kilonova import conf as configuration
from kilonova.api.app import make_app
from kilonova.db.cells import CELL0_UUID, Cells
from kilonova.wire.rpc.bus import Bus

CELL2 = "22222222-2222-2222-2222-222222222222"
ADMINS = "ad" * 16
OTHERS = "0e" * 16
UNREACHABLE = "mysql+pymysql://k:k@127.0.0.1:1/nova"
"""Nothing listens there."""
SCRIPT = Path(__file__).with_name("peer_answers.py")
PASTE = """\
[composite:osapi_compute]
use = call:nova.api.openstack.urlmap:urlmap_factory
/: versions
/v2: version_legacy
/v2.1: version
/v2/+: legacy
/v2.1/+: api
[composite:api]
use = call:nova.api.auth:pipeline_factory_v21
keystone = compute_req_id faultwrap sizelimit keystonecontext app
[composite:legacy]
use = call:nova.api.auth:pipeline_factory_v21
keystone = compute_req_id faultwrap sizelimit keystonecontext legacy_compatible app
[pipeline:versions]
pipeline = faultwrap versions_app
[pipeline:version]
pipeline = compute_req_id faultwrap version_app
[pipeline:version_legacy]
pipeline = compute_req_id faultwrap legacy_compatible version_app
[filter:compute_req_id]
paste.filter_factory = nova.api.compute_req_id:ComputeReqIdMiddleware.factory
[filter:faultwrap]
paste.filter_factory = nova.api.openstack:FaultWrapper.factory
[filter:sizelimit]
paste.filter_factory = oslo_middleware:RequestBodySizeLimiter.factory
[filter:keystonecontext]
paste.filter_factory = nova.api.auth:NovaKeystoneContext.factory
[filter:legacy_compatible]
paste.filter_factory = nova.api.openstack:LegacyV2CompatibleWrapper.factory
[app:app]
paste.app_factory = nova.api.openstack.compute:APIRouterV21.factory
[app:versions_app]
paste.app_factory = nova.api.openstack.compute.versions:Versions.factory
[app:version_app]
paste.app_factory = nova.api.openstack.compute.versions:VersionsV2.factory
"""
"""The peer's own pipelines, but for Keystone, CORS and logs."""


@dataclasses.dataclass
class Filled:
    """Databases in a folder, the other services' content, and what is in them by our names."""

    folder: Path
    cloud: Cloud
    names: dict[str, str]

    def copied(self, to: Path) -> Path:
        to.mkdir()
        for database in self.folder.glob("*.db"):
            shutil.copy(database, to / database.name)
        return to


# ---------------------------------------------------------------- filling


def fill(folder: Path, templates: Path) -> Filled:
    """A cloud that lived in one cell and is cut in two: what is on host h2 is in cell2."""
    folder.mkdir()
    plane = ControlPlane(folder, templates)
    try:
        names = Filling(plane).all()
    finally:
        plane.close()
    _cut(folder, templates)
    return Filled(folder, plane.cloud, names)


class Filling:
    """What is made through our API; `names` has ids by names of ours."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.names: dict[str, str] = {}

    def all(self) -> dict[str, str]:
        self._things()
        self._servers()
        self._references()
        self._without_a_cell()
        return self.names

    def _admin(self, method: str, path: str, body: Any, status: int, version: str = "2.96") -> Any:
        return self.plane.request(method, path, body, version=version, user="admin", project=ADMINS, status=status)

    def _things(self) -> None:
        plane, names = self.plane, self.names
        plane.cloud.keystone.projects.update({ADMINS, OTHERS})
        # The group that the fake's ports have.
        plane.cloud.neutron.security_groups["default"] = {"id": "default", "name": "default", "tenant_id": PROJECT}
        plane.make_flavor("specs", {"hw_rng:allowed": "True", "quota:cpu_shares": "100"}, ephemeral_gb=1, swap=64)
        plane.make_flavor("huge", root_gb=10_000_000)
        plane.make_flavor("private", is_public=False, rxtx_factor=2.0, description="of one project")
        self._admin("POST", "/flavors/private/action", {"addTenantAccess": {"tenant": PROJECT}}, 200)
        keys = (("key", "joe", PROJECT), ("key", "admin", ADMINS), ("other", "joe", PROJECT), ("anns", "ann", OTHERS))
        for name, user, project in keys:
            body = {"keypair": {"name": name}}
            plane.request("POST", "/os-keypairs", body, version="2.53", user=user, project=project, status=201)
        for name, policy, rules in (("apart", "anti-affinity", {"max_server_per_host": 2}), ("near", "affinity", None)):
            group: dict[str, Any] = {"name": name, "policy": policy} | ({"rules": rules} if rules else {})
            made = plane.request("POST", "/os-server-groups", {"server_group": group}, status=200)
            names[name] = made["server_group"]["id"]
        for name, zone, host in (("racks", "zone-1", "h1"), ("fast", "zone-2", "h2"), ("none", None, None)):
            body = {"aggregate": {"name": name} | ({"availability_zone": zone} if zone else {})}
            made = self._admin("POST", "/os-aggregates", body, 200)["aggregate"]["id"]
            names[name] = str(made)
            if host:
                self._admin("POST", f"/os-aggregates/{made}/action", {"add_host": {"host": host}}, 200)
            metadata = {"set_metadata": {"metadata": {"of": name, "n": "1"}}}
            self._admin("POST", f"/os-aggregates/{made}/action", metadata, 200)
        quota = {"quota_set": {"instances": 60, "ram": -1, "key_pairs": 30}}
        self._admin("PUT", f"/os-quota-sets/{PROJECT}", quota, 200)
        self._admin("PUT", f"/os-quota-sets/{PROJECT}?user_id=joe", {"quota_set": {"instances": 50}}, 200)
        self._admin("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"metadata_items": 100}}, 200)

    def _server(self, name: str, host: str | None, **more: Any) -> str:
        zone = {"h1": {"availability_zone": "zone-1"}, "h2": {"availability_zone": "zone-2"}, None: {}}[host]
        self.names[name] = self.plane.create(name, **(zone | more))["id"]
        return self.names[name]

    def _servers(self) -> None:
        plane = self.plane
        whole: dict[str, Any] = {
            "flavorRef": "specs",
            "metadata": {"a": "1", "b": "2"},
            "tags": ["red", "blue"],
            "description": "of all kinds",
            "key_name": "key",
            "config_drive": True,
            "user_data": "aGVsbG8=",
            "hostname": "guest",
        }
        for host in ("h1", "h2"):
            self._server(f"whole {host}", host, **whole)
            self._server(f"plain {host}", host)
            self._server(f"volume {host}", host, imageRef="", block_device_mapping_v2=[self._volume()])
            self._server(f"stopped {host}", host)
            self._server(f"locked {host}", host, hints={"group": self.names["apart"]})
            self._server(f"gone {host}", host)
            self._server(f"anns {host}", host, user="ann", project=OTHERS, networks="none")
        self._server("nowhere", None, flavorRef="huge")
        for name, server in self.names.items():
            if name.startswith(("whole", "plain", "volume", "stopped", "locked", "gone", "anns")):
                plane.until_status(server, "ACTIVE")
        plane.until_status(self.names["nowhere"], "ERROR")
        for host in ("h1", "h2"):
            plane.act(self.names[f"stopped {host}"], "os-stop")
            plane.until_status(self.names[f"stopped {host}"], "SHUTOFF")
            plane.act(self.names[f"locked {host}"], "lock", {"locked_reason": "ours"})
            plane.delete(self.names[f"gone {host}"])
            plane.until_gone(self.names[f"gone {host}"])

    def _references(self) -> None:
        """Ids of what the cloud has besides."""
        plane, names = self.plane, self.names
        names |= {"image": plane.image, "network": plane.network}
        nodes = self._admin("GET", "/os-hypervisors?hypervisor_hostname_pattern=h1", None, 200)
        names["node"] = nodes["hypervisors"][0]["id"]
        names["service"] = self._admin("GET", "/os-services?host=h1", None, 200)["services"][0]["id"]
        names["action"] = plane.actions(names["whole h1"])[0]["request_id"]

    def _volume(self) -> dict[str, Any]:
        volume = self.plane.cloud.cinder.volume(project=PROJECT, bootable="true")
        return {
            "boot_index": 0,
            "uuid": volume,
            "source_type": "volume",
            "destination_type": "volume",
            "delete_on_termination": True,
        }

    def _without_a_cell(self) -> None:
        """Asked for when nobody is there to take it up."""
        plane = self.plane
        for host in list(plane.hosts):
            plane.stop_host(host)
        for service in reversed(plane._services):
            service.stop()
        plane._services.clear()
        self._server("asked", None, metadata={"a": "1"}, tags=["red"])


def _cut(folder: Path, templates: Path) -> None:
    shutil.copy(folder / "cell1.db", folder / "cell2.db")
    with contextlib.closing(sqlite3.connect(folder / "cell1.db")) as cell:
        moved = [row[0] for row in cell.execute("SELECT uuid FROM instances WHERE host = 'h2' OR node = 'h2'")]
        gone = [row[0] for row in cell.execute("SELECT uuid FROM instances WHERE display_name = 'gone h2'")]
        kept = [row[0] for row in cell.execute("SELECT uuid FROM instances")]
    moved = sorted({*moved, *gone})
    _without(folder / "cell1.db", moved, "host = 'h2'")
    _without(folder / "cell2.db", sorted(set(kept) - set(moved)), "host <> 'h2'")
    with contextlib.closing(sqlite3.connect(folder / "api.db")) as api, api:
        api.execute(
            "INSERT INTO cell_mappings (created_at, uuid, name, transport_url, database_connection, disabled)"
            " SELECT created_at, ?, 'cell2', transport_url, '', disabled FROM cell_mappings WHERE uuid = ?",
            (CELL2, CELL),
        )
        number = api.execute("SELECT id FROM cell_mappings WHERE uuid = ?", (CELL2,)).fetchone()[0]
        marks = ",".join("?" * len(moved))
        api.execute(f"UPDATE instance_mappings SET cell_id = ? WHERE instance_uuid IN ({marks})", [number, *moved])
        api.execute("UPDATE host_mappings SET cell_id = ? WHERE host = 'h2'", [number])


def _without(database: Path, servers: list[str], hosts: str) -> None:
    """Take servers with all that belongs to them out of a cell, and the hosts that a condition names."""
    marks = ",".join("?" * len(servers))
    with contextlib.closing(sqlite3.connect(database)) as cell, cell:
        tables = [row[0] for row in cell.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = {row[1] for row in cell.execute(f"PRAGMA table_info({table})")}
            if "instance_uuid" in columns:
                cell.execute(f"DELETE FROM {table} WHERE instance_uuid IN ({marks})", servers)
        cell.execute(f"DELETE FROM instances WHERE uuid IN ({marks})", servers)
        for table in ("services", "compute_nodes"):
            cell.execute(f"DELETE FROM {table} WHERE {hosts}")


# ---------------------------------------------------------------- asking


@dataclasses.dataclass(frozen=True)
class Setting:
    """How both sides run: which cells' databases are away, and options by group."""

    down: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    def sections(self, folder: Path, urls: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        database = {"max_retries": 1, "retry_interval": 0}
        found: dict[str, dict[str, Any]] = {
            "DEFAULT": {
                "rpc_response_timeout": 1,
                "long_rpc_timeout": 1,
                "service_down_time": 86400,
                "host": "control",
            },
            "api_database": {"connection": f"sqlite:///{folder}/api.db", **database},
            "database": {"connection": f"sqlite:///{folder}/cell1.db", **database},
        }
        for service in SERVICES:
            name = "endpoint_template" if service == "cinder" else "endpoint_override"
            found[service] = {name: urls[service] + ("/v3" if service == "keystone" else "")} | (
                {} if service == "glance" else {"auth_type": "none"}
            )
        for group, options in self.options.items():
            found[group] = found.get(group, {}) | dict(options)
        return found

    def map_cells(self, folder: Path) -> None:
        with contextlib.closing(sqlite3.connect(folder / "api.db")) as api, api:
            for uuid, name in ((CELL0_UUID, "cell0"), (CELL, "cell1"), (CELL2, "cell2")):
                url = UNREACHABLE if name in self.down else f"sqlite:///{folder}/{name}.db"
                api.execute("UPDATE cell_mappings SET database_connection = ? WHERE uuid = ?", (url, uuid))


@dataclasses.dataclass
class Answer:
    """What came back; `body` is a document, a text under the key `text`, or None."""

    status: int
    headers: dict[str, list[str]]
    body: Any


class Ours:
    """Our API in this process."""

    def __init__(self, filled: Filled, setting: Setting, folder: Path) -> None:
        setting.map_cells(folder)
        conf = configuration.new()
        conf([], project="nova", default_config_files=[], default_config_dirs=[])
        # The bus declares options of its own.
        bus = Bus(conf, "fake://ours/")
        conf.set_override("auth_strategy", "noauth2", group="api")
        for group, options in setting.sections(folder, dict.fromkeys(SERVICES, "")).items():
            if group not in SERVICES:
                for name, value in options.items():
                    conf.set_override(name, value, group=None if group == "DEFAULT" else group)
        self._cells = Cells(conf)
        self._app = make_app(conf, self._cells, bus, filled.cloud.clients)

    def ask(self, method: str, path: str, headers: dict[str, str], body: str | None = None) -> Answer:
        return Answer(*ask(self._app, method, path, headers, body))

    def close(self) -> None:
        self._cells.dispose()


SERVICES = ("neutron", "cinder", "glance", "placement", "keystone")


class Theirs:
    """The peer's API in a process of its own."""

    def __init__(self, python: str, setting: Setting, folder: Path, urls: Mapping[str, str]) -> None:
        setting.map_cells(folder)
        conf, paste = folder / "peer.conf", folder / "paste.ini"
        sections = setting.sections(folder, urls)
        sections["DEFAULT"]["transport_url"] = "fake://theirs/"
        paste.write_text(PASTE)
        conf.write_text(
            "".join(
                f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in options.items())
                for group, options in sections.items()
            )
        )
        with (folder / "peer.log").open("w") as log:
            command = [python, str(SCRIPT), str(conf), str(paste)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True)
        self._log = folder / "peer.log"
        self._read("READY")

    def ask(self, method: str, path: str, headers: dict[str, str], body: str | None = None) -> Answer:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, path, headers, body]) + "\n")
        self._process.stdin.flush()
        return Answer(*json.loads(self._read("ANSWER ")))

    def _read(self, start: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(start):
                return line.removeprefix(start)
        raise AssertionError(f"the peer ended: {self._log.read_text()[-4000:]}")

    def close(self) -> None:
        self._process.communicate()


@dataclasses.dataclass
class Pair:
    """Both sides over equal databases."""

    ours: Ours
    theirs: Theirs


@contextlib.contextmanager
def pair(python: str, filled: Filled, setting: Setting, folder: Path) -> Iterator[Pair]:
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        urls = {name: stack.enter_context(served(getattr(filled.cloud, name))) for name in SERVICES}
        theirs = Theirs(python, setting, filled.copied(folder / "theirs"), urls)
        stack.callback(theirs.close)
        ours = Ours(filled, setting, filled.copied(folder / "ours"))
        stack.callback(ours.close)
        yield Pair(ours, theirs)
