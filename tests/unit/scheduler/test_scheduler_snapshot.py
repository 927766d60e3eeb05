"""The snapshot: sweeps, tails, consumption, announcements, cells that are down."""

from __future__ import annotations

import datetime
import threading

from tests.unit.scheduler import make

from kilonova.base import clock
from kilonova.scheduler.snapshot.cache import Snapshot, Tail
from kilonova.scheduler.snapshot.host import Aggregate
from kilonova.scheduler.snapshot.placements import Placements

SECOND = "cccccccc-0000-4000-8000-000000000002"


def names(hosts):
    return sorted(host.host for host in hosts)


def test_sweep_then_tails(source, snapshot):
    source.put("h1", "h2")
    assert names(snapshot.all()) == ["h1", "h2"]
    source.rows[make.CELL] = Tail([], [make.node_row("h1", free_ram_mb=7)], [])
    assert names(snapshot.all()) == ["h1", "h2"]
    assert snapshot.by_name("h1", None)[0].free_ram_mb == 7
    assert source.looks[0] is None
    assert all(isinstance(look, datetime.datetime) for look in source.looks[1:])


def test_spacing_saves_looks(source):
    source.put("h1")
    snapshot = Snapshot(source, spacing=60.0)
    for _ in range(5):
        snapshot.all()
    assert len(source.looks) == 1


def test_unknown_provider_causes_one_look(source):
    source.put("h1")
    snapshot = Snapshot(source, spacing=60.0)
    snapshot.all()
    source.put("new")
    new = make.node_row("new")["uuid"]
    assert names(snapshot.by_uuid([new])) == ["new"]
    looks = len(source.looks)
    for _ in range(3):
        assert snapshot.by_uuid(["shared-storage"]) == []
    assert len(source.looks) == looks + 1, "what is no host is remembered until the next sweep"


def test_sweep_forgets_what_is_gone(source):
    source.put("h1", "h2")
    snapshot = Snapshot(source, spacing=0.0, sweep=0.0)
    snapshot.all()
    source.rows.clear()
    source.put("h2")
    assert names(snapshot.all()) == ["h2"]


def test_tail_forgets_deleted_nodes(source, snapshot):
    source.put("h1", "h2")
    snapshot.all()
    source.rows[make.CELL] = Tail([], [make.node_row("h1", deleted=3)], [])
    assert names(snapshot.all()) == ["h2"]


def test_hosts_without_service_or_resources_or_in_disabled_cells_are_left_out(source, snapshot):
    source.put("h1")
    source.put("silent", free_disk_gb=None)
    source.put("far", cell=SECOND)
    source.rows[make.CELL].nodes.append(make.node_row("orphan"))
    assert names(snapshot.all()) == ["far", "h1"]
    source.enabled[SECOND] = False
    assert names(snapshot.all()) == ["h1"]


def test_a_cell_that_is_down_keeps_its_hosts(source):
    source.put("h1")
    source.put("far", cell=SECOND)
    snapshot = Snapshot(source, spacing=0.0, sweep=0.0)
    snapshot.all()
    source.down.add(SECOND)
    assert names(snapshot.all()) == ["far", "h1"]


def test_consumption_holds_until_the_host_reports(source, snapshot):
    source.put("h1")
    [host] = snapshot.all()
    snapshot.consume(host, instance="i1", memory_mb=512, disk_gb=1, vcpus=2)
    assert (host.free_ram_mb, host.free_disk_mb, host.vcpus_used, host.num_instances) == (14488, 99 * 1024, 2, 3)
    assert "i1" in host.instances
    snapshot.refresh(force=True)
    assert host.free_ram_mb == 14488, "an older report does not undo it"
    later = clock.naive_now() + datetime.timedelta(seconds=1)
    source.rows[make.CELL] = Tail([], [make.node_row("h1", free_ram_mb=14000, updated_at=later)], [])
    snapshot.refresh(force=True)
    assert host.free_ram_mb == 14000


