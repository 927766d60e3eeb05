"""The cached interfaces of a server differ from Neutron's, or its ports are bound to another host."""

from __future__ import annotations

import logging

from kilonova.contract import context, exceptions, network_info, objects
from kilonova.contract.states import VM, Task
from kilonova.reconcile.host.host import Host
from kilonova.reconcile.loop import is_on
from kilonova.virt.driver import GuestEvent

LOG = logging.getLogger(__name__)

NEVER = -1

UNBOUND = (network_info.VIF_TYPE_UNBOUND, network_info.VIF_TYPE_BINDING_FAILED)


class NetworkInfo:
    """One server per run, in turn: Neutron is asked gently."""

    name = "network_info"

    def __init__(self, host: Host) -> None:
        self._host = host
        self.spacing: float = host.conf.heal_instance_info_cache_interval or NEVER
        self._waiting: list[str] = []

    def on_guest_event(self, event: GuestEvent) -> None:
        """Events of guests say nothing about the cache."""

    def run(self) -> str | None:
        """Look at the next server; its uuid."""
        if not is_on(self._host.conf.kilonova, self.name):
            return None
        while (instance := self._next()) is not None:
            if instance.host == self._host.host and judge(instance) and not self._host.busy(instance.uuid):
                self.repair(instance)
                return instance.uuid
        return None

    def _next(self) -> objects.Instance | None:
        host, ctxt = self._host, context.admin()
        if not self._waiting:
            self._waiting = [record.uuid for record in host.store.instances_of_host(ctxt, host.host, ())]
        while self._waiting:
            try:
                return host.store.instance(ctxt, self._waiting.pop(0), ("info_cache", "flavor", "system_metadata"))
            except exceptions.InstanceNotFound:
                continue
        return None

    def repair(self, instance: objects.Instance) -> None:
        """Bind strayed ports back to this host, then write what Neutron says."""
        host, ctxt, neutron = self._host, context.admin(), self._host.clients.neutron
        if instance.task_state is None and self._strayed(instance):
            LOG.warning("ports of instance %s are bound to this host again", instance.uuid)
            neutron.setup_binding(ctxt, instance, host.host)
        before = instance.info_cache.get("network_info")
        if host.network.refresh(ctxt, instance) != before:
            LOG.info("cached interfaces of instance %s were out of date", instance.uuid)

    def _strayed(self, instance: objects.Instance) -> bool:
        ports = self._host.clients.neutron.ports_by_device(context.admin(), instance.uuid, instance.project_id)
        return any(
            port.get("binding:host_id") != self._host.host or port.get("binding:vif_type") in UNBOUND for port in ports
        )


def judge(instance: objects.Instance) -> bool:
    """Pure: whether the cache may be written now; builds and deletes write it themselves."""
    return instance.vm_state != VM.BUILDING and instance.task_state != Task.DELETING
