"""One database, the peer's code and ours: each revision of it becomes ours, each reads what the other wrote.

Needs PEER_PYTHON (a Python with the peer in it), and MariaDB or PostgreSQL as tests/real/database_fixtures.py says.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from tests.needs import check
from tests.ops.control_plane import CELL, ControlPlane
from tests.real.database_fixtures import database_server, new_databases
from tests.real.on_servers import OnServers
from tests.unit.db.conftest import templates

from kilonova.contract import context
from kilonova.db.api import aggregates, cell_mappings, flavors, instance_groups, instance_mappings, key_pairs
from kilonova.db.cells import CELL0_UUID
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.db.objects import bdm, request_spec
from kilonova.db.objects import instance as instance_rows

PEER = os.environ.get("PEER_PYTHON")
check("peer", module=True)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]

SCRIPT = pathlib.Path(__file__).with_name("peer_databases.py")

__all__ = ["database_server", "templates"]


def peer(*words: str) -> Any:
    done = subprocess.run([str(PEER), str(SCRIPT), *words], capture_output=True, text=True, timeout=900)
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stdout + done.stderr
    return json.loads(answers[0].removeprefix("ANSWER "))


def shape(db: Database) -> dict[str, Any]:
    inspector = sa.inspect(db.engine)
    return {
        table: (
            sorted((str(c["name"]), str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)),
            sorted((str(i["name"]), tuple(i["column_names"]), bool(i["unique"])) for i in inspector.get_indexes(table)),
            sorted(str(k["constrained_columns"]) for k in inspector.get_foreign_keys(table)),
        )
        for table in inspector.get_table_names()
    }


@pytest.mark.parametrize(
    ("which", "lineage", "revision"),
    [("api", sync.API, r) for r in sync.API.revisions()] + [("main", sync.MAIN, r) for r in sync.MAIN.revisions()],
)
def test_database_of_every_revision_becomes_ours(
    which: str, lineage: sync.Lineage, revision: str, tmp_path: pathlib.Path
) -> None:
    make = sync.sync_api if which == "api" else sync.sync_main
    theirs, ours = (Database(f"sqlite:///{tmp_path}/{name}.db") for name in ("theirs", "ours"))
    peer("migrate", which, f"sqlite:///{tmp_path}/theirs.db", revision)
    make(theirs)
    make(ours)
    assert shape(theirs) == shape(ours)
    assert sync.version(theirs, lineage) == lineage.head


def configuration(folder: pathlib.Path, urls: list[str]) -> str:
    file = folder / "peer.conf"
    file.write_text(
        "[DEFAULT]\ntransport_url = rabbit://\n"
        f"[api_database]\nconnection = {urls[0]}\n[database]\nconnection = {urls[2]}\n"
    )
    return str(file)


@pytest.fixture
def urls(database_server: str) -> Iterator[list[str]]:
    with new_databases(database_server, ("api", "cell0", "cell1")) as made:
        for url, make in zip(made, (sync.sync_api, sync.sync_main, sync.sync_main), strict=True):
            database = Database(url)
            make(database)
            database.dispose()
        yield made


@pytest.fixture
def cloud(urls: list[str], tmp_path: pathlib.Path, templates: pathlib.Path) -> Iterator[ControlPlane]:
    made = OnServers(tmp_path, templates, urls)
    yield made
    made.close()
    made.parts.cells.dispose()


def test_peer_reads_what_we_wrote(cloud: ControlPlane, urls: list[str], tmp_path: pathlib.Path) -> None:
    good = cloud.active("good", metadata={"a": "1"}, tags=["t"])
    bad = cloud.create("bad", flavorRef=cloud.make_flavor("huge", root_gb=10_000_000))["id"]
    cloud.until_status(bad, "ERROR")
    found = peer("read", configuration(tmp_path, urls))
    assert found["servers"][good["id"]] == {
        "cell": "cell1",
        "state": "active",
        "host": good["OS-EXT-SRV-ATTR:host"],
        "flavor": "small",
        "metadata": {"a": "1"},
        "tags": ["t"],
        "fault": None,
        "vifs": 1,
        "devices": [["image", "local"]],
        "actions": [["create", None]],
        "spec": ["small", 1],
        "mapping": ["cell1", "joe", False],
    }
    failed = found["servers"][bad]
    assert (failed["cell"], failed["state"], failed["host"]) == ("cell0", "error", None)
    assert failed["fault"].startswith("No valid host was found.")
    assert failed["actions"] == [["create", "Error"]]
    assert ["h1", "nova-compute"] in found["services"]
    assert sorted(host for host, _, _ in found["nodes"]) == ["h1", "h2"]


def test_we_read_what_the_peer_wrote(urls: list[str], tmp_path: pathlib.Path) -> None:
    api, cell = Database(urls[0]), Database(urls[2])
    for uuid, name, url in ((CELL0_UUID, "cell0", urls[1]), (CELL, "cell1", urls[2])):
        values = {"uuid": uuid, "name": name, "database_connection": url, "transport_url": "rabbit://"}
        api.run(cell_mappings.cell_mapping_create, values)
    made = peer("write", configuration(tmp_path, urls))
    uuid = made["server"]
    found = cell.query(instance_rows.load, uuid, instance_rows.ALL)
    assert (found.display_name, found.vm_state, found.metadata) == ("theirs", "active", {"a": "1"})
    assert found.system_metadata["image_base_image_ref"] == "i"
    assert (found.flavor.name, found.flavor.extra_specs) == ("small", {"hw:cpu_policy": "dedicated"})
    assert found.numa_topology.cells[0].pcpuset == {0, 1}
    assert [tag.tag for tag in found.tags] == ["tag"]
    assert (found.fault.code, found.fault.message) == (500, "m")
    devices = cell.query(bdm.get_by_instance_uuid, context.admin(), uuid)
    assert [(one.source_type, one.volume_id) for one in devices.objects] == [("volume", "v")]
    spec = api.query(request_spec.get_by_instance_uuid, context.admin(), uuid)
    assert (spec.flavor.name, spec.availability_zone) == ("small", "zone")
    mapping = api.query(instance_mappings.instance_mapping_get, uuid)
    assert mapping is not None
    assert (mapping["cell_uuid"], mapping["user_id"], mapping["queued_for_delete"]) == (CELL, "u", False)
    flavor = api.query(flavors.flavor_get, "f1")
    assert flavor is not None
    assert flavor["extra_specs"] == {"hw:cpu_policy": "dedicated"}
    assert [key["name"] for key in api.query(key_pairs.key_pair_list, "u")] == ["key"]
    aggregate = api.query(aggregates.aggregate_get, made["aggregate"])
    assert aggregate is not None
    assert aggregate["metadata"] == {"availability_zone": "zone"}
    group = api.query(instance_groups.instance_group_get, made["group"])
    assert group is not None
    assert (group["members"], group["policy"]) == ([uuid], "anti-affinity")
    api.dispose()
    cell.dispose()
