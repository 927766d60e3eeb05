"""Diagnostics."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Ephemeral, WireObject, register
from kilonova.contract.objects.enums import HypervisorDriver, InstancePowerState


@register
class CpuDiagnostics(WireObject):
    """Time used by one virtual CPU."""

    VERSION = "1.0"
    fields: Any = {
        "id": t.Integer(nullable=True),
        "time": t.Integer(nullable=True),
        "utilisation": t.Integer(nullable=True),
    }


@register
class DiskDiagnostics(WireObject):
    """Counters of one disk."""

    VERSION = "1.0"
    fields: Any = {
        "errors_count": t.Integer(nullable=True),
        "read_bytes": t.Integer(nullable=True),
        "read_requests": t.Integer(nullable=True),
        "write_bytes": t.Integer(nullable=True),
        "write_requests": t.Integer(nullable=True),
    }


@register
class MemoryDiagnostics(WireObject):
    """Memory of a guest."""

    VERSION = "1.0"
    fields: Any = {
        "maximum": t.Integer(nullable=True),
        "used": t.Integer(nullable=True),
    }


@register
class Diagnostics(Ephemeral):
    """State and counters of a running guest."""

    VERSION = "1.0"
    fields: Any = {
        "config_drive": t.Boolean(),
        "cpu_details": t.Objects("CpuDiagnostics", default=[]),
        "disk_details": t.Objects("DiskDiagnostics", default=[]),
        "driver": t.Choice(HypervisorDriver),
        "hypervisor": t.String(nullable=True),
        "hypervisor_os": t.String(nullable=True),
        "memory_details": t.Object("MemoryDiagnostics", default=MemoryDiagnostics()),
        "nic_details": t.Objects("NicDiagnostics", default=[]),
        "num_cpus": t.Integer(),
        "num_disks": t.Integer(),
        "num_nics": t.Integer(),
        "state": t.Choice(InstancePowerState),
        "uptime": t.Integer(nullable=True),
    }

    def __init__(self, context: Any = None, **kwargs: Any) -> None:
        super().__init__(context=context, **kwargs)
        self._count()

    def _count(self) -> None:
        self.num_cpus = len(self.cpu_details)
        self.num_nics = len(self.nic_details)
        self.num_disks = len(self.disk_details)

    def add_cpu(self, **counters: Any) -> None:
        """Add the counters of a virtual CPU: id, time (ns), utilisation (%)."""
        self.cpu_details.append(CpuDiagnostics(**_whole(CpuDiagnostics, counters)))
        self._count()

    def add_nic(self, **counters: Any) -> None:
        """Add the counters of an interface: mac_address, rx_octets, tx_drop ..."""
        self.nic_details.append(NicDiagnostics(**_whole(NicDiagnostics, counters)))
        self._count()

    def add_disk(self, **counters: Any) -> None:
        """Add the counters of a disk: read_bytes, write_requests ..."""
        self.disk_details.append(DiskDiagnostics(**_whole(DiskDiagnostics, counters)))
        self._count()


@register
class NicDiagnostics(WireObject):
    """Counters of one network interface."""

    VERSION = "1.0"
    fields: Any = {
        "mac_address": t.MACAddress(nullable=True),
        "rx_drop": t.Integer(nullable=True),
        "rx_errors": t.Integer(nullable=True),
        "rx_octets": t.Integer(nullable=True),
        "rx_packets": t.Integer(nullable=True),
        "rx_rate": t.Integer(nullable=True),
        "tx_drop": t.Integer(nullable=True),
        "tx_errors": t.Integer(nullable=True),
        "tx_octets": t.Integer(nullable=True),
        "tx_packets": t.Integer(nullable=True),
        "tx_rate": t.Integer(nullable=True),
    }


def _whole(cls: type[WireObject], counters: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(cls.fields) | counters
