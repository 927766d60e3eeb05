"""Limits of projects and what counts against them, in the databases of all cells."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from oslo_config import cfg

from kilonova.db.api import build_requests, quotas
from kilonova.db.cell import instances
from kilonova.db.cells import CellDown, Cells
from kilonova.db.engine import Tx

LOG = logging.getLogger(__name__)

UNLIMITED: Final = -1
OF_SERVERS: Final = ("instances", "cores", "ram")
# Resources whose option has another name.
_OPTION_OF: Final[Mapping[str, str]] = {"injected_file_path_bytes": "injected_file_path_length"}
RESOURCES: Final = (
    "instances",
    "cores",
    "ram",
    "metadata_items",
    "injected_files",
    "injected_file_content_bytes",
    "injected_file_path_bytes",
    "key_pairs",
    "server_groups",
    "server_group_members",
)
NETWORKS: Final = ("fixed_ips", "floating_ips", "security_group_rules", "security_groups")
"""Neutron's affair for long: kept and shown to old microversions, counted nowhere."""


def defaults(conf: cfg.ConfigOpts, of_class: Mapping[str, int]) -> dict[str, int]:
    """The limits of whoever has none of its own: the default class's, else the configured ones."""
    configured = {name: conf.quota[_OPTION_OF.get(name, name)] for name in RESOURCES}
    return dict.fromkeys(NETWORKS, UNLIMITED) | configured | _known(of_class)


def limits(tx: Tx, conf: cfg.ConfigOpts, project_id: str) -> dict[str, int]:
    """The limits of a project by resource."""
    return defaults(conf, quotas.quota_class_get(tx)) | _known(quotas.quota_get(tx, project_id))


def _known(found: Mapping[str, int]) -> dict[str, int]:
    return {name: limit for name, limit in found.items() if name in RESOURCES or name in NETWORKS}


def usage(
    cells: Cells, project_id: str, user_id: str | None = None, *, but: Sequence[str] = ()
) -> dict[str, dict[str, int]]:
    """``instances``, ``cores`` and ``ram`` of a ``project``, and of a ``user`` in it if given: records and requests.

    ``but``: servers that do not count. Cells that do not answer are left out: one lost cell must not stop the whole
    cloud from taking servers.
    """

    # Requests first: a server on its way into its cell is in both for a moment, and counts there alone.
    def requested(tx: Tx) -> dict[str, _Size]:
        unplaced = set(build_requests.build_request_unplaced(tx, project_id)) - set(but)
        return _SIZES.of(tx, sorted(unplaced))

    asked = cells.api.query(requested)

    def count(tx: Tx) -> tuple[dict[str, dict[str, int]], set[str]]:
        return instances.instance_usage(tx, project_id, user_id, but=but), instances.instances_among(tx, asked)

    counted, placed = [], set[str]()
    for uuid, answer in cells.scatter(lambda cell: cell.database.query(count)).items():
        if isinstance(answer, CellDown):
            LOG.warning("quota: cell %s does not answer, so its servers are not counted: %s", uuid, answer.reason)
            continue
        counted.append(answer[0])
        placed |= answer[1]
    total = _requested([size for instance, size in asked.items() if instance not in placed], user_id)
    for in_cell in counted:
        for scope, used in total.items():
            for name in OF_SERVERS:
                used[name] += in_cell[scope][name]
    return total


class _Size(msgspec.Struct, frozen=True):
    user_id: str
    vcpus: int
    memory_mb: int


class _Sizes:
    """What accepted servers will take, which never changes: of many that wait, each is read once. Thread-safe."""

    MOST = 10_000
    """Sizes that are kept; then all are read again."""

    def __init__(self) -> None:
        self._known: dict[str, _Size] = {}

    def of(self, tx: Tx, uuids: Sequence[str]) -> dict[str, _Size]:
        """By uuid, of those that are still asked for."""
        found = {uuid: size for uuid in uuids if (size := self._known.get(uuid)) is not None}
        missing = [uuid for uuid in uuids if uuid not in found]
        if missing:
            texts = build_requests.build_request_instances(tx, missing)
            fresh = {uuid: _size(text) for uuid, text in texts.items()}
            if len(self._known) > self.MOST:
                self._known.clear()
            self._known.update(fresh)
            found |= fresh
        return found


def _size(instance: str) -> _Size:
    data = msgspec.json.decode(instance)["nova_object.data"]
    return _Size(data["user_id"], data.get("vcpus") or 0, data.get("memory_mb") or 0)


_SIZES: Final = _Sizes()


def _requested(asked: Iterable[_Size], user_id: str | None) -> dict[str, dict[str, int]]:
    """The use of accepted servers that are in no cell yet."""
    total = {"project": dict.fromkeys(OF_SERVERS, 0)}
    if user_id is not None:
        total["user"] = dict.fromkeys(OF_SERVERS, 0)
    for size in asked:
        for scope, used in total.items():
            if scope == "project" or size.user_id == user_id:
                used["instances"] += 1
                used["cores"] += size.vcpus
                used["ram"] += size.memory_mb
    return total
