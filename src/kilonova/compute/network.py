"""The one hand that writes the cached interfaces (instance_info_caches) of this host's servers.

Operations, events of Neutron and the repair loop all learn of interfaces, at different moments. Each of them asks and
writes in turn, so that what was learned earlier never replaces what was learned later.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kilonova.base.stripes import Stripes
from kilonova.clients.http import ServiceError, passes
from kilonova.clients.patience import outlast, patient
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext

if TYPE_CHECKING:
    from kilonova.clients.neutron.networking import Neutron
    from kilonova.compute.store import Store

LOG = logging.getLogger(__name__)


def cached(instance: objects.Instance) -> list[dict[str, Any]]:
    """The interfaces that the instance carries with it."""
    cache = instance.get("info_cache")
    return list(cache.get("network_info") or []) if cache is not None else []


def remember(instance: objects.Instance, info: Sequence[Mapping[str, Any]]) -> None:
    """Put interfaces on the instance; saving it writes them."""
    cache = instance.get("info_cache")
    if cache is None:
        cache = objects.InstanceInfoCache(instance_uuid=instance.uuid)
        instance.info_cache = cache
    if cache.get("network_info") != list(info):
        cache.network_info = [dict(vif) for vif in info]


class NetworkCache:
    """Thread-safe. Calls for one server take turns, with their questions to Neutron."""

    def __init__(self, store: Store, neutron: Neutron) -> None:
        self._store = store
        self._neutron = neutron
        self._turns = Stripes(256)
        self._drafts: dict[str, bool] = {}
        """Servers whose interfaces an operation has learned of and not saved yet; whether somebody looked meanwhile."""
        self._lock = threading.Lock()

    def refresh(
        self, ctxt: RequestContext, instance: objects.Instance, port_id: str | None = None
    ) -> list[dict[str, Any]]:
        """The interfaces with all of them (or that one) as Neutron has them now; on record and on the instance, too.

        Raises what Neutron raises.
        """
        # While Neutron is away the turn is others'.
        info = outlast(lambda: self._look(ctxt, instance, port_id), passes, f"interfaces of server {instance.uuid}")
        remember(instance, info)
        instance.info_cache.obj_reset_changes()
        instance.obj_reset_changes(["info_cache"])
        return [dict(vif) for vif in info]

    def _look(
        self, ctxt: RequestContext, instance: objects.Instance, port_id: str | None
    ) -> Sequence[Mapping[str, Any]]:
        with self._turns.held([instance.uuid]):
            cache = self._recorded(ctxt, instance)
            known = cache.get("network_info") or []
            info = self._neutron.network_info(ctxt, instance, cached=known, port_id=port_id)
            self._write(ctxt, cache, info)
        return info

    def drop(self, ctxt: RequestContext, instance: objects.Instance, ports: Collection[str]) -> list[str]:
        """Forget interfaces whose ports were deleted; those of them that were known."""
        with self._turns.held([instance.uuid]):
            cache = self._recorded(ctxt, instance)
            known = cache.get("network_info") or []
            self._write(ctxt, cache, [vif for vif in known if vif["id"] not in ports])
        return [vif["id"] for vif in known if vif["id"] in ports]

    @contextlib.contextmanager
    def draft(self, uuid: str) -> Iterator[None]:
        """The body learns of the server's interfaces and saves them later."""
        with self._lock:
            self._drafts[uuid] = False
        try:
            yield
        finally:
            self._end_draft(uuid)

    @contextlib.contextmanager
    def saving(self, ctxt: RequestContext, instance: objects.Instance) -> Iterator[None]:
        """The body saves the instance, with the interfaces on it where they changed."""
        cache = instance.get("info_cache")
        if cache is None or "network_info" not in cache.obj_what_changed():
            yield
            return
        with self._turns.held([instance.uuid]):
            if self._end_draft(instance.uuid) and cached(instance):
                self._renew(ctxt, instance)
            yield

    def _renew(self, ctxt: RequestContext, instance: objects.Instance) -> None:
        """What the operation learned is older than what an event has brought since."""
        try:
            with patient(0.0):
                info = self._neutron.network_info(ctxt, instance, cached=cached(instance))
            remember(instance, info)
        except (ServiceError, exceptions.Forbidden) as exc:
            # Not worth an operation: the repair loop asks again.
            LOG.warning("the cached interfaces of instance %s may be out of date: %s", instance.uuid, exc)

    def _end_draft(self, uuid: str) -> bool:
        """Whether somebody else looked while it was open."""
        with self._lock:
            return self._drafts.pop(uuid, False)

    def _recorded(self, ctxt: RequestContext, instance: objects.Instance) -> objects.InstanceInfoCache:
        try:
            found = self._store.call(ctxt, "InstanceInfoCache", "get_by_instance_uuid", instance.uuid)
        except exceptions.InstanceInfoCacheNotFound:
            return objects.InstanceInfoCache(instance_uuid=instance.uuid)
        assert isinstance(found, objects.InstanceInfoCache)
        return found

    def _write(self, ctxt: RequestContext, cache: objects.InstanceInfoCache, info: Sequence[Mapping[str, Any]]) -> None:
        with self._lock:
            if cache.instance_uuid in self._drafts:
                self._drafts[cache.instance_uuid] = True
        if (cache.get("network_info") or []) == list(info):
            return
        cache.network_info = [dict(vif) for vif in info]
        self._store.act(ctxt, cache, "save")
