"""[cinder]: the volume service, reached with the user's token."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.conf import _keystoneauth

GROUP: str | None = "cinder"
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "catalog_info",
        default="volumev3::publicURL",
        regex=r"^[\w-]+:\w*:.*$",
        help="Which catalog entry to use: service type, service name (may be empty) and interface, joined by colons.",
    ),
    cfg.StrOpt(
        "endpoint_template",
        help="URL of the volume service with %(project_id)s in it, used instead of the service catalog.",
    ),
    cfg.BoolOpt(
        "cross_az_attach",
        default=True,
        help="Volumes may be attached to servers of another availability zone than theirs.",
    ),
    cfg.StrOpt("os_region_name", help="Region of the volume service; any region when not set."),
    cfg.IntOpt(
        "http_retries",
        default=3,
        min=0,
        help="How many times a repeatable request is sent again after a failed connection or a 500 to 504.",
    ),
    *_keystoneauth.session(),
    *_keystoneauth.auth(),
]
