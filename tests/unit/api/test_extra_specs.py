"""Extra specs of flavors: checked from 2.86 on."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.contract import extra_specs

PATH = "/flavors/small/os-extra_specs"


def post(world: Any, specs: dict[str, Any], version: str = "2.86") -> Any:
    return world.post(PATH, {"extra_specs": specs}, version=version, user="admin")


GOOD = {
    "hw:cpu_policy": "dedicated",
    "hw:numa_nodes": "2",
    "hw:numa_cpus.0": "0-3,^1",
    "hw:numa_mem.1": 512,
    "hw:mem_page_size": "2MB",
    "hw:cpu_realtime": "yes",
    "hw:redirected_usb_ports": "15",
    "pci_passthrough:alias": "a:1, b:2",
    "resources:VCPU": "2",
    "resources_NET:CUSTOM_GOLD": "1",
    "trait:HW_CPU_X86_AVX": "required",
    "traitN1:CUSTOM_GOLD": "forbidden",
    "aggregate_instance_extra_specs:ssd": "true",
    "capabilities:cpu_info:features": "<in> aes",
    "quota:cpu_quota": "-1",
    "of_the:operator": "anything",
    "plain": "anything",
}
BAD = {
    "hw:cpu_policy": "dedicate",
    "hw:numa_nodes": "0",
    "hw:numa_cpus.x": "0",
    "hw:numa_cpus.0": "a",
    "hw:numa_mem.1": "1.5",
    "hw:mem_page_size": "huge",
    "hw:cpu_realtime": "maybe",
    "hw:redirected_usb_ports": "16",
    "hw:cpu_polcy": "dedicated",
    "pci_passthrough:alias": "a",
    "resources:BANANA": "1",
    "resources:VCPU": "many",
    "trait:HW_CPU_X86_AVX": "wanted",
    "trait:BANANA": "required",
    "quota:cpu_shares": "-1",
    "os:banana": "1",
}


def test_what_has_a_meaning_is_taken(world: Any) -> None:
    world.flavor()
    answer = post(world, GOOD)
    assert answer.status_code == 200, answer.text
    assert answer.json["extra_specs"] == GOOD
    assert world.get(PATH).json["extra_specs"] == {name: str(value) for name, value in GOOD.items()}


@pytest.mark.parametrize("name", BAD)
def test_what_has_none_is_refused_and_nothing_kept(world: Any, name: str) -> None:
    world.flavor()
    answer = post(world, {"plain": "x", name: BAD[name]})
    assert answer.status_code == 400
    assert name in answer.json["badRequest"]["message"]
    one = world.request("PUT", f"{PATH}/{name}", {name: BAD[name]}, version="2.104", user="admin")
    assert one.status_code == 400
    assert world.get(PATH).json["extra_specs"] == {}


def test_before_2_86_nobody_looks(world: Any) -> None:
    world.flavor()
    assert post(world, BAD, "2.85").status_code == 200


def test_numbers_are_as_long_as_texts_may_be(world: Any) -> None:
    world.flavor()
    assert post(world, {"plain": 10**255}, "2.1").status_code == 400
    assert post(world, {"plain": 10**254}, "2.1").status_code == 200


@pytest.mark.parametrize("name", ["hw:pmem", "hw:cpu_dedicated_mask", "hw:cpu_realtime_mask", "pci_passthrough:alias"])
@pytest.mark.timeout(20)
def test_no_text_takes_long_to_refuse(name: str) -> None:
    for text in ("a" * 254 + "!", "1" + ",1-2" * 63 + "!", "a:1" + ", a:1" * 50 + "!"):
        assert extra_specs.problem(name, text)
