"""The other services in memory, for tests: the real client code runs on top of them.

cloud = fakes.Cloud()
clients = cloud.clients            # kilonova.clients.bundle.Clients
cloud.placement.fail("PUT", "/allocations/", status=409, times=1)
"""

from __future__ import annotations

import dataclasses

from tests.fakes.cinder import FakeCinder
from tests.fakes.glance import FakeGlance
from tests.fakes.keystone import FakeKeystone
from tests.fakes.neutron import FakeNeutron
from tests.fakes.placement import FakePlacement

from kilonova.clients.bundle import Clients
from kilonova.clients.cinder.client import Cinder
from kilonova.clients.glance.client import Glance
from kilonova.clients.http import Http
from kilonova.clients.keystone.client import Keystone
from kilonova.clients.neutron.networking import Neutron
from kilonova.clients.neutron.rest import NeutronRest
from kilonova.clients.placement.client import Placement


@dataclasses.dataclass
class Cloud:
    """One of each service; give a service of your own to share it between clouds."""

    placement: FakePlacement = dataclasses.field(default_factory=FakePlacement)
    neutron: FakeNeutron = dataclasses.field(default_factory=FakeNeutron)
    glance: FakeGlance = dataclasses.field(default_factory=FakeGlance)
    cinder: FakeCinder = dataclasses.field(default_factory=FakeCinder)
    keystone: FakeKeystone = dataclasses.field(default_factory=FakeKeystone)

    @property
    def clients(self) -> Clients:
        return Clients(
            placement=Placement(Http("placement", self.placement, retries=3), sleep=lambda _: None),
            neutron=Neutron(NeutronRest(Http("neutron", self.neutron, retries=3))),
            glance=Glance(Http("glance", self.glance, retries=3)),
            cinder=Cinder(Http("cinder", self.cinder, retries=3)),
            keystone=Keystone(Http("keystone", self.keystone, retries=3)),
        )


def clients() -> Clients:
    """Clients over a new cloud of their own."""
    return Cloud().clients
