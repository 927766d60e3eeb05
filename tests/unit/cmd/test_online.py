"""nova-manage db online_data_migrations: each fills in what is missing, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from tests.contract import facts

from kilonova import conf as configuration
from kilonova.base import ids
from kilonova.cmd import manage
from kilonova.db import online, query
from kilonova.db.api import aggregates, cell_mappings, instance_mappings, quotas
from kilonova.db.cell import instances, tables
from kilonova.db.cells import Cells
from kilonova.db.engine import Database, Tx
from kilonova.db.migrations import sync

NODE = dict.fromkeys(
    ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "hypervisor_version"), 1
) | {"hypervisor_type": "fake", "cpu_info": "{}"}


class Old:
    """A cloud with one cell, made by older releases."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "nova.conf"
        self.file.write_text(
            f"[database]\nconnection = sqlite:///{folder}/cell.db\n"
            f"[api_database]\nconnection = sqlite:///{folder}/api.db\n"
        )
        self.conf: cfg.ConfigOpts = configuration.load(["--config-file", str(self.file)])
        self.cells = Cells(self.conf)
        sync.sync_api(self.cells.api)
        sync.sync_main(self.cells.own)
        mapping = {"uuid": ids.new_uuid(), "name": "one", "transport_url": "none:///"}
        mapping["database_connection"] = f"sqlite:///{folder}/cell.db"
        self.cell_id = self.cells.api.run(cell_mappings.cell_mapping_create, mapping)["id"]

    @property
    def cell(self) -> Database:
        return self.cells.own

    def put(self, table: sa.Table, **values: Any) -> int:
        return int(self.cell.run(query.insert, table, values)["id"])

    def server(self, **values: Any) -> str:
        return str(self.cell.run(instances.instance_create, {"project_id": "p", "user_id": "u", **values})["uuid"])

    def map(self, server: str, **values: Any) -> None:
        new = {"instance_uuid": server, "project_id": "p", "user_id": "u", "cell_id": self.cell_id, **values}
        self.cells.api.run(instance_mappings.instance_mapping_create, new)

    def column(self, table: sa.Table, name: str) -> list[Any]:
        return self.cell.query(query.values, sa.select(table.c[name]).order_by(table.c.id))

    def migrate(self, name: str, limit: int = 50) -> tuple[int, int]:
        run = online.Run(self.cells, self.conf, limit)
        online.MIGRATIONS[name](run)
        assert not run.troubles
        return run.found, run.done


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Old]:
    cloud = Old(tmp_path)
    yield cloud
    cloud.cells.dispose()


@pytest.mark.parametrize(
    ("name", "table", "values"),
    [
        ("migration_migrate_to_uuid", tables.MIGRATIONS, {"migration_type": "resize"}),
        ("populate_uuids", tables.BLOCK_DEVICE_MAPPING, {"source_type": "image"}),
        (
            "populate_dev_uuids",
            tables.PCI_DEVICES,
            {"address": "a", "product_id": "p", "vendor_id": "v", "dev_type": "t", "dev_id": "d", "label": "l"}
            | {"status": "available"},
        ),
    ],
)
def test_rows_without_a_uuid_get_one(old: Old, name: str, table: sa.Table, values: dict[str, Any]) -> None:
    if table is tables.PCI_DEVICES:
        values["compute_node_id"] = old.put(tables.COMPUTE_NODES, **NODE, host="h")
    for n in range(3):
        old.put(table, **values | ({"address": str(n)} if "address" in values else {}))
    assert old.migrate(name, 2) == (2, 2)
    assert old.migrate(name, 2) == (1, 1)
    assert old.migrate(name) == (0, 0)
    assert len(set(old.column(table, "uuid"))) == 3
    assert old.column(table, "updated_at") == [None, None, None]


def test_servers_get_the_zone_of_their_host(old: Old) -> None:
    number = old.cells.api.run(aggregates.aggregate_create, "a", {"availability_zone": "z"})["id"]
    old.cells.api.run(aggregates.aggregate_host_add, number, "h1")
    for values in ({"host": "h1"}, {"host": "h2"}, {}, {"host": "h1", "availability_zone": "asked"}):
        old.server(**values)
    assert old.migrate("populate_missing_availability_zones") == (2, 2)
    assert old.column(tables.INSTANCES, "availability_zone") == ["z", "nova", None, "asked"]
    assert old.migrate("populate_missing_availability_zones") == (0, 0)


def test_servers_get_the_number_of_their_node(old: Old) -> None:
    number = old.put(tables.COMPUTE_NODES, **NODE, host="h", hypervisor_hostname="n")
    for values in ({"host": "h", "node": "n"}, {"host": "gone", "node": "n"}, {}):
        old.server(**values)
    assert old.migrate("populate_instance_compute_id") == (2, 1)
    assert old.column(tables.INSTANCES, "compute_id") == [number, None, None]
    assert old.migrate("populate_instance_compute_id") == (1, 0)


