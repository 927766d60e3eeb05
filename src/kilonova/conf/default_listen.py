"""Options of the default group: where the built-in servers listen."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = None

OPTIONS: list[cfg.Opt] = [
    cfg.HostAddressOpt("osapi_compute_listen", default="0.0.0.0", help="Address of the compute API."),  # noqa: S104
    cfg.PortOpt("osapi_compute_listen_port", default=8774, help="Port of the compute API."),
    cfg.HostAddressOpt("metadata_listen", default="0.0.0.0", help="Address of the metadata service."),  # noqa: S104
    cfg.PortOpt("metadata_listen_port", default=8775, help="Port of the metadata service."),
    cfg.IntOpt(
        "graceful_shutdown_timeout",
        default=180,
        help="Seconds that a service has to end when it is asked to stop; running work has manager_shutdown_timeout of "
        "them.",
    ),
    cfg.IntOpt(
        "manager_shutdown_timeout",
        default=160,
        min=0,
        help="Seconds that a service gives running work to end when it is asked to stop. More than "
        "graceful_shutdown_timeout means ten seconds less than that: what remains is for closing.",
    ),
]
