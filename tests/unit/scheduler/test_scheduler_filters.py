"""Every filter: when a host will do, and the reason when it will not."""

from __future__ import annotations

import dataclasses
import datetime
import json

import pytest
from tests.unit.scheduler import make

from kilonova.base import clock
from kilonova.contract import objects
from kilonova.scheduler import operators, plugins
from kilonova.scheduler.filters import image_properties
from kilonova.scheduler.groups import Group

FILTERS = plugins.filter_classes()


def objection(conf, name, host, request):
    return FILTERS[name](conf).objection(host, request)


def group(policy, hosts=None, members=(), **rules):
    hosts = hosts or {}
    return Group("g", policy, rules, frozenset({*members, *hosts}), dict(hosts))


# --- availability ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, None),
        ({"disabled": True, "disabled_reason": "repair"}, "its service is disabled (repair)"),
        ({"forced_down": True}, "its service was declared down"),
    ],
)
def test_compute_filter(conf, row, reason):
    host = make.make_host(service=make.service_row("h1", **row))
    assert objection(conf, "ComputeFilter", host, make.request()) == reason


def test_silent_service_is_down(conf):
    silent = clock.naive_now() - datetime.timedelta(seconds=conf.service_down_time + 1)
    host = make.make_host(service=make.service_row("h1", last_seen_up=silent))
    assert "last heard of" in objection(conf, "ComputeFilter", host, make.request())
    never = make.make_host(service=make.service_row("h1", last_seen_up=None))
    assert objection(conf, "ComputeFilter", never, make.request()) is None  # as young as its record


def test_all_hosts(conf):
    host = make.make_host(service=make.service_row("h1", disabled=True))
    assert objection(conf, "AllHostsFilter", host, make.request()) is None


# --- capabilities ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("specs", "passes"),
    [
        ({}, True),
        ({"capabilities:vcpus_total": ">= 8"}, True),
        ({"capabilities:vcpus_total": ">= 9"}, False),
        ({"capabilities:cpu_info:arch": "x86_64"}, True),
        ({"capabilities:cpu_info:features": "<in> vmx"}, True),
        ({"capabilities:cpu_info:features": "<in> svm"}, False),
        ({"capabilities:rack": "s== r1"}, True),
        ({"rack": "r2"}, False),
        ({"unknown_key": "x"}, True),
        ({"capabilities:unknown_key": "x"}, False),
        ({"trait:HW_CPU": "required"}, True),
        ({"hw:maxphysaddr_bits": "46"}, True),
        ({"hw:maxphysaddr_bits": "48"}, False),
        ({"capabilities:_row": "x"}, False),
        ({"capabilities:cpu_info:arch:deeper": "x"}, False),
    ],
)
def test_capabilities(conf, specs, passes):
    found = objection(conf, "ComputeCapabilitiesFilter", make.make_host(), make.request(specs=specs))
    assert (found is None) is passes, found


@pytest.mark.parametrize(
    ("value", "wanted", "holds"),
    [
        ("5", "= 4", True),
        ("3", "= 4", False),
        ("4.0", "== 4", True),
        ("4", "!= 4", False),
        ("3", "<= 4", True),
        ("b", "s> a", True),
        ("a", "s!= a", False),
        ("abc", "<in> b", True),
        ("abc def", "<all-in> abc def", True),
        ("abc", "<all-in> abc def", False),
        ("b", "<or> a <or> b", True),
        ("c", "<or> a <or> b", False),
        ("plain", "plain", True),
        ("many words", "many words", True),
        (None, ">= 1", False),
        ("x", ">= 1", False),
        ("1", ">=", False),
        ("", "", True),
    ],
)
def test_operators(value, wanted, holds):
    assert operators.match(value, wanted) is holds


# --- image properties --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("props", "passes"),
    [
        ({}, True),
        ({"hw_architecture": "x86_64"}, True),
        ({"hw_architecture": "aarch64"}, False),
        ({"img_hv_type": "kvm", "hw_vm_mode": "hvm"}, True),
        ({"img_hv_type": "xen"}, False),
        ({"img_hv_type": "kvm", "img_hv_requested_version": ">=6.0,<8"}, True),
        ({"img_hv_type": "kvm", "img_hv_requested_version": ">=8.0"}, False),
        ({"img_hv_type": "kvm", "hw_maxphysaddr_bits": 46}, True),
        ({"img_hv_type": "kvm", "hw_maxphysaddr_bits": 52}, False),
    ],
)
def test_image_properties(conf, props, passes):
    found = objection(conf, "ImagePropertiesFilter", make.make_host(), make.request(props=props))
    assert (found is None) is passes, found


