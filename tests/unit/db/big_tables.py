"""Databases of ten thousand rows a table, and how statements go about them.

`fill` takes a database as it was created. Rows are numbered from 0: ten thousand servers in a hundred projects on a
thousand hosts; every tenth is deleted.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.db.api import tables as a
from kilonova.db.cell import tables as t
from kilonova.db.engine import Database, Tx
from kilonova.db.flow_tables import KN_FLOW, KN_FLOW_EVENT

ROWS = 10_000
PROJECTS = 100
HOSTS = 1000
DAY = datetime.datetime(2026, 1, 1)

_BUILDING = sa.MetaData()
NUMBERS = sa.Table(
    "kn_test_numbers",
    _BUILDING,
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("one", sa.Integer),
    sa.Column("uuid", sa.String(36)),
    sa.Column("project", sa.String(36)),
    sa.Column("host", sa.String(36)),
    sa.Column("text", sa.String(36)),
    sa.Column("at", sa.DateTime),
    sa.Column("gone", sa.Integer),
    sa.Column("task", sa.String(36)),
)
_N = NUMBERS.c


def uuid(n: int) -> str:
    return f"00000000-0000-4000-8000-{n:012}"


def project(n: int) -> str:
    return f"project-{n % PROJECTS}"


def host(n: int) -> str:
    return f"host-{n % HOSTS}"


def _number(n: int) -> dict[str, Any]:
    return {
        "n": n,
        "one": n + 1,
        "uuid": uuid(n),
        "project": project(n),
        "host": host(n),
        "text": f"text-{n}",
        "at": DAY + datetime.timedelta(minutes=n),
        "gone": n + 1 if n % 10 == 9 else 0,
        "task": "rebooting" if n % 1000 == 1 else None,
    }


_STATE = sa.case(*((_N.n % 100 == n, state) for n, state in enumerate(("offered", "stuck", "unwound"))), else_="done")

Values = Mapping[str, Any]
"""What goes into the columns of a table: a column of NUMBERS, or the same in every row."""

_OWN = {"project_id": _N.project, "user_id": _N.project}
_SERVER = {"instance_uuid": _N.uuid}
_PART = {**_SERVER, "deleted": _N.gone, "created_at": _N.at}
_PAIR = {"key": "k", "value": _N.text}

API: dict[sa.Table, Values] = {
    a.CELL_MAPPINGS: {"id": _N.one, "uuid": _N.uuid, "name": _N.text, "database_connection": "d", "transport_url": "t"},
    a.INSTANCE_MAPPINGS: {**_SERVER, **_OWN, "cell_id": 1, "queued_for_delete": sa.false()},
    a.REQUEST_SPECS: {**_SERVER, "spec": "{}"},
    a.BUILD_REQUESTS: {**_SERVER, "project_id": _N.project, "created_at": _N.at},
    a.KEY_PAIRS: {"user_id": _N.project, "name": _N.text, "type": "ssh"},
    a.AGGREGATES: {"id": _N.one, "uuid": _N.uuid, "name": _N.text},
    a.AGGREGATE_HOSTS: {"aggregate_id": _N.one, "host": _N.host},
    a.AGGREGATE_METADATA: {"aggregate_id": _N.one, "key": _N.text, "value": _N.text},
    a.FLAVORS: {
        "id": _N.one, "name": _N.text, "flavorid": _N.uuid, "memory_mb": 1, "vcpus": 1, "swap": 0, "rxtx_factor": 1.0,
        "root_gb": 0, "ephemeral_gb": 0, "vcpu_weight": 0, "is_public": sa.true(), "disabled": sa.false(),
    },
    a.FLAVOR_EXTRA_SPECS: {"flavor_id": _N.one, **_PAIR},
    a.FLAVOR_PROJECTS: {"flavor_id": _N.one, "project_id": _N.project},
    a.HOST_MAPPINGS: {"cell_id": 1, "host": _N.text},
    a.INSTANCE_GROUPS: {"id": _N.one, "uuid": _N.uuid, **_OWN, "name": _N.text},
    a.INSTANCE_GROUP_MEMBER: {"group_id": _N.one, **_SERVER},
    a.INSTANCE_GROUP_POLICY: {"group_id": _N.one, "policy": "affinity"},
    a.QUOTAS: {"project_id": _N.text, "resource": "cores", "hard_limit": 1},
    a.PROJECT_USER_QUOTAS: {"project_id": _N.project, "user_id": _N.text, "resource": "cores", "hard_limit": 1},
}  # fmt: skip
"""The tables of the API database, those that others refer to first."""

CELL: dict[sa.Table, Values] = {
    t.INSTANCES: {
        **_OWN, "uuid": _N.uuid, "host": _N.host, "node": _N.host, "created_at": _N.at, "updated_at": _N.at,
        "launched_at": _N.at, "deleted": _N.gone, "vm_state": "active", "vcpus": 1, "memory_mb": 1,
        "hidden": sa.false(), "display_name": _N.text, "hostname": _N.text, "task_state": _N.task, "compute_id": 1,
        "cleaned": 0, "root_gb": 0, "ephemeral_gb": 0, "power_state": 1, "instance_type_id": 1,
    },
    t.INSTANCE_FAULTS: {**_PART, "code": 500},
    t.INSTANCE_INFO_CACHES: {**_PART, "network_info": "[]"},
    t.INSTANCE_EXTRA: {**_PART, "pci_requests": "[]"},
    t.INSTANCE_METADATA: {**_PART, **_PAIR},
    t.INSTANCE_SYSTEM_METADATA: {**_PART, **_PAIR},
    t.BLOCK_DEVICE_MAPPING: {**_PART, "uuid": _N.uuid, "volume_id": _N.uuid, "source_type": "volume"},
    t.VIRTUAL_INTERFACES: {**_PART, "uuid": _N.uuid, "address": _N.text},
    t.TAGS: {"resource_id": _N.uuid, "tag": _N.text},
    t.INSTANCE_ACTIONS: {
        **_SERVER, "id": _N.one, "action": "create", "request_id": _N.text, "deleted": 0, "created_at": _N.at,
        "updated_at": _N.at, "start_time": _N.at,
    },
    t.INSTANCE_ACTIONS_EVENTS: {"action_id": _N.one, "event": "e", "deleted": 0, "created_at": _N.at},
    t.MIGRATIONS: {
        **_PART, **_OWN, "uuid": _N.uuid, "status": "done", "migration_type": "resize", "updated_at": _N.at,
        "source_compute": _N.host, "source_node": _N.host, "dest_compute": _N.host, "dest_node": _N.host,
    },
    t.SERVICES: {
        "host": _N.text, "binary": "nova-compute", "topic": "compute", "report_count": 1, "version": 74,
        "uuid": _N.uuid, "deleted": _N.gone, "disabled": sa.false(), "forced_down": sa.false(), "created_at": _N.at,
        "updated_at": _N.at, "last_seen_up": _N.at,
    },
    t.COMPUTE_NODES: {
        "host": _N.text, "hypervisor_hostname": _N.text, "uuid": _N.uuid, "deleted": _N.gone, "vcpus": 1,
        "memory_mb": 1, "local_gb": 1, "vcpus_used": 0, "memory_mb_used": 0, "local_gb_used": 0, "cpu_info": "",
        "hypervisor_type": "QEMU", "hypervisor_version": 1, "mapped": 1, "created_at": _N.at, "updated_at": _N.at,
    },
    t.PCI_DEVICES: {
        **_PART, "compute_node_id": _N.one, "address": "a", "product_id": "p", "vendor_id": "v", "label": "l",
        "dev_type": "type-PCI", "status": "allocated", "parent_addr": _N.text, "uuid": _N.uuid,
    },
    t.SHARE_MAPPING: {
        **_SERVER, "uuid": _N.uuid, "share_id": _N.uuid, "status": "active", "tag": "t", "export_location": "e",
        "share_proto": "NFS",
    },
    t.SECURITY_GROUPS: {"id": _N.one, **_OWN, "name": _N.text, "description": "d", "deleted": 0},
    t.SECURITY_GROUP_INSTANCE_ASSOCIATION: {**_SERVER, "security_group_id": _N.one, "deleted": 0},
    t.TASK_LOG: {
        "task_name": "audit", "state": "DONE", "host": _N.text, "period_beginning": _N.at, "period_ending": _N.at,
        "message": "m", "deleted": 0,
    },
    KN_FLOW: {
        "id": _N.uuid, "op": "build", "subject_id": _N.uuid, "state": _STATE, "frame": "{}", "tries": 0,
        "code_version": 1, "lease_epoch": 1, "lease_until": 0, "wake_at": _N.n, "created_at": _N.n,
        "updated_at": _N.n, "ended_at": _N.n, "active_key": _N.text,
    },
    KN_FLOW_EVENT: {"flow_id": _N.uuid, "at": _N.n, "kind": "leased", "tries": 0, "epoch": 1},
}  # fmt: skip
"""The tables of a cell's database in that order."""


