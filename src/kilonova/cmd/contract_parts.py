"""What the scheduler, the drivers and the loops declare, in the shape of the contract's files."""

from __future__ import annotations

import dataclasses
from typing import Any

from oslo_config import cfg

from kilonova import conf as options
from kilonova.cmd.contract_wire import field_fact
from kilonova.contract import objects
from kilonova.contract.objects import image_form


def export_image_properties() -> dict[str, Any]:
    properties = objects.load("ImageMetaProps").fields
    return {
        "image_properties": {name: field_fact(kind) for name, kind in properties.items()},
        "legacy_image_property_map": dict(image_form.FORMER_NAMES),
    }


def export_filters() -> dict[str, Any]:
    from kilonova.scheduler import plugins, prefilters

    return {
        "filters": {
            name: {
                "run_filter_once_per_request": cls.once,
                "run_on_rebuild": cls.on_rebuild,
                "aggregate_keys": list(cls.keys),
            }
            for name, cls in plugins.filter_classes().items()
        },
        "weighers": {name: {"aggregate_keys": [cls.key]} for name, cls in plugins.weigher_classes().items()},
        "request_filters_in_order": [{"name": each.__name__} for each in prefilters.ORDER],
        "enabled_filters_default": list(options.load([]).filter_scheduler.enabled_filters),
    }


def export_virt() -> dict[str, Any]:
    from kilonova.compute.provider import CAPABILITY_TRAITS
    from kilonova.virt.driver import GuestChange

    event = objects.load("InstanceExternalEvent").fields
    names, statuses = (list(event[field]._type.valid_values) for field in ("name", "status"))
    return {
        "capability_traits": dict(CAPABILITY_TRAITS),
        "external_events": {"names": names, "statuses": statuses},
        "lifecycle_events": {f"EVENT_LIFECYCLE_{change.name}": int(change) for change in GuestChange},
    }


@dataclasses.dataclass(frozen=True)
class Duty:
    """A periodic task of Nova's: `timer` is ours that does it, `option` the spacing that the timer obeys.

    `zero_is_never`: Nova switches the task off by 0 as well as by less.
    """

    task: str
    timer: str
    option: str | None = None
    manager: str = "ComputeManager"
    at_start: bool = False
    zero_is_never: bool = False


DUTIES = (
    Duty("_check_instance_build_time", "overdue_builds"),
    Duty(
        "_cleanup_running_deleted_instances", "unknown_guests", "running_deleted_instance_poll_interval", at_start=True
    ),
    Duty("_heal_instance_info_cache", "network_info", "heal_instance_info_cache_interval", zero_is_never=True),
    Duty("_run_pending_deletes", "leftover_files", "instance_delete_interval"),
    Duty("_sync_power_states", "power_sync", "sync_power_state_interval", at_start=True),
    Duty("_sync_scheduler_instance_info", "scheduler_sync", "scheduler_instance_sync_interval"),
    Duty("update_available_resource", "resources", "update_resources_interval"),
    Duty(
        "_discover_hosts_in_cells",
        "discover_hosts",
        "scheduler.discover_hosts_in_cells_interval",
        manager="SchedulerManager",
        at_start=True,
    ),
)
"""Nova's periodic tasks whose duty a timer of ours does."""


def export_periodic_tasks() -> dict[str, Any]:
    conf = options.load([])
    return {
        "tasks": [
            {
                "manager": duty.manager,
                "name": duty.task,
                "spacing": _spacing(conf, duty),
                "run_immediately": duty.at_start,
            }
            for duty in DUTIES
        ]
    }


def _spacing(conf: cfg.ConfigOpts, duty: Duty) -> dict[str, Any] | None:
    if duty.option is None:
        return None
    if duty.zero_is_never:
        return {"option": f"{duty.option} if CONF.{duty.option} != 0 else -1"}
    group, _, name = duty.option.rpartition(".")
    default = conf[group][name] if group else conf[name]
    return {"option": f"{group or 'DEFAULT'}.{name}", "default": default}
