"""What a host makes sure of before it takes orders: who it is, and what an earlier run left open."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kilonova.compute import recovery, refusal
from kilonova.compute.journal import book
from kilonova.compute.operations import OPERATIONS
from kilonova.compute.runner import Runner
from kilonova.compute.store import INSTANCE_ATTRS
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Task
from kilonova.virt import identity

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)

IDENTITY_SINCE = 65
"""From this service version on, a registered host has its identity in a file."""


def check_identity(
    agent: Agent, ctxt: RequestContext, service: objects.Service | None, directories: Iterable[pathlib.Path]
) -> None:
    """Refuse to start as somebody else. Raises InvalidConfiguration."""
    known = identity.read([*directories, agent.state_path])
    if service is None:
        if agent.driver.guests():
            raise exceptions.InvalidConfiguration(
                f"the hypervisor of {agent.host} has guests, but the database does not know this host: "
                "is this the right database?"
            )
    elif known is None:
        _adopt_identity(agent, ctxt, service)
    _check_names(agent, agent.store.nodes(ctxt, agent.driver.nodes().values()))


def _adopt_identity(agent: Agent, ctxt: RequestContext, service: objects.Service) -> None:
    """A host registered by a service that kept no file takes the uuid of its only node."""
    if service.version >= IDENTITY_SINCE:
        raise exceptions.InvalidConfiguration(
            f"host {agent.host} was registered before, but its node identity ({identity.FILE} in {agent.state_path}) "
            "is gone; restore the file"
        )
    nodes = agent.store.nodes_of_host(ctxt, agent.host)
    if len(nodes) != 1:
        raise exceptions.InvalidConfiguration(
            f"host {agent.host} has {len(nodes)} nodes in the database; write the uuid of the right one to "
            f"{agent.state_path / identity.FILE}"
        )
    identity.write(agent.state_path, nodes[0].uuid)


def _check_names(agent: Agent, nodes: Iterable[objects.ComputeNode]) -> None:
    names = {uuid: name for name, uuid in agent.driver.nodes().items()}
    for node in nodes:
        if node.hypervisor_hostname != names[node.uuid]:
            raise exceptions.InvalidConfiguration(
                f"node {node.uuid} is recorded as {node.hypervisor_hostname}, the hypervisor says {names[node.uuid]}: "
                "was the host renamed?"
            )
        if node.host != agent.host:
            raise exceptions.InvalidConfiguration(
                f"node {node.uuid} belongs to host {node.host}, this is {agent.host}: was the host renamed?"
            )


def recover(agent: Agent, runner: Runner, ctxt: RequestContext) -> None:
    """Queue what was left open: first by the journal, then by the instances' own states."""
    instances = {i.uuid: i for i in agent.store.instances_of_host(ctxt, agent.host, INSTANCE_ATTRS)}
    agent.driver.adopt(list(instances.values()))
    for entry in agent.journal.open():
        operation = OPERATIONS.get(entry.key.method) or refusal.begun(entry.key.method)
        if operation is None or entry.payload is None:
            agent.journal.finish(entry, book.FAILED, "not known to this version")
            continue
        LOG.info("taking up %s of instance %s at step %s", entry.key.method, entry.key.instance_uuid, entry.step)
        runner.resume(operation, entry)
        known = instances.get(entry.key.instance_uuid)
        if known is not None and (known.task_state != Task.DELETING or entry.key.method == "terminate_instance"):
            del instances[known.uuid]
    for instance in instances.values():
        resume = agent.conf.resume_guests_state_on_host_boot
        method, args = recovery.judge(instance, agent.power_state(instance), resume)
        if method is not None:
            LOG.info("instance %s was left in task %s: %s", instance.uuid, instance.task_state, method)
            agent.operate(method, instance, args, resumed=True)
    agent.tell_schedulers(ctxt, *instances.values())