def test_forgotten_consumption(source, snapshot):
    source.put("h1")
    [host] = snapshot.all()
    snapshot.consume(host, instance="i1", memory_mb=512, disk_gb=1, vcpus=2)
    snapshot.forget(host, "i1")
    assert host.free_ram_mb == 15000
    assert host.instances == set()


def test_servers_from_the_database_and_from_hosts(source, snapshot):
    source.put("h1", "h2")
    listed = [{"uuid": "a", "host": "h1", "deleted": 0}, {"uuid": "b", "host": "h2", "deleted": 0}]
    source.rows[make.CELL] = Tail(source.rows[make.CELL].services, source.rows[make.CELL].nodes, listed)
    h1, h2 = sorted(snapshot.all(), key=lambda host: host.host)
    assert (h1.instances, h2.instances) == ({"a"}, {"b"})
    source.rows[make.CELL] = Tail([], [], [{"uuid": "a", "host": "h2", "deleted": 0}])
    snapshot.refresh(force=True)
    assert (h1.instances, h2.instances) == (set(), {"a", "b"})
    source.rows[make.CELL] = Tail([], [], [{"uuid": "b", "host": "h2", "deleted": 9}])
    snapshot.refresh(force=True)
    assert h2.instances == {"a"}
    source.rows[make.CELL] = Tail([], [], [])
    snapshot.instances_seen("h1", ["c"])
    snapshot.instance_gone("h2", "a")
    snapshot.instances_are("h2", ["d"])
    assert (h1.instances, h2.instances) == ({"c"}, {"d"})
    assert snapshot.is_placed("c")


def test_a_server_on_its_way_is_not_placed_yet():
    placements = Placements()
    placements.assume("i", "h1")
    assert placements.on("h1") == {"i"}
    assert not placements.settled("i")
    placements.not_placed("i")
    assert placements.on("h1") == {"i"}, "a record without host does not contradict it"
    placements.exactly("h1", [])
    assert placements.on("h1") == {"i"}, "nor does the host before it got there"
    placements.put("i", "cell", "h2")
    assert (placements.on("h1"), placements.on("h2")) == (set(), {"i"})
    assert placements.settled("i")


def test_assumptions_end():
    now = [0.0]
    placements = Placements(lambda: now[0])
    placements.assume("i", "h1")
    now[0] = 1e6
    placements.sweep("cell", [])
    assert placements.on("h1") == set()


def test_aggregates_announced(source, snapshot):
    source.put("h1", "h2")
    source.listed = [Aggregate.of(1, "u1", "a", ["h1"], {"availability_zone": "az1"})]
    h1, h2 = sorted(snapshot.all(), key=lambda host: host.host)
    assert (h1.availability_zone("nova"), h2.availability_zone("nova")) == ("az1", "nova")
    snapshot.aggregates_changed([Aggregate.of(1, "u1", "a", ["h2"], {"availability_zone": "az1"})])
    assert (h1.availability_zone("nova"), h2.availability_zone("nova")) == ("nova", "az1")
    snapshot.aggregate_gone(1)
    assert h2.availability_zone("nova") == "nova"


def test_many_threads_share_one_look(source):
    for n in range(20):
        source.put(f"h{n}")
    snapshot = Snapshot(source, spacing=60.0)
    found = []
    threads = [threading.Thread(target=lambda: found.append(len(snapshot.all()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [20] * 8
    assert len(source.looks) == 1


def test_the_lowest_version_is_what_the_database_says(source, snapshot):
    services = [
        make.service_row("h1", version=74),
        make.service_row("h2", version=72),
        make.service_row("h3", version=50, forced_down=True),
        make.service_row("h4", version=73, forced_down=None),
    ]
    source.put("h1")
    source.rows[make.CELL] = Tail(services, [make.node_row("h1")], [])
    snapshot.all()
    assert snapshot.minimum_version() == 72
