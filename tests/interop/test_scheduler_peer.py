"""Our filters, weighers and Placement queries against the peer's own, on the same random hosts and requests.

Needs KILONOVA_TEST_PEER: a Python in which the peer is installed.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import urllib.parse
import uuid
from typing import Any

import pytest
from tests.needs import needs
from tests.unit.scheduler import make

from kilonova import conf as options
from kilonova.base import clock
from kilonova.contract import objects
from kilonova.scheduler import candidates, plugins
from kilonova.scheduler.explain import Decision
from kilonova.scheduler.groups import Group
from kilonova.scheduler.ranking import Ranking
from kilonova.scheduler.request import Request

PEER = os.environ.get("KILONOVA_TEST_PEER")
SCRIPT = pathlib.Path(__file__).with_name("peer_scheduler.py")
pytestmark = [
    pytest.mark.interop,
    needs("peer"),
]

MEMBERS = [str(uuid.UUID(int=n + 1)) for n in range(6)]
FILTERS = [
    "AggregateImagePropertiesIsolation", "AggregateInstanceExtraSpecsFilter", "AggregateIoOpsFilter",
    "AggregateMultiTenancyIsolation", "AggregateNumInstancesFilter", "AggregateTypeAffinityFilter", "AllHostsFilter",
    "ComputeCapabilitiesFilter", "ComputeFilter", "DifferentHostFilter", "ImagePropertiesFilter", "IoOpsFilter",
    "IsolatedHostsFilter", "JsonFilter", "NumInstancesFilter", "SameHostFilter", "ServerGroupAffinityFilter",
    "ServerGroupAntiAffinityFilter", "SimpleCIDRAffinityFilter",
]  # fmt: skip
WITHOUT = ["ImagePropertiesWeigher"]
"""Reads databases on the peer's side."""

OPTIONS: dict[str, dict[str, Any]] = {
    "filter_scheduler": {
        "isolated_hosts": ["h3"],
        "max_instances_per_host": 4,
        "isolated_images": [make.image().id],
        "num_instances_weight_multiplier": -1.5,
    }
}


def random_host(rng: random.Random, n: int) -> dict[str, Any]:
    host = f"h{n}"
    aggregates = [
        {"ssd": "true", "os_distro": "bsd,windows"}, {"filter_tenant_id": "other"},
        {"filter_tenant_id_1": make.PROJECT}, {"max_instances_per_host": "3"}, {"instance_type": "m1,m2"},
        {"instance_type": "m3"},
        {"max_io_ops_per_host": "2"}, {"ram_weight_multiplier": "-2"}, {"cpu_weight_multiplier": "x"},
    ]  # fmt: skip
    now = clock.naive_now()
    row = make.node_row(
        host,
        free_ram_mb=rng.randrange(0, 16384, 512),
        free_disk_gb=rng.randrange(0, 100),
        disk_available_least=rng.choice([None, 5, 50]),
        vcpus_used=rng.randrange(8),
        hypervisor_version=rng.choice([6000000, 7002000, 8000000]),
        host_ip=f"10.1.{rng.randrange(3)}.{n}",
        supported_instances=json.dumps(rng.choice([[["x86_64", "kvm", "hvm"]], [["aarch64", "qemu", "hvm"]]])),
        stats=json.dumps(
            {"num_instances": str(rng.randrange(6)), "io_workload": str(rng.randrange(12)),
             "failed_builds": str(rng.choice([0, 0, 2])), "rack": rng.choice(["r1", "r2"])}
        ),
    )  # fmt: skip
    service = make.service_row(host, disabled=rng.random() < 0.2, forced_down=rng.random() < 0.1)
    service |= {"binary": "nova-compute", "last_seen_up": now.isoformat(), "created_at": now.isoformat()}
    return row | {
        "updated_at": None,
        "cell_uuid": make.CELL,
        "service": service,
        "aggregates": rng.sample(aggregates, rng.randrange(4)),
        "instances": rng.sample(MEMBERS, rng.randrange(3)),
        "parsed_cpu_info": False,
    }


