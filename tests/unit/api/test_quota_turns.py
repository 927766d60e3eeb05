"""Requests that come at once against a limit: those whose records are first live, the others are refused."""

from __future__ import annotations

import concurrent.futures
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from tests.unit.api.conftest import PROJECT

from kilonova.api import quota
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.db import turns
from kilonova.db.api import build_requests, instance_groups, instance_mappings, key_pairs, quotas
from kilonova.db.api.tables import BUILD_REQUESTS, INSTANCE_MAPPINGS
from kilonova.db.cell import instances
from kilonova.db.flow_tables import KN_FLOW

MANY = 12


@pytest.fixture
def site(world: Any, conductor: Any) -> Any:
    world.flavor()
    world.image = world.cloud.glance.image(name="img", min_disk=0, min_ram=0, os_type="linux")
    world.network = world.cloud.neutron.network(project=PROJECT)
    return world


def body(site: Any, **more: Any) -> dict[str, Any]:
    return {"server": {"name": "s", "flavorRef": "small", "imageRef": site.image, "networks": "auto"} | more}


def at_once(ask: Callable[[int], Any], many: int = MANY) -> Counter[int]:
    """So many requests at the same moment; the statuses of their answers."""
    gate = threading.Barrier(many)

    def one(number: int) -> int:
        gate.wait()
        return int(ask(number).status_code)

    with concurrent.futures.ThreadPoolExecutor(many) as pool:
        return Counter(pool.map(one, range(many)))


@pytest.fixture
def counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request has counted before the first of them is recorded: the check at the door holds nobody back."""
    count, calls, gate = quota.count_servers, itertools.count(), threading.Barrier(MANY)

    def slow(*args: Any) -> quota.Counted:
        counted = count(*args)
        if next(calls) < MANY:
            gate.wait(30)
        return counted

    monkeypatch.setattr(quota, "count_servers", slow)


def count(site: Any, table: sa.Table) -> int:
    with site.cells.api.read() as tx:
        return int(tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


@pytest.mark.usefixtures("counted_together")
@pytest.mark.parametrize(("limit", "most", "live"), [("instances", 5, 5), ("cores", 7, 7), ("ram", 512 * 3 + 100, 3)])
def test_q1_the_first_servers_live_and_the_others_are_refused(site: Any, limit: str, most: int, live: int) -> None:
    for name in ("instances", "cores", "ram"):
        site.conf.set_override(name, most if name == limit else -1, group="quota")
    answers = at_once(lambda _: site.post("/servers", body(site), version="2.37"))
    assert answers == {202: live, 403: MANY - live}
    assert [count(site, table) for table in (BUILD_REQUESTS, INSTANCE_MAPPINGS, KN_FLOW)] == [live] * 3


@pytest.mark.usefixtures("counted_together")
def test_q1_the_limit_of_a_user(site: Any) -> None:
    with site.cells.api.write() as tx:
        quotas.quota_set(tx, PROJECT, "instances", 4, "joe")
    site.conf.set_override("instances", 100, group="quota")
    site.conf.set_override("cores", 100, group="quota")
    assert at_once(lambda _: site.post("/servers", body(site), version="2.37")) == {202: 4, 403: MANY - 4}


@pytest.mark.usefixtures("counted_together")
def test_q1_who_wants_one_to_three_gets_what_is_left(site: Any) -> None:
    site.conf.set_override("instances", 10, group="quota")
    site.conf.set_override("cores", -1, group="quota")
    answers = at_once(lambda _: site.post("/servers", body(site, min_count=1, max_count=3), version="2.37"))
    assert answers[202] == 4
    assert count(site, BUILD_REQUESTS) == 10


@pytest.mark.usefixtures("counted_together")
def test_q1_members_of_a_group(site: Any) -> None:
    for name in ("instances", "cores", "ram"):
        site.conf.set_override(name, -1, group="quota")
    site.conf.set_override("server_group_members", 5, group="quota")
    made = site.post("/os-server-groups", {"server_group": {"name": "g", "policies": ["affinity"]}})
    hints = {"os:scheduler_hints": {"group": made.json["server_group"]["id"]}}
    answers = at_once(lambda _: site.post("/servers", body(site) | hints, version="2.37"))
    assert answers == {202: 5, 403: MANY - 5}
    # A member that is being deleted does not count any more.
    with site.cells.api.write() as tx:
        gone = tx.execute(sa.select(INSTANCE_MAPPINGS.c.instance_uuid)).scalars().first()
        instance_mappings.instance_mapping_update(tx, gone, {"queued_for_delete": True})
    assert [site.post("/servers", body(site) | hints, version="2.37").status_code for _ in range(2)] == [202, 403]


def test_q1_key_pairs_and_server_groups(site: Any) -> None:
    """SQLite has one writer in any case; tests/real/test_turns.py asks databases that have many."""
    site.conf.set_override("key_pairs", 3, group="quota")
    site.conf.set_override("server_groups", 3, group="quota")
    assert at_once(lambda n: site.post("/os-keypairs", {"keypair": {"name": f"k{n}"}})) == {200: 3, 403: MANY - 3}
    new = {"server_group": {"name": "g", "policies": ["affinity"]}}
    assert at_once(lambda _: site.post("/os-server-groups", new)) == {200: 3, 403: MANY - 3}
    with site.cells.api.read() as tx:
        assert key_pairs.key_pair_count(tx, "joe") == 3
        assert instance_groups.instance_group_count(tx, PROJECT)["project"] == 3


def test_a_refused_server_leaves_nothing_and_no_turn(site: Any) -> None:
    site.conf.set_override("instances", 1, group="quota")
    assert site.post("/servers", body(site), version="2.37").status_code == 202
    before = turns.turn_look(site.cells.api, turns.of_project(PROJECT))
    assert site.post("/servers", body(site), version="2.37").status_code == 403
    assert turns.turn_look(site.cells.api, turns.of_project(PROJECT)) == before


def test_turns_that_are_forgotten_begin_anew(site: Any) -> None:
    site.conf.set_override("instances", 2, group="quota")
    assert site.post("/servers", body(site), version="2.37").status_code == 202
    counted = quota.count_servers(site.cells, site.conf, RequestContext("joe", PROJECT, overwrite=False))
    assert site.cells.api.run(turns.turns_forget, 2**62) == 1
    with pytest.raises(quota.OvertakenError), site.cells.api.write() as tx:
        quota.take_servers(tx, RequestContext("joe", PROJECT, overwrite=False), counted, turns.Taken(1, 1, 512))
    assert [site.post("/servers", body(site), version="2.37").status_code for _ in range(2)] == [202, 403]


@pytest.mark.parametrize("others", [1, 2])
def test_turns_that_are_forgotten_and_begun_anew_are_not_those_that_were_counted(site: Any, others: int) -> None:
    """Another request makes the row anew before the first one takes its turn."""
    site.conf.set_override("instances", 2 + others, group="quota")
    ctxt = RequestContext("joe", PROJECT, overwrite=False)
    for _ in range(2):
        assert site.post("/servers", body(site), version="2.37").status_code == 202
    counted = quota.count_servers(site.cells, site.conf, ctxt)
    assert site.cells.api.run(turns.turns_forget, 2**62) == 1
    for _ in range(others):
        assert site.post("/servers", body(site), version="2.37").status_code == 202
    with pytest.raises(quota.OvertakenError), site.cells.api.write() as tx:
        quota.take_servers(tx, ctxt, counted, turns.Taken(1, 1, 512))


def accepted_by_a_peer(site: Any, number: int) -> list[str]:
    """Servers on record, in their order, as Nova's API puts them down: it counts, then records."""
    for _ in range(number):
        assert site.post("/servers", body(site), version="2.37").status_code == 202
    with site.cells.api.read() as tx:
        ordered = sa.select(INSTANCE_MAPPINGS.c.instance_uuid).order_by(INSTANCE_MAPPINGS.c.id)
        return list(tx.execute(ordered).scalars())


