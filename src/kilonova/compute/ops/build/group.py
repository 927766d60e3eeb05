"""The last look at the server group, on the host: two members may have been scheduled at once.

Schedulers of ours see to it that this does not happen; those of Nova's do not. Of members that stand in each other's
way the one that joined the group later yields, unless the earlier one comes when the later one is built already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kilonova.base.stripes import Stripes
from kilonova.compute.ops.build.job import Build
from kilonova.contract import exceptions, objects
from kilonova.contract.states import VM, Task

_turns = Stripes(256)
"""One look at a group at a time: who looked is known to whoever looks next. Others wait for no answer about it."""

PAUSES: Final = (0.5,) * 20
"""Seconds between looks at a later member on another host that has not had its own look yet, as it seems."""


class LaterMemberError(Exception):
    """A later member is about to yield, or to be built."""


def check(build: Build) -> None:
    """Raises GroupAffinityViolation when the server has to go elsewhere."""
    agent = build.work.agent
    if not build.hints.get("group") or agent.conf.workarounds.disable_group_policy_check_upcall:
        return
    for pause in PAUSES:
        try:
            _look(build)
        except LaterMemberError:
            agent.events.pause(build.instance.uuid, pause)
        else:
            return
    raise exceptions.GroupAffinityViolation(instance_uuid=build.instance.uuid, policy="Affinity")


def leave(build: Build) -> None:
    """The build has ended: from here on the record says what became of it."""
    build.work.agent.looked.discard(build.instance.uuid)


def _look(build: Build) -> None:
    agent, ctxt, instance = build.work.agent, build.work.ctxt, build.instance
    named = build.hints["group"]
    with _turns.held(named if isinstance(named, list) else [named]):
        try:
            group = agent.store.group_of(ctxt, instance.uuid)
        except exceptions.InstanceGroupNotFound:
            return
        if group.policy == "anti-affinity":
            _keep_apart(build, group)
        elif group.policy == "affinity":
            _keep_together(build, group)
        agent.looked.add(instance.uuid)


def _keep_apart(build: Build, group: objects.InstanceGroup) -> None:
    agent, ctxt, uuid = build.work.agent, build.work.ctxt, build.instance.uuid
    allowed = int((group.get("_rules") or {}).get("max_server_per_host", 1))
    here = set(agent.store.instance_uuids_of_host(ctxt, agent.host)) | agent.tracker.tracked()
    others = (here & set(group.members)) - {uuid}
    if len(others) < allowed:
        return
    built = {each.uuid for each in agent.store.instances_by_uuid(ctxt, others) if each.vm_state != VM.BUILDING}
    if len(before(uuid, group.members, others, built | agent.looked)) >= allowed:
        raise exceptions.GroupAffinityViolation(instance_uuid=uuid, policy="Anti-affinity")


def before(uuid: str, members: Sequence[str], others: Collection[str], stay: Collection[str]) -> set[str]:
    """Pure: which of the others on the same host come first: earlier members, and those that stay in any case."""
    earlier = set(members[: members.index(uuid)]) if uuid in members else set(members)
    return {each for each in others if each in earlier or each in stay}


def _keep_together(build: Build, group: objects.InstanceGroup) -> None:
    agent, ctxt, uuid = build.work.agent, build.work.ctxt, build.instance.uuid
    hosts = set(agent.store.group_hosts(ctxt, group, exclude=[uuid]))
    if hosts <= {agent.host}:
        return
    others = agent.store.instances_by_uuid(ctxt, set(group.members) - {uuid})
    placed = {each.uuid: each for each in others if each.host is not None}
    if unknown := hosts - {each.host for each in placed.values()}:
        if unknown.isdisjoint(agent.store.group_hosts(ctxt, group, exclude=[uuid])):
            # It left its host between the two reads.
            raise LaterMemberError
        # One is in another cell, and nothing more is known of it.
        raise exceptions.GroupAffinityViolation(instance_uuid=uuid, policy="Affinity")
    states = {each.uuid: (each.host, stays(each) or each.uuid in agent.looked) for each in placed.values()}
    if (host := common_host(uuid, group.members, states)) not in (None, agent.host):
        raise exceptions.GroupAffinityViolation(instance_uuid=uuid, policy="Affinity")
    if host is None and hosts - {agent.host}:
        raise LaterMemberError


def stays(member: objects.Instance) -> bool:
    """Whether a member has had its own look: it is not given up for others any more."""
    return member.vm_state != VM.BUILDING or member.task_state in (Task.BLOCK_DEVICE_MAPPING, Task.SPAWNING)


def common_host(uuid: str, members: Sequence[str], others: Mapping[str, tuple[str, bool]]) -> str | None:
    """Pure: where all belong: with those that stay, else with the earliest one; None if that is the one asked for.

    `others`: {member: (host, whether it stays)}.
    """
    ordered = [each for each in members if each in others]
    for each in ordered:
        if others[each][1]:
            return others[each][0]
    earlier = members[: members.index(uuid)] if uuid in members else members
    return next((others[each][0] for each in ordered if each in earlier), None)
