"""All clients of one process, made from the configuration."""

from __future__ import annotations

import dataclasses
from typing import Any

from keystoneauth1 import loading
from oslo_config import cfg

from kilonova.clients.cinder.client import Cinder
from kilonova.clients.glance.client import Glance
from kilonova.clients.http import Http
from kilonova.clients.keystone.client import Keystone
from kilonova.clients.keystone.sessions import KeystoneTransport, Sessions, adapter_endpoint
from kilonova.clients.neutron.networking import Neutron
from kilonova.clients.neutron.rest import NeutronRest
from kilonova.clients.placement.client import Placement


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
        sessions = Sessions(conf)
        return cls(
            placement=_placement(conf, sessions),
            neutron=_neutron(conf, sessions),
            glance=_glance(conf, sessions),
            cinder=_cinder(conf, sessions),
            keystone=_keystone(conf, sessions),
        )


def _placement(conf: cfg.ConfigOpts, sessions: Sessions) -> Placement:
    transport = KeystoneTransport(
        sessions, "placement", adapter_endpoint(conf, "placement"), ("placement",), microversion_name="placement"
    )
    return Placement(Http("placement", transport))


def _neutron(conf: cfg.ConfigOpts, sessions: Sessions) -> Neutron:
    endpoint = adapter_endpoint(conf, "neutron")
    transport = KeystoneTransport(sessions, "neutron", endpoint, ("neutron", "service_user"), versioned_paths=True)
    rest = NeutronRest(Http("neutron", transport, conf.neutron.http_retries), conf.neutron.extension_sync_interval)
    return Neutron(
        rest,
        conf.neutron.ovs_bridge,
        remember=conf.kilonova.network_memory,
        bound_at_once=conf.kilonova.ports_bound_at_once,
    )


def _glance(conf: cfg.ConfigOpts, sessions: Sessions) -> Glance:
    endpoint = adapter_endpoint(conf, "glance")
    if conf.glance.api_servers:
        endpoint["endpoint_override"] = list(conf.glance.api_servers)
    transport = KeystoneTransport(sessions, "glance", endpoint, ("service_user",), versioned_paths=True)
    return Glance(Http("glance", transport, conf.glance.num_retries), conf.glance.num_retries)


def _cinder(conf: cfg.ConfigOpts, sessions: Sessions) -> Cinder:
    transport = KeystoneTransport(
        sessions, "cinder", cinder_endpoint(conf), ("cinder", "service_user"), microversion_name="volume"
    )
    return Cinder(Http("cinder", transport, conf.cinder.http_retries), cross_az_attach=conf.cinder.cross_az_attach)


def _keystone(
    conf: cfg.ConfigOpts, sessions: Sessions, groups: tuple[str, ...] = ("keystone", "service_user")
) -> Keystone:
    transport = KeystoneTransport(
        sessions, "keystone", adapter_endpoint(conf, "keystone"), groups, versioned_paths=True
    )
    return Keystone(Http("keystone", transport))


def operators_keystone(conf: cfg.ConfigOpts) -> Keystone:
    """Keystone with the credentials that validate tokens, if there are: operators let these set limits."""
    loading.register_auth_conf_options(conf, "keystone_authtoken")
    return _keystone(conf, Sessions(conf), ("keystone_authtoken", "keystone", "service_user"))


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