def random_spec(rng: random.Random) -> objects.RequestSpec:
    specs: dict[str, str] = {}
    pool = [
        ("capabilities:rack", "s== r1"), ("capabilities:vcpus_total", ">= 4"),
        ("aggregate_instance_extra_specs:ssd", "true"),
        ("capabilities:cpu_info:arch", "x86_64"), ("resources:CUSTOM_GOLD", "1"), ("resources1:VGPU", "1"),
        ("trait:HW_CPU_X86_AVX", "required"), ("trait1:CUSTOM_RED", "forbidden"), ("hw:cpu_policy", "dedicated"),
        ("os:secure_boot", "required"), ("hw:mem_encryption", "false"), ("resources:VCPU", "2"), ("hw:pmem", "4GB,4GB"),
    ]  # fmt: skip
    for key, value in rng.sample(pool, rng.randrange(5)):
        specs[key] = value
    props = dict(
        rng.sample(
            [("hw_architecture", "x86_64"), ("img_hv_type", "kvm"), ("img_hv_requested_version", ">=7.0"),
             ("os_distro", "linux"), ("traits_required", ["HW_CPU_X86_VMX"])],
            rng.randrange(4),
        )
    )  # fmt: skip
    hints = dict(
        rng.sample(
            [("same_host", MEMBERS[:2]), ("different_host", MEMBERS[2:4]), ("build_near_host_ip", ["10.1.1.5"]),
             ("query", [json.dumps([">=", "$free_ram_mb", 4096])])],
            rng.randrange(3),
        )
    )  # fmt: skip
    spec = make.spec(specs=specs, props=props, scheduler_hints=hints)
    spec.flavor.swap, spec.flavor.ephemeral_gb = rng.choice([0, 1500]), rng.choice([0, 7])
    spec.is_bfv = rng.random() < 0.3
    policy = rng.choice([None, "affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"])
    if policy:
        spec.instance_group = objects.InstanceGroup(
            id=1,
            uuid=str(uuid.uuid4()),
            name="g",
            policy=policy,
            policies=[policy],
            _rules={},
            members=MEMBERS[:4],
            hosts=["h1", "h2"] if policy == "affinity" else [],
        )
    spec.request_level_params = objects.RequestLevelParams(root_required=set(), root_forbidden=set(), same_subtree=[])
    return spec


def group_of(spec: objects.RequestSpec) -> Group | None:
    group = spec.instance_group
    if group is None:
        return None
    hosts = dict(zip(group.members, group.hosts, strict=False))
    return Group(group.uuid, group.policy, {}, frozenset(group.members), hosts)


def our_host(row: dict[str, Any]):
    known = {"host", "hypervisor_hostname", "cell_uuid", "service", "aggregates", "instances", "uuid"}
    node = {name: value for name, value in row.items() if name not in known | {"parsed_cpu_info"}}
    service = dict(row["service"])
    for name in ("last_seen_up", "created_at"):
        service[name] = clock.naive_now()
    parts = {"aggregates": row["aggregates"], "instances": row["instances"], "service": service}
    return make.make_host(row["host"], **parts, **node)


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    rng = random.Random(20262)
    rows = [random_host(rng, n) for n in range(25)]
    specs = [random_spec(rng) for _ in range(60)]
    primitives = [spec.obj_to_primitive() for spec in specs]
    question = {
        "hosts": rows, "specs": primitives, "filters": FILTERS, "without": WITHOUT, "options": OPTIONS,
    }  # fmt: skip
    done = subprocess.run(
        [str(PEER), str(SCRIPT)],
        input=json.dumps(question, default=str),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {"answer": json.loads(done.stdout), "hosts": rows, "specs": specs}


@pytest.fixture(scope="module")
def conf():
    made = options.load([])
    for group, values in OPTIONS.items():
        for name, value in values.items():
            made.set_override(name, value, group)
    return made


@pytest.mark.parametrize("name", FILTERS)
def test_filters_agree(asked, conf, name):
    judge = plugins.filter_classes()[name](conf)
    hosts = [our_host(row) for row in asked["hosts"]]
    ours = [
        [judge.objection(host, Request(spec, spec.instance_uuid, group_of(spec))) is None for host in hosts]
        for spec in asked["specs"]
    ]
    assert ours == asked["answer"]["filters"][name]
    verdicts = {verdict for row in ours for verdict in row}
    assert verdicts == ({True} if name == "AllHostsFilter" else {True, False}), "the sample shows both outcomes"


def test_weights_agree(asked, conf):
    weighers = [each for each in plugins.weighers(conf) if each.name not in WITHOUT]
    ranking = Ranking(conf, [], weighers)
    hosts = [our_host(row) for row in asked["hosts"]]
    for spec, theirs in zip(asked["specs"], asked["answer"]["weights"], strict=True):
        request = Request(spec, spec.instance_uuid, group_of(spec))
        ours = {host.host: weight for weight, host in ranking.weighed(hosts, request, Decision(spec.instance_uuid))}
        assert ours == pytest.approx(dict(theirs))


def test_queries_agree(asked, conf):
    for spec, theirs in zip(asked["specs"], asked["answer"]["queries"], strict=True):
        ours = candidates.from_request(spec, conf.scheduler.max_placement_results).params()
        assert sorted(ours) == sorted(urllib.parse.parse_qsl(theirs))
