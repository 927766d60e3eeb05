"""Run by the peer's Python: its filters and weighers on hosts and requests given as JSON on standard input.

Answers {"filters": {name: [[bool per host] per request]}, "weights": [[[host, weight] in order] per request]}.
"""

import json
import sys
from datetime import UTC, datetime

import nova.conf
from nova import context, objects
from nova.objects import base
from nova.scheduler import filters, host_manager, utils, weights

nova.conf.CONF([], project="nova", default_config_files=[])
objects.register_all()
context.CELL_CACHE = {}


class Aggregate:
    def __init__(self, metadata):
        self.metadata = metadata


def host_state(row):
    state = host_manager.HostState(row["host"], row["hypervisor_hostname"], row["cell_uuid"])
    node = objects.ComputeNode()
    names = (
        "uuid", "host", "hypervisor_hostname", "memory_mb", "free_ram_mb", "local_gb", "local_gb_used", "free_disk_gb",
        "disk_available_least", "vcpus", "vcpus_used", "cpu_allocation_ratio", "ram_allocation_ratio",
        "disk_allocation_ratio", "hypervisor_type", "hypervisor_version", "host_ip", "cpu_info", "metrics",
        "numa_topology",
    )  # fmt: skip
    for name in names:
        setattr(node, name, row[name])
    node.stats = json.loads(row["stats"])
    node.supported_hv_specs = [objects.HVSpec.from_list(each) for each in json.loads(row["supported_instances"])]
    node.pci_device_pools = objects.PciDevicePoolList(objects=[])
    node.updated_at = datetime.now(UTC)
    service = dict(row["service"])
    for name in ("last_seen_up", "created_at"):
        service[name] = datetime.now(UTC).replace(tzinfo=None)
    state.update(node, service, [Aggregate(each) for each in row["aggregates"]], {})
    state.instances = {uuid: objects.Instance(uuid=uuid) for uuid in row["instances"]}
    state.cpu_info = json.loads(row["cpu_info"]) if row["parsed_cpu_info"] else row["cpu_info"]
    return state


def main():
    asked = json.load(sys.stdin)
    for group, options in asked["options"].items():
        for name, value in options.items():
            nova.conf.CONF.set_override(name, value, group)
    hosts = [host_state(row) for row in asked["hosts"]]
    specs = [base.NovaObject.obj_from_primitive(each) for each in asked["specs"]]
    classes = {cls.__name__: cls for cls in filters.HostFilterHandler().get_all_classes()}
    answer = {"filters": {}, "weights": []}
    for name in asked["filters"]:
        judge = classes[name]()
        answer["filters"][name] = [[bool(judge.host_passes(host, spec)) for host in hosts] for spec in specs]
    handler = weights.HostWeightHandler()
    weighers = [cls() for cls in handler.get_all_classes() if cls.__name__ not in asked["without"]]
    for spec in specs:
        ordered = handler.get_weighed_objects(weighers, hosts, spec)
        answer["weights"].append([[each.obj.host, each.weight] for each in ordered])
    for spec in specs:
        answer.setdefault("queries", []).append(utils.ResourceRequest.from_request_spec(spec).to_querystring())
    json.dump(answer, sys.stdout)


main()
