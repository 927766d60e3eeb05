"""Every weigher, the normalisation, and the choice among weighed hosts."""

from __future__ import annotations

import json
import random

import pytest
from tests.unit.scheduler import make

from kilonova.contract import exceptions, objects
from kilonova.scheduler import plugins
from kilonova.scheduler.explain import Decision
from kilonova.scheduler.groups import Group
from kilonova.scheduler.ranking import Ranking
from kilonova.scheduler.weighers.base import normalize

WEIGHERS = plugins.weigher_classes()


def weigh(conf, name, host, request=None):
    return WEIGHERS[name](conf).weigh(host, request or make.request())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RAMWeigher", 15000),
        ("CPUWeigher", 32),
        ("DiskWeigher", 100 * 1024),
        ("IoOpsWeigher", 1),
        ("NumInstancesWeigher", 2),
        ("HypervisorVersionWeigher", 7002000),
        ("BuildFailureWeigher", 0),
        ("PCIWeigher", 100),
        ("CrossCellWeigher", 0),
        ("MetricsWeigher", 0),
        ("ImagePropertiesWeigher", 0),
        ("ServerGroupSoftAffinityWeigher", 0),
        ("ServerGroupSoftAntiAffinityWeigher", 0),
    ],
)
def test_plain_host(conf, name, expected):
    assert weigh(conf, name, make.make_host()) == expected


def test_least_available_disk_counts(conf):
    assert weigh(conf, "DiskWeigher", make.make_host(disk_available_least=10)) == 10 * 1024


def test_multipliers_from_aggregates(conf):
    ram = WEIGHERS["RAMWeigher"](conf)
    assert ram.multiplier(make.make_host()) == 1.0
    overridden = [{"ram_weight_multiplier": "3"}, {"ram_weight_multiplier": "2.5"}]
    assert ram.multiplier(make.make_host(aggregates=overridden)) == 2.5
    assert ram.multiplier(make.make_host(aggregates=[{"ram_weight_multiplier": "x"}])) == 1.0
    assert WEIGHERS["BuildFailureWeigher"](conf).multiplier(make.make_host()) == -1000000.0


def test_soft_policies(conf):
    host = make.make_host(instances=["a", "b", "x"])
    soft = make.request(Group("g", "soft-affinity", {}, frozenset({"a", "b"}), {"b": "h1"}))
    assert weigh(conf, "ServerGroupSoftAffinityWeigher", host, soft) == 2
    assert weigh(conf, "ServerGroupSoftAntiAffinityWeigher", host, soft) == 0
    apart = make.request(Group("g", "soft-anti-affinity", {}, frozenset({"a", "b"}), {}))
    assert weigh(conf, "ServerGroupSoftAntiAffinityWeigher", host, apart) == -2


def test_moves_prefer_their_cell(conf):
    def move(cell, allowed=True):
        mapping = objects.CellMapping(uuid=cell)
        target = objects.Destination(cell=mapping, allow_cross_cell_move=allowed)
        return make.request(requested_destination=target)

    other = "cccccccc-0000-4000-8000-000000000002"
    host = make.make_host()
    found = [weigh(conf, "CrossCellWeigher", host, each) for each in (move(make.CELL), move(other), move(other, False))]
    assert found == [1, -1, 0]


def test_metrics(conf):
    conf.set_override("weight_setting", ["a=2", "b=-1", "bad"], "metrics")
    measured = make.make_host(metrics=json.dumps([{"name": "a", "value": 3}, {"name": "b", "value": 1}]))
    assert weigh(conf, "MetricsWeigher", measured) == 5
    with pytest.raises(exceptions.ComputeHostMetricNotFound):
        weigh(conf, "MetricsWeigher", make.make_host())
    conf.set_override("required", False, "metrics")
    assert weigh(conf, "MetricsWeigher", make.make_host()) == -10000.0


def test_like_images(conf):
    conf.set_override("image_props_weight_multiplier", 1.0, "filter_scheduler")
    weigher = WEIGHERS["ImagePropertiesWeigher"](conf)
    weigher.properties = lambda cell, uuids: {each: {"os_distro": "linux", "hw_disk_bus": "virtio"} for each in uuids}
    host = make.make_host(instances=["a", "b"])
    request = make.request(props={"os_distro": "linux", "hw_disk_bus": "scsi"})
    assert weigher.weigh(host, request) == 2
    conf.set_override("image_props_weight_setting", ["os_distro=5"], "filter_scheduler")
    weighted = WEIGHERS["ImagePropertiesWeigher"](conf)
    weighted.properties = weigher.properties
    assert weighted.weigh(host, request) == 10


@pytest.mark.parametrize(
    ("weights", "minimum", "expected"),
    [
        ([], None, []),
        ([5, 5], None, [0, 0]),
        ([1, 3, 2], None, [0, 1, 0.5]),
        ([1, 4], 0, [0.25, 1]),
        ([0, 0], 0, [0, 0]),
        ([-4, -2], None, [0, 1]),
    ],
)
def test_normalize(weights, minimum, expected):
    assert normalize(weights, minimum) == expected


