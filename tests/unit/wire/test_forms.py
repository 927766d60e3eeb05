"""Older forms of arguments, for servers from before their objects."""

from __future__ import annotations

from kilonova.contract import objects
from kilonova.wire.rpc import forms

UUID = "5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d"


def spec() -> objects.RequestSpec:
    flavor = objects.Flavor(name="f", root_gb=1, ephemeral_gb=2, memory_mb=3, vcpus=4)
    image = objects.ImageMeta(id=UUID, properties=objects.ImageMetaProps(hw_cpu_cores=2))
    tried = objects.ComputeNodeList(objects=[objects.ComputeNode(host="h", hypervisor_hostname="n")])
    return objects.RequestSpec(
        num_instances=2,
        instance_uuid=UUID,
        project_id="p",
        availability_zone=None,
        flavor=flavor,
        image=image,
        ignore_hosts=["x"],
        force_hosts=None,
        retry=objects.SchedulerRetries(num_attempts=1, hosts=tried),
        limits=objects.SchedulerLimits(vcpu=None, memory_mb=9, disk_gb=None, numa_topology=None),
        instance_group=objects.InstanceGroup(hosts=["h"], policy="affinity", members=[UUID], uuid=UUID),
        scheduler_hints={"one": ["1"], "two": ["1", "2"]},
    )


def test_a_request_spec_as_a_dict() -> None:
    made = forms.request_spec_dict(spec())
    assert made["num_instances"] == 2
    assert made["image"] == {"id": UUID, "properties": {"hw_cpu_cores": 2}}
    assert made["instance_properties"] == {
        "uuid": UUID,
        "project_id": "p",
        "availability_zone": None,
        "root_gb": 1,
        "ephemeral_gb": 2,
        "memory_mb": 3,
        "vcpus": 4,
    }
    assert made["instance_type"].name == "f"
    assert forms.request_spec_dict(objects.RequestSpec()) == {
        "num_instances": 1,
        "image": {},
        "instance_properties": {},
        "instance_type": {},
    }


def test_filter_properties_as_a_dict() -> None:
    assert forms.filter_properties_dict(objects.RequestSpec()) == {}
    assert forms.filter_properties_dict(spec()) == {
        "ignore_hosts": ["x"],
        "retry": {"num_attempts": 1, "hosts": [["h", "n"]]},
        "limits": {"memory_mb": 9},
        "group_updated": True,
        "group_hosts": {"h"},
        "group_policies": {"affinity"},
        "group_members": {UUID},
        "group_uuid": UUID,
        "scheduler_hints": {"one": "1", "two": ["1", "2"]},
    }


def test_networks_as_tuples() -> None:
    asked = objects.NetworkRequest(network_id=UUID, address="192.0.2.1", port_id=None, pci_request_id=None)
    listed = forms.network_tuples(objects.NetworkRequestList(objects=[asked]))
    assert listed == [(UUID, "192.0.2.1", None, None, None, None)]
    assert forms.network_tuples(None) is None
