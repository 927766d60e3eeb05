"""Shadow tables: where archived rows go. Each is its table without constraints and indexes; a few columns differ."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA

PREFIX = "shadow_"

WITHOUT = frozenset(
    {
        "allocations",
        "console_auth_tokens",
        "inventories",
        "resource_provider_aggregates",
        "resource_providers",
        "share_mapping",
        "tags",
    }
)
"""Tables whose rows are really deleted."""

DIFFERENT: dict[tuple[str, str], dict[str, Any]] = {
    ("instances", "locked_by"): {
        "type_": sa.Enum("owner", "admin", name="shadow_instances0locked_by", metadata=METADATA)
    },
    ("key_pairs", "name"): {"nullable": True},
    ("pci_devices", "deleted"): {"nullable": False},
    ("pci_devices", "dev_type"): {"nullable": True},
    ("pci_devices", "product_id"): {"nullable": True},
    ("pci_devices", "vendor_id"): {"nullable": True},
}


def declare() -> None:
    """Add the shadow tables of all tables in METADATA to it, once."""
    sources = [t for t in METADATA.tables.values() if t.name not in WITHOUT and not t.name.startswith(PREFIX)]
    for table in sources:
        shadow_of(table)
    if PREFIX + "alembic_version" not in METADATA.tables:
        sa.Table(
            PREFIX + "alembic_version",
            METADATA,
            sa.Column("version_num", sa.String(32), primary_key=True),
            mysql_charset="utf8",
        )


def shadow_of(table: sa.Table) -> sa.Table:
    """The shadow table of a table."""
    name = PREFIX + table.name
    if name in METADATA.tables:
        return METADATA.tables[name]
    columns = [_copy(table.name, column) for column in table.columns]
    return sa.Table(name, METADATA, *columns, **{k: v for k, v in table.dialect_kwargs.items() if v})


def _copy(table: str, column: sa.Column[Any]) -> sa.Column[Any]:
    arguments: dict[str, Any] = {
        "type_": column.type,
        "nullable": column.nullable,
        "primary_key": column.primary_key,
        "autoincrement": column.autoincrement,
        "server_default": column.server_default.arg if isinstance(column.server_default, sa.DefaultClause) else None,
    } | DIFFERENT.get((table, column.name), {})
    return sa.Column(column.name, **arguments)
