"""Options of the compute group that the agent obeys."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = "compute"

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "consecutive_build_service_disable_threshold",
        default=10,
        help="So many failed builds in a row are told to the schedulers, which then avoid the host; 0 tells none.",
    ),
    cfg.IntOpt(
        "shutdown_retry_interval",
        default=10,
        min=1,
        help="Seconds after which a guest that still runs is asked again to shut down.",
    ),
]
