"""From request specs to Placement queries, and the request filters before them."""

from __future__ import annotations

import pytest
from tests import fakes
from tests.unit.scheduler import make

from kilonova.contract import context, exceptions, objects
from kilonova.scheduler import candidates, prefilters, wishes
from kilonova.scheduler.snapshot.host import Aggregate

ADMIN = context.admin()


def params(spec, **more):
    return dict(candidates.from_request(spec, None, **more).params())


@pytest.mark.parametrize(
    ("fields", "resources"),
    [
        ({}, "DISK_GB:1,MEMORY_MB:512,VCPU:1"),
        ({"is_bfv": True}, "MEMORY_MB:512,VCPU:1"),
        ({"flavor": make.flavor(ephemeral_gb=3, swap=1025)}, "DISK_GB:6,MEMORY_MB:512,VCPU:1"),
        ({"flavor": make.flavor(root_gb=0)}, "MEMORY_MB:512,VCPU:1"),
        ({"specs": {"resources:VCPU": "0", "resources:CUSTOM_GOLD": "2"}}, "CUSTOM_GOLD:2,DISK_GB:1,MEMORY_MB:512"),
        ({"specs": {"resources:MEMORY_MB": "7"}}, "DISK_GB:1,MEMORY_MB:7,VCPU:1"),
        ({"specs": {"resources:NONSENSE": "1", "resources:VGPU": "x"}}, "DISK_GB:1,MEMORY_MB:512,VCPU:1"),
        ({"specs": {"hw:pmem": "4GB,4GB,16GB"}},
         "CUSTOM_PMEM_NAMESPACE_16GB:1,CUSTOM_PMEM_NAMESPACE_4GB:2,DISK_GB:1,MEMORY_MB:512,VCPU:1"),
        ({"specs": {"hw:mem_encryption": "true"}}, "DISK_GB:1,MEMORY_MB:512,MEM_ENCRYPTION_CONTEXT:1,VCPU:1"),
    ],
)  # fmt: skip
def test_resources(fields, resources):
    assert params(make.spec(**fields))["resources"] == resources


