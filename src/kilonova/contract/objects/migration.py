"""Migration."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Persistent, WireList, WireObject, register
from kilonova.contract.objects.enums import MigrationType


@register
class Migration(Persistent, WireObject):
    """The move of a server between hosts, or its resize."""

    VERSION = "1.8"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "cross_cell_move": t.Boolean(default=False),
        "dest_compute": t.String(nullable=True),
        "dest_compute_id": t.Integer(nullable=True),
        "dest_host": t.String(nullable=True),
        "dest_node": t.String(nullable=True),
        "disk_processed": t.Integer(nullable=True),
        "disk_remaining": t.Integer(nullable=True),
        "disk_total": t.Integer(nullable=True),
        "hidden": t.Boolean(default=False),
        "instance_uuid": t.String(nullable=True),
        "memory_processed": t.Integer(nullable=True),
        "memory_remaining": t.Integer(nullable=True),
        "memory_total": t.Integer(nullable=True),
        "migration_type": t.Choice(MigrationType),
        "new_instance_type_id": t.Integer(nullable=True),
        "old_instance_type_id": t.Integer(nullable=True),
        "project_id": t.String(nullable=True),
        "source_compute": t.String(nullable=True),
        "source_node": t.String(nullable=True),
        "status": t.String(nullable=True),
        "user_id": t.String(nullable=True),
    }
    REMOVED = {
        "cross_cell_move": "1.5",
        "dest_compute_id": "1.7",
        "disk_processed": "1.3",
        "disk_remaining": "1.3",
        "disk_total": "1.3",
        "hidden": "1.1",
        "memory_processed": "1.3",
        "memory_remaining": "1.3",
        "memory_total": "1.3",
        "migration_type": "1.1",
        "project_id": "1.6",
        "user_id": "1.6",
        "uuid": "1.4",
    }
    METHODS = {
        "create": "",
        "save": "",
    }
    CLASS_METHODS = {
        "get_by_id": "migration_id",
        "get_by_id_and_instance": "migration_id, instance_uuid",
        "get_by_instance_and_status": "instance_uuid, status",
        "get_by_uuid": "migration_uuid",
    }


@register
class MigrationList(WireList):
    """A list of Migration objects."""

    VERSION = "1.5"
    fields: Any = {
        "objects": t.Objects("Migration"),
    }
    CLASS_METHODS = {
        "get_by_filters": "filters, sort_keys=None, sort_dirs=None, limit=None, marker=None",
        "get_in_progress_and_error": "host, node",
        "get_in_progress_by_host_and_node": "host, node",
        "get_in_progress_by_instance": "instance_uuid, migration_type=None",
        "get_unconfirmed_by_dest_compute": "confirm_window, dest_compute, use_slave=False",
    }
