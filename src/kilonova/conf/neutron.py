"""[neutron]: the network service."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.conf import _keystoneauth

GROUP: str | None = "neutron"
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "ovs_bridge",
        default="br-int",
        help="Integration bridge for ports whose binding names none.",
    ),
    cfg.IntOpt(
        "extension_sync_interval",
        default=600,
        min=0,
        help="Seconds for which the list of the network service's extensions is trusted.",
    ),
    cfg.IntOpt(
        "http_retries",
        default=3,
        min=0,
        help="How many times a repeatable request is sent again after a failed connection or a 500 to 504.",
    ),
    *_keystoneauth.session(),
    *_keystoneauth.auth(),
    *_keystoneauth.adapter("network", "connect_retries", "connect_retry_delay"),
]
