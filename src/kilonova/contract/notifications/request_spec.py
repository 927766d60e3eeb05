"""Notifications of the choice of hosts."""

from __future__ import annotations

from typing import Any

from kilonova.contract.notifications.base import Notification, Payload, declare, taken
from kilonova.contract.objects import types as t
from kilonova.contract.objects.enums import (
    CPUAllocationPolicy,
    CPUEmulatorThreadsPolicy,
    CPUThreadAllocationPolicy,
    PCINUMAAffinityPolicy,
)


@declare
class CellMappingPayload(Payload):
    """A cell."""

    VERSION = "2.0"
    fields: Any = {
        "uuid": t.UUID(),
        "disabled": t.Boolean(default=False),
        "name": t.String(nullable=True),
    }
    SOURCES = taken("cell", fields)


@declare
class DestinationPayload(Payload):
    """Where a server was asked to go."""

    VERSION = "1.0"
    fields: Any = {
        "aggregates": t.ListOfStrings(nullable=True, default=None),
        "cell": t.Object("CellMappingPayload", nullable=True),
        "host": t.String(),
        "node": t.String(nullable=True),
    }
    SOURCES = taken("destination", fields, but={"cell", "host", "node"})


@declare
class InstanceNUMACellPayload(Payload):
    """A NUMA cell of a guest."""

    VERSION = "1.2"
    fields: Any = {
        "id": t.Integer(),
        "cpu_pinning_raw": t.DictOfIntegers(nullable=True),
        "cpu_policy": t.Choice(CPUAllocationPolicy, nullable=True),
        "cpu_thread_policy": t.Choice(CPUThreadAllocationPolicy, nullable=True),
        "cpu_topology": t.Object("VirtCPUTopologyPayload", nullable=True),
        "cpuset": t.SetOfIntegers(),
        "cpuset_reserved": t.SetOfIntegers(nullable=True),
        "memory": t.Integer(),
        "pagesize": t.Integer(nullable=True),
        "pcpuset": t.SetOfIntegers(),
    }
    SOURCES = taken("numa_cell", fields, but={"cpu_topology"})


@declare
class InstanceNUMATopologyPayload(Payload):
    """The NUMA cells of a guest."""

    VERSION = "1.0"
    fields: Any = {
        "cells": t.Objects("InstanceNUMACellPayload"),
        "emulator_threads_policy": t.Choice(CPUEmulatorThreadsPolicy, nullable=True),
        "instance_uuid": t.UUID(),
    }
    SOURCES = taken("numa_topology", fields, but={"cells"})


@declare
class InstancePCIRequestPayload(Payload):
    """PCI devices of one kind that a server asks for."""

    VERSION = "1.1"
    fields: Any = {
        "alias_name": t.String(nullable=True),
        "count": t.Integer(),
        "numa_policy": t.Choice(PCINUMAAffinityPolicy, nullable=True),
        "request_id": t.UUID(nullable=True),
        "spec": t.ListOfDictOfNullableStrings(),
    }
    SOURCES = taken("pci_request", fields)


@declare
class InstancePCIRequestsPayload(Payload):
    """All PCI devices that a server asks for."""

    VERSION = "1.0"
    fields: Any = {
        "instance_uuid": t.UUID(),
        "requests": t.Objects("InstancePCIRequestPayload"),
    }
    SOURCES = taken("pci_requests", fields, but={"requests"})


@declare
class RequestSpecPayload(Payload):
    """What the hosts are chosen for."""

    VERSION = "1.1"
    fields: Any = {
        "availability_zone": t.String(nullable=True),
        "flavor": t.Object("FlavorPayload", nullable=True),
        "force_hosts": t.String(nullable=True),
        "force_nodes": t.String(nullable=True),
        "ignore_hosts": t.ListOfStrings(nullable=True),
        "image": t.Object("ImageMetaPayload", nullable=True),
        "image_meta": t.Object("ImageMetaPayload", nullable=True),
        "instance_group": t.Object("ServerGroupPayload", nullable=True),
        "instance_uuid": t.UUID(),
        "num_instances": t.Integer(default=1),
        "numa_topology": t.Object("InstanceNUMATopologyPayload", nullable=True),
        "pci_requests": t.Object("InstancePCIRequestsPayload", nullable=True),
        "project_id": t.String(nullable=True),
        "requested_destination": t.Object("DestinationPayload", nullable=True),
        "retry": t.Object("SchedulerRetriesPayload", nullable=True),
        "scheduler_hints": t.DictOfListOfStrings(nullable=True),
        "security_groups": t.ListOfStrings(),
        "user_id": t.String(nullable=True),
    }
    SOURCES = taken(
        "request_spec",
        fields,
        but={
            "flavor",
            "force_hosts",
            "force_nodes",
            "image",
            "image_meta",
            "instance_group",
            "numa_topology",
            "pci_requests",
            "requested_destination",
            "retry",
            "security_groups",
        },
    )


@declare
class SchedulerRetriesPayload(Payload):
    """Hosts that were tried before."""

    VERSION = "1.0"
    fields: Any = {
        "hosts": t.ListOfStrings(),
        "num_attempts": t.Integer(),
    }
    SOURCES = taken("retry", fields, but={"hosts"})


@declare
class SelectDestinationsNotification(Notification):
    """The scheduler began or ended a choice."""

    VERSION = "1.0"
    fields: Any = {
        "payload": t.Object("RequestSpecPayload"),
    }


@declare
class VirtCPUTopologyPayload(Payload):
    """Sockets, cores and threads of a guest."""

    VERSION = "1.0"
    fields: Any = {
        "cores": t.Integer(nullable=True, default=1),
        "sockets": t.Integer(nullable=True, default=1),
        "threads": t.Integer(nullable=True, default=1),
    }
    SOURCES = taken("virt_cpu_topology", fields)
