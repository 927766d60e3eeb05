"""What other services report about servers of this host: plugged ports, changed networks."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kilonova.compute.inbox import News
from kilonova.compute.lanes import EVENT_KIND
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext
from kilonova.contract.states import Task

if TYPE_CHECKING:
    from kilonova.compute.agent import Agent

LOG = logging.getLogger(__name__)

Event = objects.InstanceExternalEvent
NETWORK = frozenset({"network-changed", "network-vif-deleted"})
NOT_BUILT = frozenset({"volume-extended", "power-update", "volume-reimaged"})
"""Events of operations that this service does not have yet."""


def handle(agent: Agent, ctxt: RequestContext, instances: Iterable[objects.Instance], events: Iterable[Event]) -> None:
    """Wake whoever waits at once; what takes time (asking Neutron) is merged and goes on a lane of its own."""
    by_uuid = {instance.uuid: instance for instance in instances}
    for event in events:
        instance = by_uuid.get(event.instance_uuid)
        if instance is None:
            LOG.warning("event %s came without its instance %s", event.name, event.instance_uuid)
        elif event.name in NETWORK:
            _note(agent, ctxt, instance, event)
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


def _note(agent: Agent, ctxt: RequestContext, instance: objects.Instance, event: Event) -> None:
    if event.name == "network-changed":
        first = agent.inbox.changed(ctxt, instance, event.tag)
    else:
        first = agent.inbox.deleted(ctxt, instance, event.tag or "")
    if first:
        agent.lanes.submit(f"events/{instance.uuid}", lambda turn: _look(agent, instance.uuid), kind=EVENT_KIND)


def _look(agent: Agent, uuid: str) -> None:
    """Bring the cached interfaces of a server in line with what was reported."""
    if (news := agent.inbox.take(uuid)) is None:
        return
    try:
        _catch_up(agent, news)
    except exceptions.NotFound as exc:
        LOG.info("an event of instance %s came too late: %s", uuid, exc)
    except Exception:
        LOG.exception("an event of instance %s could not be handled", uuid)


def _catch_up(agent: Agent, news: News) -> None:
    """A port that was deleted leaves the cache. The guest keeps a dead interface until it is remade."""
    if news.deleted:
        for port_id in agent.network.drop(news.ctxt, news.instance, news.deleted):
            LOG.warning("port %s of instance %s was deleted", port_id, news.instance.uuid)
    if news.everything:
        agent.network.refresh(news.ctxt, news.instance)
    for port_id in sorted(news.changed - news.deleted):
        agent.network.refresh(news.ctxt, news.instance, port_id)