def test_dedicated_cpus():
    dedicated = make.spec(flavor=make.flavor(vcpus=4, extra_specs={"hw:cpu_policy": "dedicated"}))
    assert params(dedicated)["resources"] == "DISK_GB:1,MEMORY_MB:512,PCPU:4"
    assert params(dedicated, translate_pinning=False)["resources"] == "DISK_GB:1,MEMORY_MB:512,VCPU:4"
    assert candidates.from_request(dedicated, None).pinned
    specs = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0", "hw:emulator_threads_policy": "isolate"}
    mixed = make.spec(flavor=make.flavor(vcpus=4, extra_specs=specs))
    assert params(mixed)["resources"] == "DISK_GB:1,MEMORY_MB:512,PCPU:4,VCPU:1"
    threads = make.spec(specs={"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "isolate"})
    assert params(threads)["required"] == "!HW_CPU_HYPERTHREADING"


def test_granular_groups():
    specs = {
        "resources1:VGPU": "1",
        "trait1:CUSTOM_RED": "required",
        "resources_NIC:SRIOV_NET_VF": "1",
        "trait_NIC:CUSTOM_SLOW": "forbidden",
        "trait:HW_CPU_X86_AVX": "required",
        "group_policy": "isolate",
    }
    found = params(make.spec(specs=specs))
    assert found["resources1"] == "VGPU:1"
    assert found["required1"] == "CUSTOM_RED"
    assert found["resources_NIC"] == "SRIOV_NET_VF:1"
    assert found["required_NIC"] == "!CUSTOM_SLOW"
    assert found["required"] == "HW_CPU_X86_AVX"
    assert found["group_policy"] == "isolate"


def test_groups_of_ports_get_a_policy():
    groups = [
        objects.RequestGroup(requester_id=name, resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, use_same_provider=True)
        for name in ("p1", "p2")
    ]
    found = params(make.spec(requested_resources=groups))
    assert found["group_policy"] == "none"
    assert found["resourcesp1"] == "NET_BW_EGR_KILOBIT_PER_SEC:1000"
    with pytest.raises(exceptions.RequestGroupSuffixConflict):
        params(make.spec(requested_resources=[groups[0], groups[0]]))


@pytest.mark.parametrize(
    ("fields", "trait"),
    [
        ({"props": {"traits_required": ["HW_CPU_X86_VMX"]}}, "HW_CPU_X86_VMX"),
        ({"specs": {"os:secure_boot": "required"}}, "COMPUTE_SECURITY_UEFI_SECURE_BOOT"),
        ({"specs": {"hw:maxphysaddr_mode": "emulate"}}, "COMPUTE_ADDRESS_SPACE_EMULATED"),
        ({"props": {"hw_tpm_version": "2.0", "hw_tpm_model": "tpm-crb"}},
         "COMPUTE_SECURITY_TPM_2_0,COMPUTE_SECURITY_TPM_CRB"),
        ({"props": {"hw_firmware_type": "uefi", "hw_firmware_stateless": True}}, "COMPUTE_SECURITY_STATELESS_FIRMWARE"),
        ({"specs": {"hw:pci_numa_affinity_policy": "socket"}}, "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"),
        ({"specs": {"hw:mem_encryption": "1", "hw:mem_encryption_model": "amd-sev-es"}}, "HW_CPU_X86_AMD_SEV_ES"),
    ],
)  # fmt: skip
def test_traits(fields, trait):
    assert params(make.spec(**fields))["required"] == trait


def test_contradictions():
    with pytest.raises(exceptions.FlavorImageConflict):
        params(make.spec(specs={"os:secure_boot": "required"}, props={"os_secure_boot": "disabled"}))
    with pytest.raises(exceptions.ImageCPUPinningForbidden):
        params(make.spec(specs={"hw:cpu_policy": "shared"}, props={"hw_cpu_policy": "dedicated"}))


@pytest.mark.parametrize(
    ("text", "count", "cpus"),
    [("0-2", 4, {0, 1, 2}), ("^0", 3, {1, 2}), ("0-3,^1", 4, {0, 2, 3}), ("5", 4, set()), ("", 2, {0, 1})],
)
def test_masks(text, count, cpus):
    assert wishes.cpu_mask(text, count) == cpus


def test_a_mask_of_more_processors_than_there_are_costs_nothing():
    assert wishes.cpu_mask("1-99999999999999,^2-88888888888888", 4) == {1}
    assert wishes.cpu_mask("77777777777777", 4) == set()


def test_malformed_mask():
    with pytest.raises(exceptions.InvalidInput):
        wishes.cpu_mask("a-b", 4)


# --- request filters ---------------------------------------------------------------------------


@pytest.fixture
def around(conf, snapshot, source):
    source.put("h1")
    snapshot.all()
    return prefilters.Surroundings(ADMIN, conf, snapshot, fakes.Cloud().clients)


def ran(around, **fields):
    spec = make.spec(**fields)
    prefilters.run(around, spec)
    return spec


def aggregate(at, uuid, **metadata):
    return Aggregate.of(at, uuid, uuid, ["h1"], metadata)


def test_always_enabled_and_ours(around):
    level = ran(around).request_level_params
    assert level.root_forbidden == {"COMPUTE_STATUS_DISABLED"}
    assert level.root_required == {"OWNER_NOVA"}


def test_instructions_of_novas_api_leave_out_what_they_do_not_say(around):
    level = ran(around, request_level_params=objects.RequestLevelParams()).request_level_params
    assert level.root_forbidden == {"COMPUTE_STATUS_DISABLED"}
    assert level.same_subtree == []


def test_old_hosts_have_no_owner_trait(around, source, snapshot):
    source.rows[make.CELL].services.append(make.service_row("old", version=60))
    snapshot._since = None
    snapshot.refresh(force=True)
    assert ran(around).request_level_params.root_required == set()


def test_zone(around, source, snapshot):
    snapshot.aggregates_changed([aggregate(1, "u1", availability_zone="az1"), aggregate(2, "u2")])
    assert ran(around, availability_zone="az1").requested_destination.aggregates == ["u1"]
    assert ran(around, availability_zone="nova").requested_destination is None
    with pytest.raises(exceptions.RequestFilterFailed):
        ran(around, availability_zone="gone")


def test_tenant_aggregates(around, snapshot):
    around.conf.set_override("limit_tenants_to_placement_aggregate", True, "scheduler")
    assert ran(around).requested_destination is None
    around.conf.set_override("placement_aggregate_required_for_tenants", True, "scheduler")
    with pytest.raises(exceptions.RequestFilterFailed):
        ran(around)
    snapshot.aggregates_changed([aggregate(1, "u1", filter_tenant_id_a=make.PROJECT), aggregate(2, "u2")])
    assert ran(around).requested_destination.aggregates == ["u1"]


def test_isolated_aggregates(around, snapshot):
    around.conf.set_override("enable_isolated_aggregate_filtering", True, "scheduler")
    snapshot.aggregates_changed([aggregate(1, "u1", **{"trait:HW_CPU_X86_VMX": "required"}), aggregate(2, "u2")])
    assert ran(around).requested_destination.forbidden_aggregates == {"u1"}
    asking = ran(around, specs={"trait:HW_CPU_X86_VMX": "required"})
    assert asking.requested_destination is None


def test_image_traits(around):
    around.conf.set_override("query_placement_for_image_type_support", True, "scheduler")
    around.conf.set_override("image_metadata_prefilter", True, "scheduler")
    level = ran(around, props={"hw_disk_bus": "virtio", "hw_vif_model": "e1000"}).request_level_params
    wanted = {"COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_NET_VIF_MODEL_E1000"}
    assert wanted <= level.root_required


@pytest.mark.parametrize(
    ("fields", "trait"),
    [
        ({"specs": {"accel:device_profile": "gpu"}}, "COMPUTE_ACCELERATORS"),
        ({"specs": {"hw:virtio_packed_ring": "true"}}, "COMPUTE_NET_VIRTIO_PACKED"),
        ({"props": {"hw_virtio_packed_ring": True}}, "COMPUTE_NET_VIRTIO_PACKED"),
        ({"specs": {"hw:ephemeral_encryption": "yes"}}, "COMPUTE_EPHEMERAL_ENCRYPTION"),
        ({"specs": {"hw:ephemeral_encryption": "yes", "hw:ephemeral_encryption_format": "luks"}},
         "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS"),
        ({"specs": {"hw:sound_model": "virtio"}}, "COMPUTE_SOUND_MODEL_VIRTIO"),
        ({"specs": {"hw:tpm_version": "2.0"}}, "COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER"),
        ({"specs": {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "host"}},
         "COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST"),
    ],
)  # fmt: skip
def test_wishes_become_traits(around, fields, trait):
    assert trait in ran(around, **fields).request_level_params.root_required


def test_unknown_secret_security(around):
    with pytest.raises(exceptions.RequestFilterFailed):
        ran(around, specs={"hw:tpm_version": "2.0", "hw:tpm_secret_security": "paper"})


def test_remote_managed_ports(around):
    cloud = fakes.Cloud()
    net = cloud.neutron.network()
    port = cloud.neutron.port(net, **{"binding:vnic_type": "remote-managed"})
    asked = prefilters.Surroundings(ADMIN, around.conf, around.snapshot, cloud.clients)
    networks = objects.NetworkRequestList(objects=[objects.NetworkRequest(port_id=port)])
    assert "COMPUTE_REMOTE_MANAGED_PORTS" in ran(asked, requested_networks=networks).request_level_params.root_required


def test_routed_networks(around):
    cloud = fakes.Cloud()
    around.conf.set_override("query_placement_for_routed_network_aggregates", True, "scheduler")
    net = cloud.neutron.network(cidr=None)
    cloud.neutron.subnet(net, "10.0.0.0/24", segment_id="seg1")
    asked = prefilters.Surroundings(ADMIN, around.conf, around.snapshot, cloud.clients)
    networks = objects.NetworkRequestList(objects=[objects.NetworkRequest(network_id=net)])
    with pytest.raises(exceptions.RequestFilterFailed):
        ran(asked, requested_networks=networks)
    cloud.placement.host("segment", provider="seg1", aggregates=["agg1"])
    assert ran(asked, requested_networks=networks).requested_destination.aggregates == ["agg1"]