def place(site: Any, uuid: str, cell: str) -> None:
    row = {"uuid": uuid, "project_id": PROJECT, "user_id": "joe", "vcpus": 1, "memory_mb": 512}
    with site.cell(cell).database.write() as tx:
        instances.instance_create(tx, row)
    with site.cells.api.write() as tx:
        build_requests.build_request_delete(tx, uuid)
        instance_mappings.instance_mapping_set_cell(tx, uuid, site.uuids[cell])


def refused(site: Any, *uuids: str) -> bool:
    ctxt = RequestContext("joe", PROJECT, overwrite=False)
    try:
        quota.recheck_servers(site.cells, site.conf, ctxt, uuids, {"cores": 1, "ram": 512})
    except exceptions.TooManyInstances:
        return True
    return False


def test_q1_the_late_check_decides_by_order(site: Any) -> None:
    servers = accepted_by_a_peer(site, 8)
    site.conf.set_override("instances", 5, group="quota")
    assert [refused(site, each) for each in servers] == [False] * 5 + [True] * 3
    # Wherever they are: built, in another cell, or buried because they came too late.
    place(site, servers[0], "c1")
    place(site, servers[1], "c2")
    place(site, servers[7], "cell0")
    place(site, servers[6], "c1")
    assert [refused(site, each) for each in servers[:6]] == [False] * 5 + [True]
    # Servers of one request live or go together.
    assert not refused(site, servers[3], servers[4])
    assert refused(site, servers[4], servers[5])


def test_q1_the_late_check_is_content_when_all_fit(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = accepted_by_a_peer(site, 2)
    monkeypatch.setattr(instance_mappings, "instance_mapping_later_uuids", None)
    assert not refused(site, servers[1])