def test_nodes_get_their_ratios(old: Old) -> None:
    old.conf.set_override("cpu_allocation_ratio", 8.0)
    old.put(tables.COMPUTE_NODES, **NODE, host="h1")
    old.put(tables.COMPUTE_NODES, **NODE, host="h2", cpu_allocation_ratio=2.0, ram_allocation_ratio=0.0)
    assert old.migrate("migrate_empty_ratio") == (2, 2)
    assert old.column(tables.COMPUTE_NODES, "cpu_allocation_ratio") == [8.0, 2.0]
    assert old.column(tables.COMPUTE_NODES, "ram_allocation_ratio") == [1.0, 1.0]
    assert old.migrate("migrate_empty_ratio") == (0, 0)


def test_mappings_learn_what_is_deleted(old: Old) -> None:
    alive, gone = old.server(), old.server()
    old.cell.run(instances.instance_destroy, gone)
    for server in (alive, gone):
        old.map(server, queued_for_delete=None)
    assert old.migrate("populate_queued_for_delete") == (2, 2)
    found = {m["instance_uuid"]: m for m in old.cells.api.query(instance_mappings.instance_mapping_list, [alive, gone])}
    assert found[alive]["queued_for_delete"] is False
    assert found[gone]["queued_for_delete"] is True
    assert old.migrate("populate_queued_for_delete") == (0, 0)


def test_mappings_learn_whose_they_are(old: Old) -> None:
    mine, building = old.server(user_id="me"), ids.new_uuid()
    old.map(mine, user_id=None)
    old.map(building, user_id=None, cell_id=None)
    assert old.migrate("populate_user_id") == (2, 1)
    found = old.cells.api.query(instance_mappings.instance_mapping_get, mine)
    assert found is not None
    assert found["user_id"] == "me"
    assert old.migrate("populate_user_id") == (1, 0)


def test_interfaces_of_the_info_cache_get_records(old: Old) -> None:
    vifs = json.dumps([{"id": "p1", "address": "fa:16:3e:00:00:01"}, {"id": "p2", "address": "fa:16:3e:00:00:02"}])
    server = old.server(network_info=vifs)
    old.put(tables.VIRTUAL_INTERFACES, instance_uuid=server, uuid="p1", address="fa:16:3e:00:00:01/p1", tag="t")
    old.server()
    assert old.migrate("fill_virtual_interface_list") == (1, 1)
    assert old.column(tables.VIRTUAL_INTERFACES, "address")[1] == "fa:16:3e:00:00:02/p2"
    assert old.column(tables.VIRTUAL_INTERFACES, "tag") == ["t", None]
    assert old.migrate("fill_virtual_interface_list") == (0, 0)


def test_what_cannot_be_filled_in_stops_nothing(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "BATCH", 4)
    for _ in range(60):
        old.server(host="gone", node="n")
    number = old.put(tables.COMPUTE_NODES, **NODE, host="h", hypervisor_hostname="n")
    old.server(host="h", node="n")
    assert old.migrate("populate_instance_compute_id", 1) == (61, 1)
    assert old.column(tables.INSTANCES, "compute_id")[-1] == number
    for _ in range(10):
        old.map(old.server(user_id=None), user_id=None)
    old.map(old.server(user_id="me"), user_id=None)
    assert old.migrate("populate_user_id", 1) == (11, 1)


def test_caches_that_cannot_be_read_and_ports_of_two_servers_stop_nothing(old: Old) -> None:
    one = {"id": "p1", "address": "fa:16:3e:00:00:01"}
    for text in ("nonsense", "null", json.dumps([one]), json.dumps([one, {"id": "p2", "address": "a"}, {"id": "p3"}])):
        old.server(network_info=text)
    assert old.migrate("fill_virtual_interface_list") == (5, 2)
    assert sorted(old.column(tables.VIRTUAL_INTERFACES, "uuid")) == ["p1", "p2"]


def interfaces(database: Database, servers: int, ports: int = 5, *, known: bool = True) -> None:
    """Servers whose info caches have ports, recorded or not."""
    server = [ids.new_uuid() for _ in range(servers)]
    vifs = [
        [
            {"id": f"{uuid[:30]}{port}", "address": "fa:16:3e:00:00:01", "network": {"subnets": []}}
            for port in range(ports)
        ]
        for uuid in server
    ]
    caches = [
        {"instance_uuid": uuid, "network_info": json.dumps(of), "deleted": 0}
        for uuid, of in zip(server, vifs, strict=True)
    ]
    records = [
        {"instance_uuid": uuid, "uuid": vif["id"], "address": f"{vif['address']}/{vif['id']}", "deleted": 0}
        for uuid, of in zip(server, vifs, strict=True)
        for vif in of
    ]

    def put(tx: Tx) -> None:
        tx.execute(tables.INSTANCES.insert(), [{"uuid": uuid, "deleted": 0} for uuid in server])
        tx.execute(tables.INSTANCE_INFO_CACHES.insert(), caches)
        if known:
            tx.execute(tables.VIRTUAL_INTERFACES.insert(), records)

    database.run(put)


