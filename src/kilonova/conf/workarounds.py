"""Options for environments that need less than we do by default."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = "workarounds"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "handle_virt_lifecycle_events",
        default=True,
        help="Act on the hypervisor's events at once. Without, a guest that stopped by itself is noticed by the next "
        "comparison of power states.",
    ),
]
