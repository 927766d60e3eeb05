"""The bound on request bodies, group ``[oslo_middleware]``."""

from oslo_config import cfg

GROUP: str | None = "oslo_middleware"

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "max_request_body_size",
        default=114688,
        deprecated_group="DEFAULT",
        help="The largest body of a request, in bytes.",
    ),
    cfg.BoolOpt(
        "enable_proxy_headers_parsing",
        default=False,
        help="Take the scheme, host and prefix of links from a proxy's X-Forwarded-* headers.",
    ),
]
