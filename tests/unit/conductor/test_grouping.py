"""A server that is tried elsewhere goes where its group allows."""

from __future__ import annotations

import pytest
from tests.unit.conductor.stage import PROJECT, Stage
from tests.unit.conductor.test_build import begin, run

from kilonova.db import group_hosts
from kilonova.db.api import instance_groups


def group(stage: Stage, policy: str, *members: str) -> None:
    with stage.api.write() as tx:
        made = instance_groups.instance_group_create(tx, {"project_id": PROJECT, "user_id": "user"}, policy)
        instance_groups.instance_group_members_add(tx, made["id"], members)


def goes_to(stage: Stage, server: str, host: str) -> None:
    """As the scheduler says it."""
    seen = group_hosts.members_of(stage.cells, server)
    assert seen is not None
    assert group_hosts.take(stage.cells, seen, {server: host}) == set()


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_an_alternate_that_the_group_forbids_is_passed_over(stage: Stage, policy: str) -> None:
    first = begin(stage, stage.post())
    run(stage)
    second = begin(stage, stage.post())
    group(stage, policy, first, second)
    if policy == "anti-affinity":
        built = stage.server(first)
        built.host = "h2"
        stage.save(built)
    stage.compute.refusing.add("h1")
    run(stage)
    ended = stage.server(second)
    assert (ended.vm_state, ended.host) == ("error", None)
    assert "Exhausted all hosts" in ended.fault.message
    assert stage.leftovers(second)["allocations"] == {}


def test_members_that_are_on_their_way_are_waited_for(stage: Stage) -> None:
    """Their common host takes none of them: they end together on the next one, and not in ERROR."""
    servers = [begin(stage, stage.post()) for _ in range(3)]
    group(stage, "affinity", *servers)
    for server in servers:
        goes_to(stage, server, "h1")
    stage.compute.refusing.add("h1")
    run(stage, 200)
    built = [stage.server(server) for server in servers]
    assert [(each.vm_state, each.host) for each in built] == [("active", "h2")] * 3
