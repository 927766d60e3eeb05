"""All clients of one process, made from the configuration."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.clients.cinder.client import Cinder
from kilonova.clients.glance.client import Glance
from kilonova.clients.http import Http, Reply, Request, Transport
from kilonova.clients.keystone import credentials
from kilonova.clients.keystone.client import Keystone
from kilonova.clients.neutron.networking import Neutron
from kilonova.clients.neutron.rest import NeutronRest
from kilonova.clients.placement.client import Placement

if TYPE_CHECKING:
    from kilonova.clients.keystone.sessions import Sessions


@dataclasses.dataclass(frozen=True)
class Clients:
    """The other services. Making it sends nothing; sessions and tokens come with the first call."""

    placement: Placement
    neutron: Neutron
    glance: Glance
    cinder: Cinder
    keystone: Keystone

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Clients:
        way = Way(conf)
        return cls(
            placement=_placement(way),
            neutron=_neutron(way),
            glance=_glance(way),
            cinder=_cinder(way),
            keystone=_keystone(way, ("keystone", "service_user")),
        )


class Way:
    """The way to other services. keystoneauth1 is loaded by the first request: a start does not wait for it."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf
        self._lock = threading.Lock()
        self._made: Sessions | None = None

    @property
    def sessions(self) -> Sessions:
        """One for all services, so that they share their tokens."""
        from kilonova.clients.keystone.sessions import Sessions

        with self._lock:
            if self._made is None:
                self._made = Sessions(self.conf)
            return self._made

    def to(self, group: str, endpoint: dict[str, Any], groups: tuple[str, ...], **how: Any) -> Transport:
        """The transport to the service of a configuration group; arguments as those of KeystoneTransport."""

        def make() -> Transport:
            from kilonova.clients.keystone.sessions import KeystoneTransport

            return KeystoneTransport(self.sessions, group, endpoint, groups, **how)

        return _Later(make)


class _Later:
    """A transport that is made by the first request."""

    def __init__(self, make: Callable[[], Transport]) -> None:
        self._make = make

    @functools.cached_property
    def _transport(self) -> Transport:
        return self._make()

    def send(self, request: Request) -> Reply:
        return self._transport.send(request)

    def stream(self, request: Request) -> tuple[Reply, Iterable[bytes]]:
        return self._transport.stream(request)


def _placement(way: Way) -> Placement:
    endpoint = adapter_endpoint(way.conf, "placement")
    return Placement(Http("placement", way.to("placement", endpoint, ("placement",), microversion_name="placement")))


def _neutron(way: Way) -> Neutron:
    conf = way.conf
    endpoint = adapter_endpoint(conf, "neutron")
    transport = way.to("neutron", endpoint, ("neutron", "service_user"), versioned_paths=True)
    rest = NeutronRest(Http("neutron", transport, conf.neutron.http_retries), conf.neutron.extension_sync_interval)
    return Neutron(
        rest,
        conf.neutron.ovs_bridge,
        remember=conf.kilonova.network_memory,
        bound_at_once=conf.kilonova.ports_bound_at_once,
    )


def _glance(way: Way) -> Glance:
    conf = way.conf
    endpoint = adapter_endpoint(conf, "glance")
    if conf.glance.api_servers:
        endpoint["endpoint_override"] = list(conf.glance.api_servers)
    transport = way.to("glance", endpoint, ("service_user",), versioned_paths=True)
    return Glance(Http("glance", transport, conf.glance.num_retries), conf.glance.num_retries)


def _cinder(way: Way) -> Cinder:
    conf = way.conf
    transport = way.to("cinder", cinder_endpoint(conf), ("cinder", "service_user"), microversion_name="volume")
    return Cinder(Http("cinder", transport, conf.cinder.http_retries), cross_az_attach=conf.cinder.cross_az_attach)


def _keystone(way: Way, groups: tuple[str, ...]) -> Keystone:
    endpoint = adapter_endpoint(way.conf, "keystone")
    return Keystone(Http("keystone", way.to("keystone", endpoint, groups, versioned_paths=True)))


def operators_keystone(conf: cfg.ConfigOpts) -> Keystone:
    """Keystone with the credentials that validate tokens, if there are: operators let these set limits."""
    credentials.declare_validating(conf)
    return _keystone(Way(conf), (credentials.VALIDATING, "keystone", "service_user"))


def adapter_endpoint(conf: cfg.ConfigOpts, group: str) -> dict[str, Any]:
    """Where [group] says its service is: catalog filter, or an override."""
    options = conf[group]
    return {
        "service_type": options.service_type,
        "service_name": options.service_name,
        "interface": options.valid_interfaces,
        "region_name": options.region_name,
        "endpoint_override": options.endpoint_override,
    }


def cinder_endpoint(conf: cfg.ConfigOpts) -> dict[str, Any]:
    """[cinder] names its endpoint in one option: `type:name:interface`, or a URL template."""
    kind, name, interface = conf.cinder.catalog_info.split(":")
    return {
        "service_type": kind,
        "service_name": name or None,
        "interface": interface,
        "region_name": conf.cinder.os_region_name,
        "endpoint_override": conf.cinder.endpoint_template,
    }
