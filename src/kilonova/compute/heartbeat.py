"""This host's service record: made at the first start, and kept young so that others know the host lives."""

from __future__ import annotations

import logging

from kilonova.compute import store as stores
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext

LOG = logging.getLogger(__name__)

BINARY = "nova-compute"
TOPIC = "compute"


class Heartbeat:
    """`record` is None until `register`."""

    def __init__(self, store: stores.Store, host: str) -> None:
        self._store = store
        self._host = host
        self._lost = False
        self.record: objects.Service | None = None

    def register(self, ctxt: RequestContext, known: objects.Service | None) -> objects.Service:
        """The record as found, raised to our version, or a new one."""
        if known is None:
            known = objects.Service(host=self._host, binary=BINARY, topic=TOPIC, report_count=0)
            known.version = objects.SERVICE_VERSION
            try:
                self._store.act(ctxt, known, "create")
            except (exceptions.ServiceTopicExists, exceptions.ServiceBinaryExists):
                known = self._store.service(ctxt, self._host, BINARY)
                assert known is not None
        elif known.version != objects.SERVICE_VERSION:
            LOG.info(
                "service version of host %s goes from %s to %s", self._host, known.version, objects.SERVICE_VERSION
            )
            known.version = objects.SERVICE_VERSION
            self._store.act(ctxt, known, "save")
        self.record = known
        return known

    def beat(self, ctxt: RequestContext) -> None:
        """Count one up; the conductor notes the time. Lost contact is said once, and once when it is back."""
        assert self.record is not None
        self.record.report_count += 1
        try:
            self._store.act(ctxt, self.record, "save")
        except exceptions.ServiceNotFound:
            LOG.error("the service record of host %s was deleted; restart the service to make a new one", self._host)
        except Exception:
            if not self._lost:
                LOG.exception("host %s cannot report to the conductor", self._host)
            self._lost = True
        else:
            if self._lost:
                LOG.info("host %s reports to the conductor again", self._host)
            self._lost = False
