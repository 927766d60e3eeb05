"""What other services report about servers of this host: plugged ports, changed networks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from kilonova.compute import guest
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Task

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)

Event = objects.InstanceExternalEvent
NOT_BUILT = frozenset({"volume-extended", "power-update", "volume-reimaged"})
"""Events of operations that this service does not have yet."""


def handle(agent: Agent, ctxt: RequestContext, instances: Iterable[objects.Instance], events: Iterable[Event]) -> None:
    """Wake whoever waits at once; what takes time (asking Neutron) goes on a lane of its own."""
    by_uuid = {instance.uuid: instance for instance in instances}
    for event in events:
        instance = by_uuid.get(event.instance_uuid)
        if instance is None:
            LOG.warning("event %s came without its instance %s", event.name, event.instance_uuid)
        elif slow := SLOW.get(event.name):
            _later(agent, ctxt, instance, event.tag, slow)
        elif event.name in NOT_BUILT:
            LOG.error("event %s of instance %s is not supported by this service", event.name, instance.uuid)
        else:
            _wake(agent, instance, event)


def _wake(agent: Agent, instance: objects.Instance, event: Event) -> None:
    if agent.events.deliver(instance.uuid, event.name, event.tag or "", event.status):
        return
    expected = event.name == "network-vif-unplugged" and instance.get("task_state") in (Task.DELETING, Task.MIGRATING)
    level = logging.DEBUG if expected else logging.INFO
    LOG.log(level, "nothing waits for event %s-%s of instance %s", event.name, event.tag, instance.uuid)


Slow = Callable[["Agent", RequestContext, objects.Instance, str | None], None]


def _later(agent: Agent, ctxt: RequestContext, instance: objects.Instance, tag: str | None, work: Slow) -> None:
    def job(turn: object) -> None:
        try:
            work(agent, ctxt, instance, tag)
        except exceptions.NotFound as exc:
            LOG.info("an event of instance %s came too late: %s", instance.uuid, exc)
        except Exception:
            LOG.exception("an event of instance %s could not be handled", instance.uuid)

    agent.lanes.submit(f"events/{instance.uuid}", job)


def network_changed(agent: Agent, ctxt: RequestContext, instance: objects.Instance, port_id: str | None) -> None:
    """Read the port (all ports: None) again."""
    cache = agent.store.call(ctxt, "InstanceInfoCache", "get_by_instance_uuid", instance.uuid)
    cached = cache.get("network_info") or []
    info = agent.clients.neutron.network_info(ctxt, instance, cached=cached, port_id=port_id)
    save_network_info(agent, ctxt, cache, info)


def interface_deleted(agent: Agent, ctxt: RequestContext, instance: objects.Instance, port_id: str | None) -> None:
    """A port was deleted under the server: it leaves the cache. The guest keeps a dead interface until it is remade."""
    cache = agent.store.call(ctxt, "InstanceInfoCache", "get_by_instance_uuid", instance.uuid)
    cached = cache.get("network_info") or []
    left = [vif for vif in cached if vif["id"] != port_id]
    if len(left) != len(cached):
        LOG.warning("port %s of instance %s was deleted", port_id, instance.uuid)
        save_network_info(agent, ctxt, cache, left)


def save_network_info(
    agent: Agent, ctxt: RequestContext, cache: objects.InstanceInfoCache, info: list[guest.VifData]
) -> None:
    """Write the cache when it differs."""
    if cache.get("network_info") != info:
        cache.network_info = info
        agent.store.act(ctxt, cache, "save")


SLOW: Mapping[str, Slow] = {"network-changed": network_changed, "network-vif-deleted": interface_deleted}
