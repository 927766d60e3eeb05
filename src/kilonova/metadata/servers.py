"""Finding servers: their records by id, their ids by address."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from kilonova.clients.bundle import Clients
from kilonova.contract import context, exceptions, objects
from kilonova.db.cells import Cell, Cells
from kilonova.db.objects import bdm, ec2
from kilonova.db.objects import instance as records
from kilonova.metadata import vendordata
from kilonova.metadata.cache import Cache
from kilonova.metadata.documents import Documents
from kilonova.metadata.instance_data import (
    Ec2Facts,
    Ec2Ids,
    block_mapping,
    from_instance,
    stored_password,
)
from kilonova.metadata.interfaces import interfaces_file

LOG = log.getLogger(__name__)

PIECES = 4
PIECE_LENGTH = 255
PASSWORD_LIMIT = PIECES * PIECE_LENGTH
"""Bytes a posted password may have: four columns of the record."""

_WANTED = ("flavor", "info_cache", "metadata", "system_metadata", "keypairs", "device_metadata", "numa_topology")
_NETWORKS_PER_QUERY = 160
"""So that a query's URL stays short enough for Neutron."""


class PasswordIsSet(Exception):
    """The guest posted its password before."""


class Servers:
    """Documents of servers, kept for `[api] metadata_cache_expiration` seconds."""

    def __init__(self, conf: cfg.ConfigOpts, cells: Cells, clients: Clients) -> None:
        self._cells = cells
        self._neutron = clients.neutron
        self._domain = conf.api.dhcp_domain
        self._per_cell = conf.api.local_metadata_per_cell
        self._vendor = vendordata.load(conf)
        self._documents: Cache[Documents] = Cache(conf.api.metadata_cache_expiration)
        self._ids: Cache[tuple[str, str]] = Cache(conf.api.metadata_cache_expiration)

    def documents(self, uuid: str, address: str | None) -> Documents:
        """What the server may read. Raises InstanceNotFound."""
        return self._documents.get(uuid, lambda: self._load(uuid, address))

    def id_at(self, address: str) -> str:
        """The server that has the address. Raises FixedIpNotFoundForAddress, FixedIpAssociatedWithMultipleInstances."""
        return self._ids.get(address, lambda: (self._find_at(address), ""))[0]

    def id_behind(self, provider: str, addresses: Sequence[str]) -> tuple[str, str]:
        """(server, project) of the only server with one of these addresses in the networks of a metadata provider.

        Raises FixedIpNotFoundForAddress, FixedIpAssociatedWithMultipleInstances, NetworkNotFound.
        """
        key = "-".join((provider, *addresses))
        return self._ids.get(key, lambda: self._find_behind(provider, addresses))

    def keep_password(self, uuid: str, password: str) -> None:
        """Store what the guest posted. Raises PasswordIsSet, InstanceNotFound."""
        self._cell(uuid).database.run(_keep_password, uuid, password)
        self._documents.forget(uuid)

    def _cell(self, uuid: str) -> Any:
        if self._per_cell:
            return _OwnCell(self._cells)
        cell = self._cells.for_instance(uuid)
        if cell is None:
            raise exceptions.InstanceNotFound(instance_id=uuid)
        return cell

    def _load(self, uuid: str, address: str | None) -> Documents:
        cell = self._cell(uuid)
        instance = cell.database.query(records.load, uuid, _WANTED)
        network_info = instance.info_cache.network_info if instance.info_cache is not None else []
        data = from_instance(
            instance, network_info=network_info, ec2=self._ec2(cell, instance, network_info), address=address
        )
        return Documents(data, self._vendor, self._domain, interfaces_file(network_info))

    def _ec2(
        self, cell: Cell, instance: objects.Instance, network_info: Sequence[Mapping[str, Any]]
    ) -> Callable[[], Ec2Facts]:
        @functools.cache
        def facts() -> Ec2Facts:
            found = cell.database.run(ec2.ids_of, None, instance)
            rows = cell.database.query(bdm.load, [instance.uuid]).objects
            names = ("destination_type", "source_type", "guest_format", "device_name")
            devices = [{name: row.get(name) for name in names} for row in rows]
            ids = Ec2Ids(found.instance_id, found.ami_id, found.kernel_id, found.ramdisk_id)
            return Ec2Facts(ids, self._group_names(instance.uuid), block_mapping(instance, devices))

        return facts

    def _group_names(self, uuid: str) -> list[str]:
        ctxt, rest = context.admin(), self._neutron.rest
        ports = rest.list(ctxt, "ports", admin=True, device_id=uuid, fields=["security_groups"])
        ids = list(dict.fromkeys(group for port in ports for group in port.get("security_groups") or ()))
        groups = rest.list(ctxt, "security-groups", admin=True, id=ids, fields=["name"]) if ids else []
        return [group["name"] for group in groups]

    def _find_at(self, address: str) -> str:
        ports = self._ports(fixed_ips=f"ip_address={address}")
        return _only(ports, address)["device_id"]

    def _find_behind(self, provider: str, addresses: Sequence[str]) -> tuple[str, str]:
        subnets = self._neutron.rest.list(
            context.admin(), "subnets", admin=True, advanced_service_providers=[provider], fields=["network_id"]
        )
        networks = list(dict.fromkeys(subnet["network_id"] for subnet in subnets))
        if not networks:
            raise exceptions.NetworkNotFound(network_id=f"of metadata provider {provider}")
        ports: list[Mapping[str, Any]] = []
        for start in range(0, len(networks), _NETWORKS_PER_QUERY):
            some = networks[start : start + _NETWORKS_PER_QUERY]
            ports += self._ports(fixed_ips=[f"ip_address={each}" for each in addresses], network_id=some)
        port = _only(ports, ", ".join(addresses))
        return port["device_id"], port["tenant_id"]

    def _ports(self, **filters: Any) -> list[Mapping[str, Any]]:
        found = self._neutron.rest.list(
            context.admin(), "ports", admin=True, fields=["device_id", "device_owner", "tenant_id"], **filters
        )
        return [port for port in found if str(port.get("device_owner", "")).startswith("compute:")]


class _OwnCell:
    """The cell of a metadata service that serves one cell only and need not know the others."""

    def __init__(self, cells: Cells) -> None:
        self.database = cells.own


def _only(ports: Sequence[Mapping[str, Any]], address: str) -> Mapping[str, Any]:
    if not ports:
        raise exceptions.FixedIpNotFoundForAddress(address=address)
    if len({port["device_id"] for port in ports}) > 1:
        raise exceptions.FixedIpAssociatedWithMultipleInstances(address=address)
    return ports[0]


def _keep_password(tx: Any, uuid: str, password: str) -> None:
    instance = records.load(tx, uuid, ("system_metadata",))
    if stored_password(instance.system_metadata):
        raise PasswordIsSet(uuid)
    pieces = {f"password_{n}": password[n * PIECE_LENGTH : (n + 1) * PIECE_LENGTH] for n in range(PIECES)}
    instance.system_metadata = {**instance.system_metadata, **pieces}
    records.save(tx, None, instance)