# --- ranking -----------------------------------------------------------------------------------


def ranking(conf, seed=1, filters=("ComputeFilter",)):
    chosen = [plugins.filter_classes()[name](conf) for name in filters]
    return Ranking(conf, chosen, plugins.weighers(conf), random.Random(seed))


def test_most_room_first_with_shares(conf):
    hosts = [make.make_host("small", free_ram_mb=100), make.make_host("big", free_ram_mb=16000)]
    decision = Decision("i")
    assert [host.host for host in ranking(conf).best(hosts, make.request(), decision)] == ["big", "small"]
    assert decision.weights[0].host == "big"
    assert decision.weights[0].shares["RAMWeigher"] == 1.0
    assert sum(decision.weights[0].shares.values()) == pytest.approx(decision.weights[0].total)


def test_failed_builds_outweigh_everything(conf):
    bad = make.make_host("bad", free_ram_mb=16000, stats=json.dumps({"failed_builds": 1}))
    hosts = [bad, make.make_host("good", free_ram_mb=10)]
    assert ranking(conf).best(hosts, make.request(), Decision("i"))[0].host == "good"


def test_subset_picks_among_the_best_only(conf):
    conf.set_override("host_subset_size", 2, "filter_scheduler")
    hosts = [make.make_host(f"h{n}", free_ram_mb=n * 1000) for n in range(1, 6)]
    firsts = {ranking(conf, seed).best(hosts, make.request(), Decision("i"))[0].host for seed in range(40)}
    assert firsts == {"h5", "h4"}


def test_equals_are_shuffled_on_request(conf):
    hosts = [make.make_host(f"h{n}") for n in range(5)]
    assert ranking(conf).best(hosts, make.request(), Decision("i"))[0].host == "h0"
    conf.set_override("shuffle_best_same_weighed_hosts", True, "filter_scheduler")
    firsts = {ranking(conf, seed).best(hosts, make.request(), Decision("i"))[0].host for seed in range(40)}
    assert len(firsts) > 1


def test_steps_say_who_went_and_why(conf):
    down = make.make_host("down", service=make.service_row("down", forced_down=True))
    decision = Decision("i", candidates=2)
    ranking(conf).best([down, make.make_host("up")], make.request(), decision)
    [step] = decision.steps
    assert (step.name, step.before, step.after) == ("ComputeFilter", 2, 1)
    assert step.reasons == {"its service was declared down": ["down"]}
    assert decision.summary() == "2 hosts had room; ComputeFilter left 1 of 2"
    assert "its service was declared down: down" in decision.details()
    assert json.dumps(decision.to_dict())


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"ignore_hosts": ["H1"]}, ["h2", "h3"]),
        ({"force_hosts": ["h2"]}, ["h2"]),
        ({"force_nodes": ["n3"]}, ["h3"]),
        ({"force_hosts": ["nope"]}, []),
        ({"requested_destination": objects.Destination(host="h3")}, ["h3"]),
        ({"requested_destination": objects.Destination(host="h3", node="other")}, []),
    ],
)
def test_named_hosts(conf, fields, left):
    hosts = [make.make_host("h1"), make.make_host("h2"), make.make_host("h3", node="n3")]
    found = ranking(conf).passing(hosts, make.request(**fields), Decision("i"))
    assert [host.host for host in found] == left


def test_tried_hosts_are_left_out(conf):
    tried = objects.ComputeNodeList(objects=[objects.ComputeNode(host="h1", hypervisor_hostname="h1")])
    retry = objects.SchedulerRetries(num_attempts=1, hosts=tried)
    found = ranking(conf).passing(
        [make.make_host("h1"), make.make_host("h2")], make.request(retry=retry), Decision("i")
    )
    assert [host.host for host in found] == ["h2"]


def test_a_forced_host_is_not_filtered_but_a_checked_one_is(conf):
    down = make.make_host("down", service=make.service_row("down", forced_down=True))
    assert ranking(conf).passing([down], make.request(force_hosts=["down"]), Decision("i")) == [down]
    checked = make.request(force_hosts=["down"], scheduler_hints={"_nova_check_type": ["live_migrate"]})
    assert ranking(conf).passing([down], checked, Decision("i")) == []


def test_rebuild_asks_only_filters_about_the_image(conf):
    down = make.make_host("down", service=make.service_row("down", forced_down=True))
    request = make.request(props={"hw_architecture": "aarch64"})
    request.check_only = True
    both = ranking(conf, filters=("ComputeFilter", "ImagePropertiesFilter"))
    decision = Decision("i")
    assert both.passing([down], request, decision) == []
    assert [step.name for step in decision.steps] == ["ImagePropertiesFilter"]
