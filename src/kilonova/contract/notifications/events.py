"""The event types of versioned notifications: which notification each is, who says it, how urgent it is.

Source: Nova's notification samples, one per event type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """`notification` is a class of this package, `publishers` the services that may say it."""

    notification: str
    publishers: tuple[str, ...]
    priority: str


API = ("nova-api",)
COMPUTE = ("nova-compute",)
CONDUCTOR = ("nova-conductor",)
SCHEDULER = ("nova-scheduler",)
API_OR_COMPUTE = API + COMPUTE

_TABLE: tuple[tuple[str, tuple[str, ...], Mapping[str, str]], ...] = (
    (
        "AggregateNotification",
        API,
        {
            "aggregate.add_host": "start end",
            "aggregate.cache_images": "start end",
            "aggregate.create": "start end",
            "aggregate.delete": "start end",
            "aggregate.remove_host": "start end",
            "aggregate.update_metadata": "start end",
            "aggregate.update_prop": "start end",
        },
    ),
    (
        "AggregateCacheNotification",
        CONDUCTOR,
        {
            "aggregate.cache_images": "progress",
        },
    ),
    (
        "ExceptionNotification",
        API,
        {
            "compute.exception": "",
        },
    ),
    (
        "ComputeTaskNotification",
        CONDUCTOR,
        {
            "compute_task.build_instances": "error",
            "compute_task.migrate_server": "error",
            "compute_task.rebuild_server": "error",
        },
    ),
    (
        "FlavorNotification",
        API,
        {
            "flavor.create": "",
            "flavor.delete": "",
            "flavor.update": "",
        },
    ),
    (
        "InstanceCreateNotification",
        COMPUTE,
        {
            "instance.create": "start end error",
        },
    ),
    (
        "InstanceActionNotification",
        API_OR_COMPUTE,
        {
            "instance.delete": "start end",
        },
    ),
    (
        "InstanceActionNotification",
        API,
        {
            "instance.evacuate": "",
            "instance.lock": "",
            "instance.unlock": "",
        },
    ),
    (
        "InstanceExistsNotification",
        COMPUTE,
        {
            "instance.exists": "",
        },
    ),
    (
        "InstanceActionNotification",
        COMPUTE,
        {
            "instance.interface_attach": "start end error",
            "instance.interface_detach": "start end",
            "instance.live_migration_abort": "start end",
            "instance.live_migration_force_complete": "start end",
            "instance.live_migration_post": "start end",
            "instance.live_migration_post_dest": "start end",
            "instance.live_migration_pre": "start end",
            "instance.live_migration_rollback": "start end",
            "instance.live_migration_rollback_dest": "start end",
            "instance.pause": "start end",
            "instance.power_off": "start end",
            "instance.power_on": "start end",
            "instance.reboot": "start end error",
            "instance.resize": "start end error",
            "instance.resize_confirm": "start end",
            "instance.resize_finish": "start end",
            "instance.resize_revert": "start end",
            "instance.restore": "start end",
            "instance.resume": "start end",
            "instance.shelve": "start end",
            "instance.shelve_offload": "start end",
            "instance.shutdown": "start end",
            "instance.soft_delete": "start end",
            "instance.suspend": "start end",
            "instance.trigger_crash_dump": "start end",
            "instance.unpause": "start end",
            "instance.unrescue": "start end",
            "instance.unshelve": "start end",
        },
    ),
    (
        "InstanceActionRebuildNotification",
        COMPUTE,
        {
            "instance.rebuild": "start end error",
        },
    ),
    (
        "InstanceActionRebuildNotification",
        CONDUCTOR,
        {
            "instance.rebuild_scheduled": "",
        },
    ),
    (
        "InstanceActionRescueNotification",
        COMPUTE,
        {
            "instance.rescue": "start end",
        },
    ),
    (
        "InstanceActionResizePrepNotification",
        COMPUTE,
        {
            "instance.resize_prep": "start end",
        },
    ),
    (
        "InstanceActionShareNotification",
        API,
        {
            "instance.share_attach": "start end error",
            "instance.share_detach": "start end error",
        },
    ),
    (
        "InstanceActionSnapshotNotification",
        COMPUTE,
        {
            "instance.snapshot": "start end",
        },
    ),
    (
        "InstanceUpdateNotification",
        API_OR_COMPUTE,
        {
            "instance.update": "",
        },
    ),
    (
        "InstanceActionVolumeNotification",
        COMPUTE,
        {
            "instance.volume_attach": "start end error",
            "instance.volume_detach": "start end",
        },
    ),
    (
        "InstanceActionVolumeSwapNotification",
        COMPUTE,
        {
            "instance.volume_swap": "start end error",
        },
    ),
    (
        "KeypairNotification",
        API,
        {
            "keypair.create": "start end",
            "keypair.delete": "start end",
            "keypair.import": "start end",
        },
    ),
    (
        "LibvirtErrorNotification",
        COMPUTE,
        {
            "libvirt.connect": "error",
        },
    ),
    (
        "MetricsNotification",
        COMPUTE,
        {
            "metrics.update": "",
        },
    ),
    (
        "SelectDestinationsNotification",
        SCHEDULER,
        {
            "scheduler.select_destinations": "start end",
        },
    ),
    (
        "ServerGroupNotification",
        API,
        {
            "server_group.add_member": "",
            "server_group.create": "",
            "server_group.delete": "",
        },
    ),
    (
        "ServiceStatusNotification",
        COMPUTE,
        {
            "service.create": "",
            "service.delete": "",
            "service.update": "",
        },
    ),
    (
        "VolumeUsageNotification",
        COMPUTE,
        {
            "volume.usage": "",
        },
    ),
)
"""Notification, publishers, event -> its phases."""


def _events() -> Iterator[tuple[str, Event]]:
    for notification, publishers, phases_of in _TABLE:
        for name, phases in phases_of.items():
            for phase in phases.split() or [""]:
                bad = phase == "error" or name.endswith(".exception")
                full = f"{name}.{phase}" if phase else name
                yield full, Event(notification, publishers, "ERROR" if bad else "INFO")


EVENTS: Mapping[str, Event] = dict(_events())
"""Event type -> what is said under it."""