def statements(database: Database) -> list[str]:
    """What the database is asked from now on."""
    asked: list[str] = []
    listen = sa.event.listen
    listen(database.engine, "before_cursor_execute", lambda _c, _u, text, *_: asked.append(text))
    listen(database.engine, "begin", lambda connection: asked.append(f"begin {connection.get_execution_options()}"))
    return asked


def test_with_nothing_to_do_it_writes_nothing_and_asks_little(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "PAGE", 100)
    counts = []
    for _ in range(2):
        interfaces(old.cell, 1000)
        asked = statements(old.cell)
        assert old.migrate("fill_virtual_interface_list") == (0, 0)
        assert not any("kilonova_write" in text or text.startswith("INSERT") for text in asked)
        counts.append(len(asked))
    # Twice as much takes twice as long (the second time two listeners count).
    assert counts[0] <= 3 * 11
    assert counts[1] <= 3 * 21


def test_what_is_much_is_filled_in_by_short_transactions(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "PAGE", 50)
    monkeypatch.setattr(online, "BATCH", 20)
    interfaces(old.cell, 120, known=False)
    sizes: list[int] = []
    real = query.insert_many

    def counted(tx: Tx, table: sa.Table, new: list[Any]) -> None:
        sizes.append(len(new))
        real(tx, table, new)

    monkeypatch.setattr(query, "insert_many", counted)
    assert old.migrate("fill_virtual_interface_list", 10_000) == (600, 600)
    assert max(sizes) <= 20
    assert old.migrate("fill_virtual_interface_list", 10_000) == (0, 0)


def test_a_cell_that_is_down_keeps_no_other_from_being_done(
    old: Old, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old.cells.api.run(lambda tx: tx.exec_driver_sql("UPDATE cell_mappings SET id = 7"))
    lost = {"uuid": ids.new_uuid(), "name": "lost", "transport_url": "none:///"}
    lost["database_connection"] = f"sqlite:///{tmp_path}/none/lost.db"
    mapping = old.cells.api.run(cell_mappings.cell_mapping_create, lost | {"id": 3})
    old.cell_id = 7
    server = old.server(user_id="me", network_info=json.dumps([{"id": "p", "address": "a"}]))
    old.map(server, user_id=None, queued_for_delete=None)
    old.map("elsewhere", user_id=None, queued_for_delete=None, cell_id=mapping["id"])
    old.put(tables.BLOCK_DEVICE_MAPPING, source_type="image")
    assert manage.main(["--config-file", str(old.file), "db", "online_data_migrations"]) == 2
    shown = capsys.readouterr()
    assert "Cell lost" in shown.err
    assert old.column(tables.VIRTUAL_INTERFACES, "uuid") == ["p"]
    assert all(old.column(tables.BLOCK_DEVICE_MAPPING, "uuid"))
    found = old.cells.api.query(instance_mappings.instance_mapping_list, [server, "elsewhere"])
    assert {one["instance_uuid"]: (one["user_id"], one["queued_for_delete"]) for one in found} == {
        server: ("me", False),
        "elsewhere": (None, None),
    }


def test_limits_move_to_the_api_database(old: Old) -> None:
    old.cells.api.run(quotas.quota_set, "p", "ram", 1)
    for resource, limit in (("cores", 5), ("ram", 2)):
        old.put(tables.QUOTAS, project_id="p", resource=resource, hard_limit=limit)
    old.put(tables.PROJECT_USER_QUOTAS, project_id="p", user_id="u", resource="cores", hard_limit=3)
    old.put(tables.QUOTA_CLASSES, class_name="default", resource="cores", hard_limit=7)
    assert old.migrate("migrate_quota_limits_to_api_db", 1) == (1, 1)
    assert old.migrate("migrate_quota_limits_to_api_db") == (2, 2)
    assert old.migrate("migrate_quota_classes_to_api_db") == (1, 1)
    assert old.cells.api.query(quotas.quota_get, "p") == {"cores": 5, "ram": 1}
    assert old.cells.api.query(quotas.quota_get_for_user, "p", "u") == {"cores": 3}
    assert old.cells.api.query(quotas.quota_class_get) == {"cores": 7}
    assert old.migrate("migrate_quota_limits_to_api_db") == (0, 0)


def test_the_action(old: Old, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> int:
        return manage.main(["--config-file", str(old.file), "db", "online_data_migrations", *words])

    for _ in range(3):
        old.put(tables.BLOCK_DEVICE_MAPPING, source_type="image")
    assert run("--max-count", "0") == 127
    assert run("--max-count", "2") == 1
    assert run() == 0
    assert run("--max-count", "2") == 0
    shown = capsys.readouterr().out
    assert "populate_uuids" in shown
    old.cells.api.run(lambda tx: tx.exec_driver_sql("DROP TABLE quota_classes"))
    old.put(tables.QUOTA_CLASSES, class_name="default", resource="cores", hard_limit=7)
    assert run() == 2
    assert "Migration migrate_quota_classes_to_api_db failed" in capsys.readouterr().out


def test_names_are_novas() -> None:
    assert list(online.MIGRATIONS) == facts.load("cli")["online_data_migrations"]
