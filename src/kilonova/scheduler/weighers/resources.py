"""Free memory, CPUs and disk; PCI devices; operations and servers; hypervisor version; failed builds."""

from __future__ import annotations

from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host
from kilonova.scheduler.weighers.base import Weigher

MAX_DEVICES = 100


class RAMWeigher(Weigher):
    option = key = "ram_weight_multiplier"
    minimum = 0.0

    def weigh(self, host: Host, request: Request) -> float:
        return float(host.free_ram_mb)


class CPUWeigher(Weigher):
    option = key = "cpu_weight_multiplier"
    minimum = 0.0

    def weigh(self, host: Host, request: Request) -> float:
        return float(host.vcpus_total * host.cpu_allocation_ratio - host.vcpus_used)


class DiskWeigher(Weigher):
    option = key = "disk_weight_multiplier"
    minimum = 0.0

    def weigh(self, host: Host, request: Request) -> float:
        return float(host.free_disk_mb)


class IoOpsWeigher(Weigher):
    option = key = "io_ops_weight_multiplier"
    minimum = 0.0

    def weigh(self, host: Host, request: Request) -> float:
        return float(host.num_io_ops)


class NumInstancesWeigher(Weigher):
    option = key = "num_instances_weight_multiplier"

    def weigh(self, host: Host, request: Request) -> float:
        return float(host.num_instances)


class HypervisorVersionWeigher(Weigher):
    option = key = "hypervisor_version_weight_multiplier"

    def weigh(self, host: Host, request: Request) -> float:
        return float(host.hypervisor_version or 0)


class BuildFailureWeigher(Weigher):
    option = key = "build_failure_weight_multiplier"
    sign = -1.0

    def weigh(self, host: Host, request: Request) -> float:
        return float(host.failed_builds)


class PCIWeigher(Weigher):
    """Few free devices weigh more, so that hosts with many stay free for who needs them."""

    option = key = "pci_weight_multiplier"

    def weigh(self, host: Host, request: Request) -> float:
        free = sum(int(pool.get("count", 0)) for pool in host.pci_pools)
        return float(MAX_DEVICES - min(free, MAX_DEVICES - 1))
