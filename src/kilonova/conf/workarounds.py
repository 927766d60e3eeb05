"""Options for environments that need less than we do by default."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = "workarounds"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "disable_group_policy_check_upcall",
        default=False,
        help="Build members of server groups without looking at the group once more on the host. Set it in cells whose "
        "conductors have no [api_database]: there that look fails, and so would the build.",
    ),
    cfg.BoolOpt(
        "handle_virt_lifecycle_events",
        default=True,
        help="Act on the hypervisor's events at once. Without, a guest that stopped by itself is noticed by the next "
        "comparison of power states.",
    ),
]
