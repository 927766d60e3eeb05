"""[glance]: the image service, reached with the user's token."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.conf import _keystoneauth

GROUP: str | None = "glance"
OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "api_servers",
        deprecated_for_removal=True,
        deprecated_since="21.0.0",
        deprecated_reason="Image endpoints come from the service catalog.",
        help="Image service URLs, tried in random order, instead of the endpoint in the service catalog.",
    ),
    cfg.IntOpt(
        "num_retries",
        default=3,
        min=0,
        help="How many times a download or another request that may be repeated is started again after a failure.",
    ),
    *_keystoneauth.session(),
    *_keystoneauth.adapter("image", "connect_retries", "connect_retry_delay"),
]