def test_host_without_specs_supports_nothing_named(conf):
    host = make.make_host(supported_instances=None)
    assert objection(conf, "ImagePropertiesFilter", host, make.request()) is None
    assert objection(conf, "ImagePropertiesFilter", host, make.request(props={"hw_architecture": "x86_64"}))


def test_default_architecture(conf):
    conf.set_override("image_properties_default_architecture", "aarch64", "filter_scheduler")
    assert "aarch64" in objection(conf, "ImagePropertiesFilter", make.make_host(), make.request())


@pytest.mark.parametrize(
    ("number", "condition", "holds"),
    [(6000000, ">=6", True), (6001000, "==6.1", True), (6001000, "!=6.1", False), (1, "nonsense", False)],
)
def test_versions(number, condition, holds):
    assert image_properties.satisfied(image_properties.version_of(number), condition) is holds


# --- groups and hints --------------------------------------------------------------------------


def test_anti_affinity(conf):
    name = "ServerGroupAntiAffinityFilter"
    taken = make.make_host("h1", instances=["a"])
    told = group("anti-affinity", members=["a"])
    assert "1 of at most 1" in objection(conf, name, taken, make.request(told))
    from_database = group("anti-affinity", {"b": "h1"})
    assert objection(conf, name, make.make_host("h1"), make.request(from_database))
    assert objection(conf, name, make.make_host("h2"), make.request(from_database)) is None
    assert objection(conf, name, taken, make.request(group("affinity", members=["a"]))) is None
    assert objection(conf, name, taken, make.request(None)) is None
    two = group("anti-affinity", members=["a"], max_server_per_host="2")
    assert objection(conf, name, taken, make.request(two)) is None


def test_anti_affinity_lets_a_server_stay(conf):
    request = make.request(group("anti-affinity", members=["a"]))
    host = make.make_host("h1", instances=["a", request.instance_uuid])
    assert objection(conf, "ServerGroupAntiAffinityFilter", host, request) is None


def test_affinity(conf):
    name = "ServerGroupAffinityFilter"
    together = group("affinity", {"a": "h1"})
    assert objection(conf, name, make.make_host("h1"), make.request(together)) is None
    assert objection(conf, name, make.make_host("h2"), make.request(together))
    assert objection(conf, name, make.make_host("h2"), make.request(group("affinity"))) is None


def test_same_and_different_host(conf):
    host = make.make_host(instances=["a"])
    for hint in (["a"], ["b", "a"], ['["a"]']):
        assert objection(conf, "DifferentHostFilter", host, make.request(scheduler_hints={"different_host": hint}))
        same = make.request(scheduler_hints={"same_host": hint})
        assert objection(conf, "SameHostFilter", host, same) is None
    other = {"different_host": ["b"], "same_host": ["b"]}
    assert objection(conf, "DifferentHostFilter", host, make.request(scheduler_hints=other)) is None
    assert objection(conf, "SameHostFilter", host, make.request(scheduler_hints=other))
    assert objection(conf, "SameHostFilter", host, make.request()) is None


def test_d3_servers_of_others_are_none_for_hints(conf):
    host = make.make_host(instances=["theirs"])
    hints = {"different_host": ["theirs"], "same_host": ["theirs"]}
    request = dataclasses.replace(make.request(scheduler_hints=hints), strangers=frozenset({"theirs"}))
    assert objection(conf, "DifferentHostFilter", host, request) is None
    assert objection(conf, "SameHostFilter", host, request)


@pytest.mark.parametrize("hint", ["[x", "[" * 100000])
def test_d12_a_hint_that_is_no_json_names_itself(conf, hint):
    request = make.request(scheduler_hints={"same_host": [hint], "query": [hint]})
    assert objection(conf, "SameHostFilter", make.make_host(instances=["a"]), request)
    assert "malformed" in objection(conf, "JsonFilter", make.make_host(), request)


def test_d12_hints_that_make_no_network(conf):
    hints = {"build_near_host_ip": ["10.1.2.200"], "cidr": ["/99"]}
    host = make.make_host(host_ip="10.1.2.3")
    assert "no network" in objection(conf, "SimpleCIDRAffinityFilter", host, make.request(scheduler_hints=hints))


