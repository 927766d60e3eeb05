"""What is said to a host about why it was chosen: filter properties, tries, limits, who provides what."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from kilonova.base.outward import without_paths
from kilonova.contract import exceptions, objects

LOG = logging.getLogger(__name__)

Properties = dict[str, Any]


def properties(spec: objects.RequestSpec) -> Properties:
    """The filter properties in their old form of a dictionary, as compute hosts take them."""
    made: Properties = {}
    for name in ("ignore_hosts", "force_hosts", "force_nodes", "requested_destination"):
        if value := spec.get(name):
            made[name] = value
    if retry := spec.get("retry"):
        hosts = [[each.host, each.hypervisor_hostname] for each in retry.hosts.objects]
        made["retry"] = {"num_attempts": retry.num_attempts, "hosts": hosts}
    if limits := spec.get("limits"):
        made["limits"] = limits_dict(limits)
    if group := spec.get("instance_group"):
        made |= _group(group)
    if hints := spec.get("scheduler_hints"):
        made["scheduler_hints"] = {name: _hint(values) for name, values in hints.items()}
    return made


def _hint(values: Sequence[str]) -> Any:
    return values[0] if len(values) == 1 else values


def _group(group: objects.InstanceGroup) -> Properties:
    policies = group.get("policies") or ([group.policy] if group.get("policy") else [])
    return {
        "group_updated": True,
        "group_hosts": set(group.get("hosts") or ()),
        "group_policies": set(policies),
        "group_members": set(group.get("members") or ()),
        "group_uuid": group.get("uuid"),
    }


def limits_dict(limits: objects.SchedulerLimits | None) -> Properties:
    """Limits as a dictionary with those that are set."""
    if limits is None:
        return {}
    named = {name: limits.get(name) for name in ("numa_topology", "vcpu", "disk_gb", "memory_mb")}
    return {name: value for name, value in named.items() if value is not None}


def last_reason(made: Properties) -> str | None:
    """Why the last host gave the server back, fit for its user: a peer's host may name its files."""
    reason = (made.get("retry") or {}).get("exc_reason")
    return without_paths(str(reason)) if reason else None


def count_try(made: Properties, uuid: str, most: int) -> int:
    """Count one more try; returns its number (0: tries elsewhere are switched off).

    Raises MaxRetriesExceeded when there were `most` already.
    """
    if most == 1 or len(made.get("force_hosts") or ()) == 1 or len(made.get("force_nodes") or ()) == 1:
        return 0
    retry = made.setdefault("retry", {"num_attempts": 0, "hosts": []})
    retry["num_attempts"] += 1
    reason = last_reason(made)
    retry.pop("exc_reason", None)
    if retry.get("exc") and retry["hosts"]:
        LOG.info("server %s failed on host %s: %s", uuid, retry["hosts"][-1], retry["exc"])
    if retry["num_attempts"] > most:
        text = f"Exceeded max scheduling attempts {most} for instance {uuid}. Last exception: {reason}"
        raise exceptions.MaxRetriesExceeded(reason=text)
    return int(retry["num_attempts"])


def point_at(made: Properties, chosen: objects.Selection) -> None:
    """Note the chosen host among those tried, and the limits found for it."""
    if retry := made.get("retry"):
        retry["hosts"].append([chosen.service_host, chosen.nodename])
    if not made.get("force_hosts"):
        made["limits"] = limits_dict(chosen.get("limits"))


def map_providers(spec: objects.RequestSpec, chosen: objects.Selection) -> None:
    """Say in each resource group of the request (ports with a guaranteed bandwidth, say) who provides for it."""
    groups = spec.get("requested_resources")
    if not groups:
        return
    mappings: Mapping[str, list[str]] = json.loads(chosen.allocation_request)["mappings"]
    for group in groups:
        group.provider_uuids = mappings[group.requester_id]
