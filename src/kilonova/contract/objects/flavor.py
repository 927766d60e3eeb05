"""Flavor."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, WireList, WireObject, register


@register
class Flavor(Persistent, WireObject, DictCompat):
    """A size of server and what it asks of its host."""

    VERSION = "1.2"
    fields: Any = {
        "id": t.Integer(),
        "description": t.String(nullable=True),
        "disabled": t.Boolean(),
        "ephemeral_gb": t.Integer(),
        "extra_specs": t.DictOfStrings(),
        "flavorid": t.String(),
        "is_public": t.Boolean(),
        "memory_mb": t.Integer(),
        "name": t.String(nullable=True),
        "projects": t.ListOfStrings(),
        "root_gb": t.Integer(),
        "rxtx_factor": t.Float(nullable=True, default=1.0),
        "swap": t.Integer(),
        "vcpu_weight": t.Integer(nullable=True),
        "vcpus": t.Integer(),
    }
    REMOVED = {
        "description": "1.1",
    }
    METHODS = {
        "_load_projects": "",
        "add_access": "project_id",
        "create": "",
        "destroy": "",
        "remove_access": "project_id",
        "save_extra_specs": "to_add=None, to_delete=None",
        "save_projects": "to_add=None, to_delete=None",
    }
    CLASS_METHODS = {
        "get_by_flavor_id": "flavor_id, read_deleted=None",
        "get_by_id": "id",
        "get_by_name": "name",
    }


@register
class FlavorList(WireList):
    """A list of Flavor objects."""

    VERSION = "1.1"
    fields: Any = {
        "objects": t.Objects("Flavor"),
    }
    CLASS_METHODS = {
        "get_all": "inactive=False, filters=None, sort_key='flavorid', sort_dir='asc', limit=None, marker=None",
    }