def fill(database: Database, tables: Mapping[sa.Table, Values], rows: int = ROWS) -> None:
    """Rows into each table, and statistics that know of them."""
    with database.write() as tx:
        _BUILDING.create_all(tx)
        tx.execute(NUMBERS.insert(), [_number(n) for n in range(rows)])
        for table, values in tables.items():
            chosen = [value if isinstance(value, sa.ClauseElement) else sa.literal(value) for value in values.values()]
            tx.execute(table.insert().from_select(list(values), sa.select(*chosen).select_from(NUMBERS)))
    with database.write() as tx:
        _BUILDING.drop_all(tx)
        names = ", ".join(table.name for table in tables if table not in (KN_FLOW, KN_FLOW_EVENT))
        tx.exec_driver_sql(f"ANALYZE TABLE {names}" if tx.dialect.name == "mysql" else "ANALYZE")


@contextlib.contextmanager
def watched(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """The reading statements of the block, with their parameters."""
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        if statement.startswith(("SELECT", "WITH")):
            seen.append((statement, parameters))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)


def scanned(tx: Tx, statement: str, parameters: Any) -> set[str]:
    """The tables (by name or alias) that the plan of a statement reads from end to end."""
    return _SCANS[tx.dialect.name](tx, statement, parameters)


def _sqlite(tx: Tx, statement: str, parameters: Any) -> set[str]:
    steps = [row[3] for row in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    whole = [step.split() for step in steps if step.startswith("SCAN ") and " USING " not in step]
    return {words[1] for words in whole} & set(sa.inspect(tx).get_table_names())


def _mysql(tx: Tx, statement: str, parameters: Any) -> set[str]:
    steps = tx.exec_driver_sql(f"EXPLAIN {statement}", parameters).all()
    return {step.table for step in steps if step.type == "ALL" and not step.table.startswith("<")}


def _postgresql(tx: Tx, statement: str, parameters: Any) -> set[str]:
    # Of ten thousand rows it rather reads all than a hundred by an index; what is asked is whether it could.
    tx.exec_driver_sql("SET LOCAL enable_seqscan = off")
    steps = [row[0] for row in tx.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
    return {step.split("Seq Scan on ")[1].split()[0] for step in steps if "Seq Scan on " in step}


_SCANS: dict[str, Callable[[Tx, str, Any], set[str]]] = {
    "sqlite": _sqlite,
    "mysql": _mysql,
    "postgresql": _postgresql,
}