def test_near_an_address(conf):
    name = "SimpleCIDRAffinityFilter"
    host = make.make_host(host_ip="10.1.2.3")
    near = make.request(scheduler_hints={"build_near_host_ip": ["10.1.2.200"]})
    far = make.request(scheduler_hints={"build_near_host_ip": ["10.1.3.1"], "cidr": ["/24"]})
    wide = make.request(scheduler_hints={"build_near_host_ip": ["10.1.3.1"], "cidr": ["/16"]})
    assert [objection(conf, name, host, each) is None for each in (near, far, wide)] == [True, False, True]


def test_json_query(conf):
    def passes(query):
        request = make.request(scheduler_hints={"query": [json.dumps(query)]})
        return objection(conf, "JsonFilter", make.make_host(), request) is None

    assert passes([">=", "$free_ram_mb", 1024])
    assert not passes([">=", "$free_ram_mb", 10**6])
    assert passes(["and", [">", "$vcpus_total", 4], ["=", "$hypervisor_type", "QEMU"]])
    assert passes(["or", ["<", "$vcpus_total", 4], ["in", "$stats.rack", "r1", "r2"]])
    assert passes(["not", ["=", "$hypervisor_type", "Xen"]])
    assert passes(["=", "$cpu_info.arch", "x86_64"])
    assert not passes(["=", "$_row.secret", "x"])
    assert not passes(["=", "$service.disabled", False])
    assert not passes(["frob", 1])
    assert passes([])


# --- aggregates --------------------------------------------------------------------------------


def test_aggregate_image_properties(conf):
    name = "AggregateImagePropertiesIsolation"
    host = make.make_host(aggregates=[{"os_distro": "windows, linux", "x": "1"}])
    assert objection(conf, name, host, make.request(props={"os_distro": "linux"})) is None
    assert objection(conf, name, host, make.request(props={"os_distro": "bsd"}))
    assert objection(conf, name, host, make.request()) is None


@pytest.mark.parametrize(
    ("specs", "passes"),
    [
        ({}, True),
        ({"ssd": "true"}, True),
        ({"aggregate_instance_extra_specs:ssd": "true"}, True),
        ({"aggregate_instance_extra_specs:ssd": "false"}, False),
        ({"aggregate_instance_extra_specs:gpu": "true"}, False),
        ({"hw:cpu_policy": "dedicated"}, True),
        ({"aggregate_instance_extra_specs:tier": "<or> gold <or> silver"}, True),
    ],
)
def test_aggregate_extra_specs(conf, specs, passes):
    host = make.make_host(aggregates=[{"ssd": "true"}, {"tier": "silver"}])
    found = objection(conf, "AggregateInstanceExtraSpecsFilter", host, make.request(specs=specs))
    assert (found is None) is passes, found


def test_aggregate_tenancy(conf):
    name = "AggregateMultiTenancyIsolation"
    mine = make.make_host(aggregates=[{"filter_tenant_id": "other"}, {"filter_tenant_id2": make.PROJECT}])
    theirs = make.make_host(aggregates=[{"filter_tenant_id": "other"}])
    free = make.make_host(aggregates=[{"ssd": "true"}])
    found = [objection(conf, name, host, make.request()) is None for host in (mine, theirs, free)]
    assert found == [True, False, True]


def test_aggregate_flavors(conf):
    name = "AggregateTypeAffinityFilter"
    assert objection(conf, name, make.make_host(aggregates=[{"instance_type": "m2, m1"}]), make.request()) is None
    assert objection(conf, name, make.make_host(aggregates=[{"instance_type": "m2"}]), make.request())
    assert objection(conf, name, make.make_host(), make.request()) is None


# --- load --------------------------------------------------------------------------------------


def test_io_operations(conf):
    busy = make.make_host(stats=json.dumps({"io_workload": 8}))
    assert "8 operations" in objection(conf, "IoOpsFilter", busy, make.request())
    roomy = make.make_host(stats=json.dumps({"io_workload": 8}), aggregates=[{"max_io_ops_per_host": "20"}])
    assert objection(conf, "AggregateIoOpsFilter", roomy, make.request()) is None
    broken = make.make_host(stats=json.dumps({"io_workload": 8}), aggregates=[{"max_io_ops_per_host": "many"}])
    assert objection(conf, "AggregateIoOpsFilter", broken, make.request())


