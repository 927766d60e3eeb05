"""Calls on the message bus."""

from oslo_config import cfg

GROUP: str | None = None

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "long_rpc_timeout",
        default=1800,
        help="Seconds to wait for the answer of calls that may take long, such as choosing hosts or a live migration. "
        "While such a call runs, the other side reports every rpc_response_timeout seconds that it is alive.",
    ),
]
