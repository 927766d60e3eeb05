"""Servers of other projects that hints name: where those are is not for the caller to find out."""

from __future__ import annotations

from kilonova.contract.context import RequestContext
from kilonova.db.api import instance_mappings
from kilonova.db.cells import Cells
from kilonova.scheduler.request import Request

_NAMING = ("same_host", "different_host")


def of_request(cells: Cells, ctxt: RequestContext, request: Request) -> frozenset[str]:
    """The servers that hints name and that do not exist for the caller; no statement without such hints."""
    named = [uuid for hint in _NAMING for uuid in request.hint_list(hint)]
    if not named or ctxt.is_admin:
        return frozenset()
    mappings = cells.api.query(instance_mappings.instance_mapping_list, named)
    return frozenset(row["instance_uuid"] for row in mappings if row["project_id"] != request.spec.project_id)
