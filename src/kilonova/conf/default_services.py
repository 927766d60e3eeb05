"""Options of the default group about service records and their heartbeats."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = None

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt("report_interval", default=10, help="Seconds between two heartbeats of a service; 0 or less: none."),
    cfg.IntOpt(
        "service_down_time",
        default=60,
        help="A service whose last heartbeat is older than these seconds counts as down; "
        "keep it well above report_interval.",
    ),
    cfg.BoolOpt("periodic_enable", default=True, help="Run periodic tasks."),
    cfg.IntOpt(
        "periodic_fuzzy_delay",
        default=60,
        min=0,
        help="Periodic tasks begin at a random moment within these seconds after the start, "
        "so that hosts do not act as one.",
    ),
]
