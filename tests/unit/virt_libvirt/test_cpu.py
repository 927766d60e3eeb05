"""Processor models, topologies and traits."""

import os_traits
import pytest
from tests.fakes import guests

from kilonova.contract import exceptions
from kilonova.virt.hardware.cpu_topology import Topology, best_topology
from kilonova.virt.libvirt import cpu

ONE = Topology(1, 1, 1)


def processors(conf, connection, **options):
    for name, value in options.items():
        conf.set_override(name, value, "libvirt")
    return cpu.Processors(conf, connection)


@pytest.mark.parametrize(
    ("flag", "trait"),
    [
        ("avx", "HW_CPU_X86_AVX"),
        ("aes", "HW_CPU_X86_AESNI"),
        ("sse4.2", "HW_CPU_X86_SSE42"),
        ("pclmuldq", "HW_CPU_X86_CLMUL"),
        ("bmi1", "HW_CPU_X86_BMI"),
        ("fma", "HW_CPU_X86_FMA3"),
        ("sha-ni", "HW_CPU_X86_SHA"),
        ("avx512-vpopcntdq", "HW_CPU_X86_AVX512VPOPCNTDQ"),
        ("amx-bf16", "HW_CPU_X86_AMXBF16"),
        ("vaes", "HW_CPU_X86_AVX512VAES"),
        ("hypervisor", None),
    ],
)
def test_traits_of_flags(flag, trait):
    assert cpu.trait_of_flag(flag) == trait
    assert trait is None or trait in os_traits.get_traits()


def test_virtualization_has_two_traits():
    assert cpu.traits_of_flags(["vmx"]) == {"HW_CPU_X86_INTEL_VMX", "HW_CPU_X86_VMX"}


def test_host_model_is_the_default(conf, connection):
    made = processors(conf, connection)
    assert made.guest(guests.flavor(), ONE, None).mode == "host-model"
    assert made.traits() == {
        "HW_CPU_X86_AVX",
        "HW_CPU_X86_AESNI",
        "HW_CPU_X86_AMD_SVM",
        "HW_CPU_X86_SVM",
    }


def test_no_model(conf, connection):
    made = processors(conf, connection, cpu_mode="none", cpu_model_extra_flags=["avx"])
    guest = made.guest(guests.flavor(), ONE, None)
    assert (guest.mode, guest.model, guest.features) == (None, None, {})
    assert "HW_CPU_X86_SSE2" in made.traits()


def test_models_are_spelled_as_libvirt_does(conf, connection):
    made = processors(conf, connection, cpu_mode="custom", cpu_models=["nehalem", "SKYLAKE-client"])
    assert made.guest(guests.flavor(), ONE, None).model == "Nehalem"
    wants = guests.flavor(extra_specs={"trait:HW_CPU_X86_AVX2": "required", "trait:HW_CPU_X86_SSE42": "required"})
    assert made.guest(wants, ONE, None).model == "Skylake-Client"
    assert made.traits() == {"HW_CPU_X86_SSE42", "HW_CPU_X86_AVX2", "HW_CPU_X86_AESNI"}
    with pytest.raises(exceptions.InvalidCPUInfo, match="HW_CPU_X86_AVX512F"):
        made.guest(guests.flavor(extra_specs={"trait:HW_CPU_X86_AVX512F": "required"}), ONE, None)


def test_flags_are_added_and_taken(conf, connection):
    made = processors(conf, connection, cpu_mode="host-model", cpu_model_extra_flags=["+SSE4.2", "-svm"])
    assert made.guest(guests.flavor(), ONE, None).features == {"sse4.2": "require", "svm": "disable"}
    assert made.traits() == {"HW_CPU_X86_AVX", "HW_CPU_X86_AESNI", "HW_CPU_X86_SSE42"}


@pytest.mark.parametrize(
    "options",
    [
        {"cpu_mode": "custom"},
        {"cpu_mode": "custom", "cpu_models": ["Pentium-9"]},
        {"cpu_mode": "host-model", "cpu_models": ["Nehalem"]},
        {"cpu_mode": "host-passthrough", "virt_type": "qemu"},
    ],
)
def test_what_cannot_work_is_refused_at_start(conf, connection, options):
    with pytest.raises(exceptions.InvalidCPUInfo):
        processors(conf, connection, **options).check()


def test_passthrough_works_with_kvm(conf, connection):
    made = processors(conf, connection, cpu_mode="host-passthrough", virt_type="kvm")
    made.check()
    assert made.guest(guests.flavor(), ONE, None).mode == "host-passthrough"


@pytest.mark.parametrize(
    ("vcpus", "specs", "properties", "expected"),
    [
        (1, {}, {}, (1, 1, 1)),
        (4, {}, {}, (4, 1, 1)),
        (4, {"hw:cpu_cores": "2"}, {}, (2, 2, 1)),
        (4, {"hw:cpu_threads": "2"}, {}, (2, 1, 2)),
        (8, {"hw:cpu_sockets": "2", "hw:cpu_cores": "2", "hw:cpu_threads": "2"}, {}, (2, 2, 2)),
        (4, {"hw:cpu_max_sockets": "1"}, {}, (1, 4, 1)),
        (4, {}, {"hw_cpu_max_sockets": 2}, (2, 2, 1)),
        (4, {"hw:cpu_cores": "4"}, {"hw_cpu_cores": 2}, (2, 2, 1)),
        (4, {"hw:cpu_cores": "4", "hw:cpu_max_cores": "2"}, {}, (4, 1, 1)),
        (4, {}, {"hw_cpu_cores": 2}, (2, 2, 1)),
        (3, {"hw:cpu_cores": "2"}, {}, (3, 1, 1)),
    ],
)
def test_topology(vcpus, specs, properties, expected):
    assert best_topology(vcpus, specs, properties) == Topology(*expected)


def test_an_image_beyond_the_flavors_limits():
    with pytest.raises(exceptions.ImageVCPULimitsRangeExceeded):
        best_topology(4, {"hw:cpu_max_cores": "2"}, {"hw_cpu_max_cores": 4})
    with pytest.raises(exceptions.ImageVCPUTopologyRangeExceeded):
        best_topology(4, {"hw:cpu_max_cores": "2"}, {"hw_cpu_cores": 4})


def test_a_flavor_with_nonsense():
    with pytest.raises(exceptions.InvalidRequest):
        best_topology(4, {"hw:cpu_cores": "many"}, {})


def test_limits_that_leave_nothing():
    with pytest.raises(exceptions.ImageVCPULimitsRangeImpossible):
        best_topology(8, {"hw:cpu_max_sockets": "1", "hw:cpu_max_cores": "2", "hw:cpu_max_threads": "2"}, {})
