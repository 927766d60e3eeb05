"""Older forms of arguments: what a value of today was on the wire before its object existed.

Source: Nova's RPC interfaces, compute up to 5.0, scheduler up to 4.2, compute_task up to 1.8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import netaddr

from kilonova.contract import objects

_OF_THE_SERVER = ("numa_topology", "pci_requests", "project_id", "user_id", "availability_zone")
_OF_THE_FLAVOR = ("root_gb", "ephemeral_gb", "memory_mb", "vcpus")
_OF_A_NETWORK = ("network_id", "address", "port_id", "pci_request_id", "arq_uuid", "device_profile")
_AS_THEY_ARE = ("ignore_hosts", "force_hosts", "force_nodes", "requested_destination")


def request_spec_dict(spec: objects.RequestSpec) -> dict[str, Any]:
    """What is asked for, as a dict; the flavor in it is an object still."""
    flavor, image = _value(spec, "flavor"), _value(spec, "image")
    return {
        "num_instances": spec.num_instances if spec.obj_attr_is_set("num_instances") else 1,
        "image": _plain(image) if image else {},
        "instance_properties": _server(spec, flavor),
        "instance_type": flavor if flavor is not None else {},
    }


def filter_properties_dict(spec: objects.RequestSpec) -> dict[str, Any]:
    """What the choice of a host depends on besides."""
    found = {name: value for name in _AS_THEY_ARE if (value := _value(spec, name))}
    if retry := _value(spec, "retry"):
        hosts = [[one.host, one.hypervisor_hostname] for one in retry.hosts]
        found["retry"] = {"num_attempts": retry.num_attempts, "hosts": hosts}
    if limits := _value(spec, "limits"):
        found["limits"] = {name: value for name in limits.fields if (value := _value(limits, name)) is not None}
    if group := _value(spec, "instance_group"):
        found |= {
            "group_updated": True,
            "group_hosts": set(group.hosts),
            "group_policies": {group.policy},
            "group_members": set(group.members),
            "group_uuid": group.uuid,
        }
    if hints := _value(spec, "scheduler_hints"):
        found["scheduler_hints"] = {name: said[0] if len(said) == 1 else said for name, said in hints.items()}
    return found


def network_tuples(requests: objects.NetworkRequestList | None) -> list[tuple[Any, ...]] | None:
    """The fields of each request in order, addresses as text."""
    if requests is None:
        return None
    return [tuple(_text(_value(one, name)) for name in _OF_A_NETWORK) for one in requests.objects]


def nothing(value: object) -> None:
    """Older servers ask for an argument that says nothing any more."""


FORMS: dict[str, Callable[[Any], Any]] = {
    form.__name__: form for form in (request_spec_dict, filter_properties_dict, network_tuples, nothing)
}
"""By the names that the declared interfaces use."""


def _value(thing: Any, name: str) -> Any:
    return getattr(thing, name) if thing.obj_attr_is_set(name) else None


def _server(spec: objects.RequestSpec, flavor: objects.Flavor | None) -> dict[str, Any]:
    found = {name: getattr(spec, name) for name in _OF_THE_SERVER if spec.obj_attr_is_set(name)}
    if spec.obj_attr_is_set("instance_uuid"):
        found["uuid"] = spec.instance_uuid
    return found | {name: getattr(flavor, name) for name in _OF_THE_FLAVOR if flavor is not None}


def _plain(value: Any) -> Any:
    """An object's fields as a dict, all the way down."""
    if isinstance(value, objects.WireObject):
        if "objects" in value.fields:
            return [_plain(one) for one in value.objects]
        return {name: _plain(getattr(value, name)) for name in value.fields if value.obj_attr_is_set(name)}
    return _text(value)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, netaddr.IPAddress | netaddr.IPNetwork) else value
