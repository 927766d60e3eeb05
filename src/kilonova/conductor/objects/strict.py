"""[kilonova] strict_hosts: what a conductor does for a compute host where all hosts are ours.

Of the methods in `table` those here, each under a rule about the host that says it sends. What that protects from, and
what not: docs/decisions/0013-who-may-act-on-objects.md.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg

from kilonova.conductor.objects import table
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.db.objects import standing

LOG = logging.getLogger(__name__)

Said = Mapping[str, Any]
"""The arguments of the method by the names that its function gives them, defaults too; an object is one of them."""

Rule = Callable[[Any, str, Said], bool]
"""Whether the host may, by its transaction."""

Rules = Mapping[str, Mapping[str, Rule]]


def _always(tx: Any, host: str, said: Said) -> bool:
    return True


def _of_itself(tx: Any, host: str, said: Said) -> bool:
    return bool(said["host"] == host)


def _of_its_server(tx: Any, host: str, said: Said) -> bool:
    return standing.may_read(tx, host, [said["instance_uuid"]])


# Instances


def _by_uuid(tx: Any, host: str, said: Said) -> bool:
    return standing.may_read(tx, host, [said["uuid"]])


def _by_uuids(tx: Any, host: str, said: Said) -> bool:
    return standing.may_read(tx, host, said["instance_uuids"])


def _by_filters(tx: Any, host: str, said: Said) -> bool:
    """Its own, those it has to do with, and without what belongs to them any whose uuid it knows: members of a server
    group are asked for where they are.
    """
    filters, attrs = said["filters"], said["expected_attrs"]
    if filters.get("host") == host:
        return True
    uuids = filters.get("uuid")
    if uuids is None:
        return False
    return attrs == [] or standing.may_read(tx, host, [uuids] if isinstance(uuids, str) else uuids)


def _save_instance(tx: Any, host: str, said: Said) -> bool:
    instance: objects.Instance = said["instance"]
    return standing.may_change(tx, host, instance.uuid) and _stays(tx, host, instance)


def _stays(tx: Any, host: str, instance: objects.Instance) -> bool:
    """Whether the server comes to this host or leaves it, if it is moved at all, and nothing of another goes along."""
    changes = instance.obj_get_changes()
    cache, number, name = changes.get("info_cache"), changes.get("compute_id"), changes.get("node")
    return (
        {changes.get("host"), changes.get("launched_on")} <= {None, host}
        and (number is None or standing.owns_node(tx, host, number))
        and (name is None or standing.has_node(tx, host, name))
        and (cache is None or cache.instance_uuid == instance.uuid)
    )


def _destroy_instance(tx: Any, host: str, said: Said) -> bool:
    return not said["hard_delete"] and standing.has(tx, host, said["instance"].uuid)


# What belongs to instances


def _save_cache(tx: Any, host: str, said: Said) -> bool:
    return standing.may_change(tx, host, said["cache"].instance_uuid)


def _create_interface(tx: Any, host: str, said: Said) -> bool:
    return standing.may_change(tx, host, said["vif"].instance_uuid)


def _forget_interfaces(tx: Any, host: str, said: Said) -> bool:
    return standing.may_change(tx, host, said["instance_uuid"])


def _save_mapping(tx: Any, host: str, said: Said) -> bool:
    mapping: objects.BlockDeviceMapping = said["bdm"]
    server = standing.server_of_mapping(tx, mapping.id)
    given = mapping.obj_get_changes().get("instance_uuid", server)
    return server is None or (given == server and standing.may_change(tx, host, server))


def _create_fault(tx: Any, host: str, said: Said) -> bool:
    fault: objects.InstanceFault = said["fault"]
    return bool(fault.host == host) and standing.may_read(tx, host, [fault.instance_uuid])


def _start_event(tx: Any, host: str, said: Said) -> bool:
    return bool(said["host"] == host) and standing.may_change(tx, host, said["instance_uuid"])


def _finish_event(tx: Any, host: str, said: Said) -> bool:
    return standing.began(tx, host, said["instance_uuid"], said["event_name"])


def _save_migration(tx: Any, host: str, said: Said) -> bool:
    migration: objects.Migration = said["migration"]
    return migration.obj_what_changed() <= {"status"} and standing.is_end_of(tx, host, migration.id)


# The host


def _create_service(tx: Any, host: str, said: Said) -> bool:
    service: objects.Service = said["service"]
    return bool((service.host, service.binary) == (host, standing.COMPUTE))


def _save_service(tx: Any, host: str, said: Said) -> bool:
    """Whether it is disabled, or forced down, is for operators to say."""
    service: objects.Service = said["service"]
    return service.obj_what_changed() <= {"report_count", "version"} and standing.owns_service(tx, host, service.id)


def _create_node(tx: Any, host: str, said: Said) -> bool:
    node: objects.ComputeNode = said["node"]
    return bool(node.host == host) and standing.owns_service(tx, host, node.service_id)


def _save_node(tx: Any, host: str, said: Said) -> bool:
    node: objects.ComputeNode = said["node"]
    changes = node.obj_get_changes()
    service = changes.get("service_id")
    return (
        changes.get("host", host) == host
        and (service is None or standing.owns_service(tx, host, service))
        and standing.owns_node(tx, host, node.id)
    )


METHODS: Rules = {
    "BlockDeviceMapping": {"save": _save_mapping},
    "ComputeNode": {"create": _create_node, "save": _save_node},
    "Instance": {"destroy": _destroy_instance, "save": _save_instance},
    "InstanceFault": {"create": _create_fault},
    "InstanceGroup": {"get_hosts": _always},
    "InstanceInfoCache": {"save": _save_cache},
    "Migration": {"save": _save_migration},
    "Service": {"create": _create_service, "save": _save_service},
    "VirtualInterface": {"create": _create_interface},
}
"""Methods of an object that is sent along."""

CLASS_METHODS: Rules = {
    "BlockDeviceMapping": {"get_by_volume_and_instance": _of_its_server},
    "BlockDeviceMappingList": {"get_by_instance_uuid": _of_its_server, "get_by_instance_uuids": _by_uuids},
    # Of any: whose node the file of its identity names is what a host that was renamed finds out.
    "ComputeNodeList": {"get_all_by_host": _of_itself, "get_all_by_uuids": _always},
    "Instance": {"get_by_uuid": _by_uuid},
    "InstanceActionEvent": {"event_finish_with_failure": _finish_event, "event_start": _start_event},
    "InstanceGroup": {"get_by_instance_uuid": _always},
    "InstanceInfoCache": {"get_by_instance_uuid": _of_its_server},
    "InstanceList": {
        "get_by_filters": _by_filters,
        "get_by_host": _of_itself,
        "get_by_host_and_node": _of_itself,
        "get_uuids_by_host": _of_itself,
    },
    "MigrationList": {"get_in_progress_and_error": _of_itself},
    "Service": {"get_by_host_and_binary": _of_itself, "get_minimum_version": _always},
    "VirtualInterface": {"delete_by_instance_uuid": _forget_interfaces},
    "VirtualInterfaceList": {"get_by_instance_uuid": _of_its_server},
}
"""Methods of a class."""


class Gate:
    """Before a function of the table is called. Off unless the option says otherwise, also while the service runs."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def around(
        self, ctxt: RequestContext, rules: Rules, name: str, method: str, served: table.Served
    ) -> Callable[..., Any]:
        """The function, under the rule. Raises PolicyNotAuthorized, and so does what it returns.

        What the record itself objects to in a write (somebody else has the server by now) is said first: a host that
        comes late learns that, as everywhere.
        """
        fn = served.fn
        if not self._conf.kilonova.strict_hosts:
            return fn
        host, rule = ctxt.sending_host, rules.get(name, {}).get(method)
        if not isinstance(host, str) or rule is None:
            raise _refusal(host, name, method)
        signature = inspect.signature(fn)

        @functools.wraps(fn)
        def watched(tx: Any, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(tx, *args, **kwargs)
            bound.apply_defaults()
            allowed = rule(tx, host, bound.arguments)
            result = fn(tx, *args, **kwargs) if allowed or served.write else None
            if not allowed:
                raise _refusal(host, name, method)
            return result

        return watched


def _refusal(host: Any, name: str, method: str) -> Exception:
    who = f"host {host!r}" if host else "a sender that names no host, as hosts of Nova's and older ones of ours do,"
    LOG.warning("%s is refused %s.%s by strict_hosts", who, name, method)
    return exceptions.PolicyNotAuthorized(action=f"{name}.{method}")