def test_number_of_servers(conf):
    full = make.make_host(stats=json.dumps({"num_instances": 50}))
    assert "50 of at most 50" in objection(conf, "NumInstancesFilter", full, make.request())
    strict = make.make_host(aggregates=[{"max_instances_per_host": "2"}, {"max_instances_per_host": "9"}])
    assert objection(conf, "AggregateNumInstancesFilter", strict, make.request())
    assert objection(conf, "NumInstancesFilter", strict, make.request()) is None


def test_metrics(conf):
    conf.set_override("weight_setting", ["cpu.percent=1.0"], "metrics")
    measured = make.make_host(metrics=json.dumps([{"name": "cpu.percent", "value": 0.5}]))
    assert objection(conf, "MetricsFilter", measured, make.request()) is None
    assert "cpu.percent" in objection(conf, "MetricsFilter", make.make_host(), make.request())


def test_isolated_hosts(conf):
    name = "IsolatedHostsFilter"
    special, plain = make.make_host("iso"), make.make_host("h1")
    conf.set_override("isolated_hosts", ["iso"], "filter_scheduler")

    def passing(host):
        return objection(conf, name, host, make.request()) is None

    assert [passing(special), passing(plain)] == [False, True]
    conf.set_override("restrict_isolated_hosts_to_isolated_images", False, "filter_scheduler")
    assert [passing(special), passing(plain)] == [True, True]
    conf.set_override("isolated_images", [make.image().id], "filter_scheduler")
    assert [passing(special), passing(plain)] == [True, False]


# --- devices -----------------------------------------------------------------------------------


def pci_stats(*pools):
    objs = [{"nova_object.name": "PciDevicePool", "nova_object.data": pool} for pool in pools]
    return json.dumps({"nova_object.name": "PciDevicePoolList", "nova_object.data": {"objects": objs}})


def wants_pci(*requests):
    made = [objects.InstancePCIRequest(count=n, spec=[spec], alias_name="a", request_id=None) for n, spec in requests]
    return make.request(pci_requests=objects.InstancePCIRequests(requests=made))


def test_pci_devices(conf):
    name = "PciPassthroughFilter"
    gpu = {"count": 2, "vendor_id": "10de", "product_id": "1EB8", "numa_node": 0, "tags": {"dev_type": "type-PCI"}}
    nic = {"count": 1, "vendor_id": "8086", "product_id": "10fb", "numa_node": 0, "tags": {"dev_type": "type-PF"}}
    host = make.make_host(pci_stats=pci_stats(gpu, nic))
    wanted = {"vendor_id": "10de", "product_id": "1eb8"}
    assert objection(conf, name, host, wants_pci((2, wanted))) is None
    assert objection(conf, name, host, wants_pci((3, wanted)))
    assert objection(conf, name, host, wants_pci((1, wanted), (2, wanted)))
    assert objection(conf, name, host, wants_pci((1, {"vendor_id": "8086"}))), "a PF only goes to who asks for one"
    assert objection(conf, name, host, wants_pci((1, {"vendor_id": "8086", "dev_type": "type-PF"}))) is None
    assert objection(conf, name, make.make_host(), wants_pci((1, wanted)))
    assert objection(conf, name, make.make_host(), make.request()) is None


def numa_host(cells):
    made = [
        objects.NUMACell(
            id=at, cpuset=set(cpus), pcpuset=set(cpus), memory=memory, cpu_usage=0, memory_usage=0, mempages=[],
            siblings=[{cpu} for cpu in cpus], pinned_cpus=set(), socket=0,
        )
        for at, (cpus, memory) in enumerate(cells)
    ]  # fmt: skip
    return json.dumps(objects.NUMATopology(cells=made).obj_to_primitive())


def wants_numa(*cells):
    made = [
        objects.InstanceNUMACell(id=at, cpuset=set(cpus), pcpuset=set(), memory=memory, pagesize=None)
        for at, (cpus, memory) in enumerate(cells)
    ]
    return make.request(numa_topology=objects.InstanceNUMATopology(cells=made))


def test_numa_topology(conf):
    name = "NUMATopologyFilter"
    host = make.make_host(numa_topology=numa_host([([0, 1], 1024), ([2, 3], 1024)]))
    fitting = wants_numa(([0], 512), ([1], 512))
    assert objection(conf, name, host, fitting) is None
    assert fitting.limits[host.uuid]["numa_topology"].cpu_allocation_ratio == 4.0
    assert objection(conf, name, host, wants_numa(([0], 4096)))
    assert objection(conf, name, make.make_host(), wants_numa(([0], 1)))
    assert objection(conf, name, make.make_host(), make.request()) is None
