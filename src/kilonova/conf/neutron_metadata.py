"""How the metadata service trusts Neutron's metadata proxy."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "neutron"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "service_metadata_proxy",
        default=False,
        help="Requests come through Neutron's proxy and name the server in signed headers.",
    ),
    cfg.StrOpt(
        "metadata_proxy_shared_secret",
        default="",
        secret=True,
        help="Key of the proxy's signatures, the same as the proxy's own option.",
    ),
]
